"""Everyday trouble, and strangers' words: one sentence and an exit code, and nothing that a terminal obeys."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dabnet.cli import main
from dabnet.packed import find_model, read_model, to_bytes
from dabnet.sketches.prepare import prepare
from dabnet.sketches.sources import open_source

from ..sketches.drawings import HOUSE, encode, paint
from ..sketches.hostile import bad_exif, jpeg_with_exif

ORDERS = ("\x1b[2J\x1b[1;1H", "\n", "\r", "\x9b31m", "\x07", "\u202e", "\u2028", "\udce9", "[/bold]", "[link=x]")
"""What a terminal, or rich, would obey."""


def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dabnet", *map(str, arguments)]
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "200"}
    return subprocess.run(command, capture_output=not options, text=True, timeout=100, env=environment, **options)  # type: ignore[call-overload, no-any-return]


def one_sentence(done: subprocess.CompletedProcess[str], words: str) -> None:
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("dabnet: ")
    assert words in done.stderr


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose labels are orders."""
    shipped = read_model(find_model("default"))
    labels = [f"cat{ORDERS[i % 7]}{i}\nforged.png  certain  100 %" for i in range(len(shipped.labels))]
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    path.write_bytes(to_bytes(dataclasses.replace(shipped, labels=tuple(labels))))
    return path


def test_labels_and_names_cannot_forge_lines(
    model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.json", "b\x1b[2J\nc.json", os.fsdecode(b"caf\xe9.json")):
        Path(name).write_text(json.dumps(HOUSE))
    Path("bad\n\x1b.json").write_text("rubbish")
    for options in ((), ("--json",)):
        with pytest.raises(SystemExit) as stopped:
            main(["recognize", ".", "--model", str(model), "--sheet", "../sheet.png", *options])
        assert stopped.value.code == 1
        printed = capfd.readouterr()
        assert len(printed.out.splitlines()) == 4  # a heading, or the error, and three guesses
        assert all(character.isprintable() or character == "\n" for character in printed.out + printed.err)
        if options:
            assert "\n" in json.loads(printed.out.splitlines()[0])["guesses"][0]["label"]


def test_what_a_set_says_of_itself_is_escaped(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = open_source("synthetic", limit=2)
    source.title = source.licence = "".join(ORDERS[:-3]) + "[/bold]"
    source.classes = [f"{name}{''.join(ORDERS[:-3])}[/x]" for name in source.classes]
    made = prepare(source, tmp_path / "set.parquet", workers=1)
    main_quietly("data", "show", made.path, "-o", tmp_path / "sheet.png")
    printed = capfd.readouterr().out
    assert "\\x1b[2J" in printed
    assert "[/bold]" in printed
    assert all(character.isprintable() or character == "\n" for character in printed)


def test_an_errors_sentence_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        ["data", "prepare", "no\x1b[2J\nwhere"],
        ["data", "prepare", "[/x]"],
        ["recognize", "a.json", "--model", "x\ny"],
    ):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == 2
        printed = capfd.readouterr().err
        assert (printed.count("\n"), "\x1b" in printed) == (1, False)


def main_quietly(*arguments: object) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(list(map(str, arguments)))
    assert stopped.value.code == 0


def test_one_bad_picture_does_not_end_the_others_turn(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for number, exif in enumerate(bad_exif().values()):
        (tmp_path / f"{number}.jpg").write_bytes(jpeg_with_exif(exif, paint(HOUSE)))
    (tmp_path / "cut.png").write_bytes(encode(paint(HOUSE))[:500])
    with pytest.raises(SystemExit) as stopped:
        main(["recognize", str(tmp_path), "--json"])
    assert stopped.value.code == 1
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [Path(line["drawing"]).name for line in lines if "error" in line] == ["cut.png"]
    assert len(lines) == len(bad_exif()) + 1


def test_a_place_that_cannot_be_written_to_is_a_sentence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.json").write_text(json.dumps(HOUSE))
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "sheet.png", Path("/proc/sheet.png"), tmp_path / ("n" * 252 + ".png")):
        with pytest.raises(SystemExit) as stopped:
            main(["recognize", str(tmp_path / "a.json"), "--sheet", str(path)])
        assert stopped.value.code == 2
        assert capfd.readouterr().err.startswith("dabnet: cannot write '")


@pytest.mark.parametrize(
    "arguments", [["recognize", "{file}", "--json"], ["recognize", "{file}"], ["data", "list", "--json"], ["--version"]]
)
def test_a_full_disk_is_a_sentence(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "a.json").write_text(json.dumps(HOUSE))
    with Path("/dev/full").open("w") as full:
        done = run(*(word.format(file=tmp_path / "a.json") for word in arguments), stdout=full, stderr=subprocess.PIPE)
    one_sentence(done, "No space left on device): make room")


def test_a_reader_that_has_enough_is_no_problem(tmp_path: Path) -> None:
    (tmp_path / "many.ndjson").write_text((json.dumps(HOUSE) + "\n") * 300)
    command = f"{sys.executable} -m dabnet recognize {tmp_path}/many.ndjson --json | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=100)
    assert (len(done.stdout.splitlines()), done.stderr) == (1, "")


@pytest.mark.parametrize("seconds", [0.6, 1.2])
def test_an_interrupt_while_torch_is_imported_is_no_traceback(seconds: float) -> None:
    code = "import dabnet.cli, sys; print('ready', flush=True); dabnet.cli.main(['train', 'no.toml'])"
    command = [sys.executable, "-c", f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler); {code}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert "Traceback" not in errors
    assert process.returncode in (-signal.SIGINT, 130, 2)  # 2 where it was done before that


@pytest.mark.parametrize("device", ["cuda", "mps", "abacus"])
def test_a_device_that_is_not_there_is_a_sentence(
    device: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    with pytest.raises(SystemExit) as stopped:
        main(["train", "no.toml", "--data", "no.parquet", "--device", device])
    assert stopped.value.code == 2
    printed = capfd.readouterr().err
    assert printed.count("\n") == 1
    assert f"no {device} device" in printed or "is not a device: choose one of" in printed
