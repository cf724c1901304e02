"""`dabnet recognize -o`: what is killed goes on where it was, and nothing is lost or there twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dabnet.cli import main
from tests.distributed.lists import (
    assert_same_answers,
    children,
    drawings,
    kill,
    named,
    run_command,
    start_command,
    wait_for,
    wait_for_answers,
    write_lines,
    write_parquet,
)

WORKER = "multiprocessing.spawn import spawn_main"


def fail(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    with pytest.raises(SystemExit) as stop:
        main(["recognize", *map(str, arguments)])
    assert stop.value.code == 2
    return capsys.readouterr().err


def test_answers_are_those_of_one_process_and_are_summed_up(tmp_path: Path) -> None:
    expected = write_parquet(tmp_path / "a.parquet", 500)
    options: list[str | Path] = [tmp_path / "a.parquet", "-o", tmp_path / "out", "--partition", "100", "--workers", "2"]
    summary = json.loads(run_command(*options, "--json"))
    assert_same_answers(tmp_path / "out", expected)
    labels = expected["label"].drop_null().to_pylist()
    assert summary["classes"] == {label: labels.count(label) for label in summary["classes"]}
    assert (summary["drawings"], summary["new"], summary["partitions"]) == (500, 500, 5)
    assert summary["errors"] == 500 - len(labels)
    assert json.loads((tmp_path / "out" / "_summary.json").read_text()) == summary
    again = json.loads(run_command(*options, "--json"))
    assert (again["drawings"], again["new"], again["classes"]) == (500, 0, summary["classes"])
    told = run_command(*options)
    assert "500 drawings in 5 files, 6 of them with an error" in told


def test_lines_of_json_are_answered_line_by_line(tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "a.ndjson", 300)
    run_command(tmp_path / "a.ndjson", "-o", tmp_path / "out", "--partition", "100", "--workers", "1")
    found = pq.read_table(tmp_path / "out").sort_by("offset").to_pylist()
    assert len(found) == len(lines)
    assert [row["error"] is None for row in found] == [row % 97 != 5 and row != 150 for row in range(300)]
    assert [row["key_id"] for row in found] == [None if row == 150 else str(row) for row in range(300)]


def test_a_worker_that_is_killed_is_replaced(tmp_path: Path) -> None:
    expected = write_parquet(tmp_path / "a.parquet", 1600)
    process = start_command(
        tmp_path / "a.parquet", "-o", tmp_path / "out", "--partition", "100", "--workers", "2", "--json"
    )
    wait_for_answers(tmp_path / "out", 2)
    kill(next(pid for pid in children(process.pid) if named(pid, WORKER)))
    output, problems = process.communicate(timeout=120)
    assert process.returncode == 0, problems
    assert json.loads(output)["drawings"] == 1600
    assert_same_answers(tmp_path / "out", expected)


def test_a_command_that_is_killed_goes_on_when_it_is_run_again(tmp_path: Path) -> None:
    expected = write_parquet(tmp_path / "a.parquet", 1600)
    options: list[str | Path] = [
        tmp_path / "a.parquet",
        "-o",
        tmp_path / "out",
        "--partition",
        "100",
        "--workers",
        "2",
        "--json",
    ]
    process = start_command(*options)
    wait_for_answers(tmp_path / "out", 2)
    workers = [pid for pid in children(process.pid) if named(pid, WORKER)]
    kill(process.pid)
    process.communicate()
    assert workers
    wait_for(lambda: not any(named(pid, WORKER) for pid in workers))  # which end with it
    (tmp_path / "out" / ".dabnet-0123456789abcdef.writing").write_bytes(b"half of a partition")
    summary = json.loads(run_command(*options))
    assert summary["drawings"] == 1600
    assert 0 < summary["new"] < 1600
    assert_same_answers(tmp_path / "out", expected)


def test_a_command_that_is_interrupted_ends_at_once_and_says_what_to_do(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet", 10)
    pq.write_table(pa.table({"key": range(40_000), "drawing": drawings(40_000)}), tmp_path / "b.parquet")
    options: list[str | Path] = [tmp_path / "a.parquet", tmp_path / "b.parquet", "--partition", "40000"]
    process = start_command(*options, "-o", tmp_path / "out", "--workers", "1")
    wait_for_answers(tmp_path / "out", 1)
    workers = [pid for pid in children(process.pid) if named(pid, WORKER)]
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=20)  # long before the second partition is done
    assert process.returncode == 130
    assert "run the same command again" in told
    assert "Traceback" not in told
    wait_for(lambda: not any(named(pid, WORKER) for pid in workers))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["a-00000.parquet"]


def test_a_refused_model_is_told_once_and_starts_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_parquet(tmp_path / "a.parquet", 10)
    (tmp_path / "model.safetensors").write_bytes(b"no model")
    options: list[str | Path] = [
        tmp_path / "a.parquet",
        "-o",
        tmp_path / "out",
        "--model",
        tmp_path / "model.safetensors",
    ]
    for engine in ("local", "ray"):
        told = fail(capsys, *options, "--engine", engine)
        assert told.count("model.safetensors") == 1
        assert not (tmp_path / "out").exists()


def test_options_that_do_not_go_together_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_parquet(tmp_path / "a.parquet", 10)
    file, out = tmp_path / "a.parquet", tmp_path / "out"
    assert "add -o FOLDER" in fail(capsys, file, "--engine", "ray")
    assert "choose one of local, ray" in fail(capsys, file, "-o", out, "--engine", "spark")
    assert "add --engine ray" in fail(capsys, file, "-o", out, "--address", "127.0.0.1:6379")
    assert "do not go with -o" in fail(capsys, file, "-o", out, "--sheet", tmp_path / "sheet.png")
    assert "give files that end in" in fail(capsys, "-", "-o", out)
    assert "is a file" in fail(capsys, file, "-o", file)
    assert not out.exists()


def test_an_output_folder_has_one_command_at_a_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from dabnet.sketches.alone import only_writer

    write_parquet(tmp_path / "a.parquet", 10)
    with only_writer(tmp_path / "out" / "_summary.json"):
        assert "another process is writing" in fail(capsys, tmp_path / "a.parquet", "-o", tmp_path / "out")


def test_recognizing_a_drawing_loads_neither_arrow_nor_ray() -> None:
    example = Path(__file__).parents[2] / "examples" / "cat.json"
    code = (
        "import sys\nfrom dabnet.cli import main\n"
        f"try: main(['recognize', {str(example)!r}])\n"
        "except SystemExit: pass\n"
        "assert not {'pyarrow', 'ray', 'numpy', 'typer'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
