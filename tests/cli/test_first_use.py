"""What people try first, and what goes wrong then: said before the work starts, in one sentence, with nothing left."""

from __future__ import annotations

import dataclasses
import json
import os
import pty
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from PIL import Image

from dabnet.cli import main
from dabnet.packed import find_model, read_model, to_bytes
from dabnet.sketches import SketchSet
from dabnet.sketches.raster import Raster, rasterize
from dabnet.sketches.sources import open_source
from dabnet.sketches.synthetic import synthetic_strokes

from ..sketches.drawings import HOUSE, encode, paint

CHANGES = ("epochs=1", "width=0.125", "size=32", "batch_size=4")
TINY = ("small/tuberlin-resnet18-fbin-dab", *(word for change in CHANGES for word in ("--set", change)))


@pytest.fixture(autouse=True)
def _in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def refuse(*arguments: object, capfd: pytest.CaptureFixture[str], code: int = 2) -> str:
    """Run a command that fails, and return the one line that it says of it."""
    with pytest.raises(SystemExit) as stopped:
        main(list(map(str, arguments)))
    assert stopped.value.code == code
    line = capfd.readouterr().err
    assert line.count("\n") == 1, line
    return line.removeprefix("dabnet: ").rstrip()


def succeed(*arguments: object, capfd: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stopped:
        main(list(map(str, arguments)))
    printed = capfd.readouterr()
    assert not stopped.value.code, printed.err
    return printed.out


def save_drawings(folder: Path, classes: Sequence[str], each: int) -> Path:
    """Draw pictures into a subfolder per class."""
    for number, sketch in enumerate(synthetic_strokes(each * len(classes))[0]):
        path = folder / classes[number % len(classes)] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode(Image.fromarray(255 - rasterize(sketch, Raster(96)))))
    return folder


# --- Runs


@pytest.mark.parametrize("start", [TINY, ("--from", "default")])
def test_a_start_with_a_wrong_fold_leaves_nothing_that_blocks_the_next(
    start: Sequence[str], capfd: pytest.CaptureFixture[str]
) -> None:
    data = save_drawings(Path("mine"), ["cat", "dog"], 6)
    command = ["train", *start, "--data", data, "-o", "runs/mine", "--json"]
    assert "has no fold 7 to test on: it has 0, 1, 2." in refuse(*command, "--fold", 7, capfd=capfd)
    assert not Path("runs/mine").exists()
    succeed(*command, capfd=capfd)
    assert Path("runs/mine/result.json").exists()


def test_a_start_that_fails_leaves_what_was_in_the_folder(capfd: pytest.CaptureFixture[str]) -> None:
    data = save_drawings(Path("mine"), ["cat", "dog"], 6)
    Path("runs").mkdir()
    Path("runs/notes.txt").write_text("mine")
    said = refuse("train", *TINY, "--data", data, "-o", "runs", "--teacher", "nowhere", "--json", capfd=capfd)
    assert "nowhere' is not there" in said
    assert [path.name for path in Path("runs").iterdir()] == ["notes.txt"]


def test_a_start_without_cuda_leaves_nothing(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    said = refuse("train", *TINY, "--data", "mine", "--device", "cuda", "-o", "runs/mine", capfd=capfd)
    assert said == "torch finds no cuda device on this machine: choose --device cpu, or auto."
    assert not Path("runs").exists()


def test_drawings_that_were_added_after_a_failed_start_are_seen(capfd: pytest.CaptureFixture[str]) -> None:
    data = save_drawings(Path("mine"), ["cat"], 6)
    command = ["train", "--from", "default", "--data", data, "-o", "runs/mine", "--json"]
    assert "a training needs at least two classes" in refuse(*command, capfd=capfd)
    save_drawings(Path("mine"), ["dog"], 6)
    succeed(*command, capfd=capfd)
    assert SketchSet("runs/mine/data.parquet").classes == ["cat", "dog"]


def test_pieces_of_a_stopped_preparation_are_not_taken_for_other_files(capfd: pytest.CaptureFixture[str]) -> None:
    data = save_drawings(Path("mine"), ["cat", "dog"], 2)
    before = open_source(data).fingerprint()
    assert open_source(data).fingerprint() == before
    (data / "cat" / "0.png").write_bytes(encode(paint(HOUSE)))
    assert open_source(data).fingerprint() != before


@pytest.mark.parametrize(
    ("typo", "words"),
    [("defautl", "there is no model 'defautl': .* Did you mean 'default'?"), ("runs/nope", "'runs/nope' is not there")],
)
def test_a_typo_in_from_is_named(typo: str, words: str, capfd: pytest.CaptureFixture[str]) -> None:
    data = save_drawings(Path("mine"), ["cat", "dog"], 3)
    before, _, after = words.partition(" .* ")
    said = refuse("train", *TINY, "--from", typo, "--data", data, capfd=capfd)
    assert before in said
    assert after in said


# --- Folders and files


@pytest.mark.parametrize(
    "command",
    [
        ["data", "prepare", "flat", "-o", "set.parquet"],
        ["train", "--from", "default", "--data", "flat"],
        ["evaluate", "default", "--data", "flat"],
    ],
)
def test_a_folder_without_class_folders_is_told_so(command: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    Path("flat").mkdir()
    Path("flat/1.png").write_bytes(encode(paint(HOUSE)))
    assert refuse(*command, capfd=capfd) == (
        "'flat' has 1 drawing, but in no subfolder: put those of each class into a folder with its name, such as "
        "flat/cat/1.png."
    )


def test_broken_json_is_told_with_line_and_column(capfd: pytest.CaptureFixture[str]) -> None:
    Path("a.json").write_text('{"strokes": [[[1, 2],\n  [3 4]]]}')
    said = refuse("recognize", "a.json", capfd=capfd, code=1)
    assert said == "a.json: this is not valid JSON (line 2, column 6: Expecting ',' delimiter): mend it there."
    Path("b.ndjson").write_text("\n\n[[[0, 0], [9 4]]]\n")
    said = refuse("recognize", "b.ndjson", capfd=capfd, code=1)
    assert said == "b.ndjson:3: this is not valid JSON (line 3, column 14: Expecting ',' delimiter): mend it there."


@pytest.mark.parametrize(
    "command",
    [
        ["recognize", "a.json", "--sheet", "none/sheet.png"],
        ["evaluate", "default", "--data", "mine", "-o", "none/confusion.png"],
        ["evaluate", "default", "--data", "mine", "--unfinished", "none/curve.png"],
        ["export", "run", "-o", "none/model.safetensors"],
        ["bench", "default", "--chart", "none/bars.png"],
        ["features", "default", "--data", "set.parquet", "-o", "none/features.safetensors"],
    ],
)
def test_outputs_are_checked_before_the_work(command: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    """The inputs are not even there: whoever checks the output last would complain of them."""
    said = refuse(*command, capfd=capfd)
    assert said == f"cannot write '{command[-1]}' (there is no folder 'none'): make it, or choose another path."


@pytest.mark.parametrize("command", [["--from", "default", "--data"], ["--from", "default", "--add"]])
def test_a_runs_folder_is_checked_before_the_work(command: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    Path("file").write_text("")
    said = refuse("train", *command, save_drawings(Path("mine"), ["cat", "dog"], 3), "-o", "file", capfd=capfd)
    assert said == "cannot make 'file' (File exists): choose another folder with -o."
    said = refuse("train", *command, "mine", "-o", "/proc/mine", capfd=capfd)
    assert said.startswith("cannot make '/proc/mine' (")


@pytest.mark.parametrize("command", [["table1"], ["figure", "weights"], ["all"]])
def test_the_papers_folder_is_checked_before_the_work(command: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    Path("file").write_text("")
    said = refuse("paper", *command, "-o", "file/in", capfd=capfd)
    assert said.startswith("cannot write to 'file/in' ('")
    assert said.endswith("file' is a file): choose another folder.")


def test_outputs_of_another_kind_are_refused(capfd: pytest.CaptureFixture[str]) -> None:
    data = save_drawings(Path("mine"), ["cat", "dog"], 1)
    said = refuse("data", "prepare", data, "-o", "out.csv", capfd=capfd)
    assert said.endswith("'out.csv' is not called one: end its name in .parquet.")
    for command in (
        ["recognize", data, "--sheet"],
        ["bench", "default", "--chart"],
        ["data", "show", "a.parquet", "-o"],
    ):
        assert refuse(*command, "x.xyz", capfd=capfd) == "'x.xyz' must end in .png: choose another name."
    assert {path.name for path in Path().iterdir()} == {"mine"}


def test_skipped_files_are_counted_and_named(capfd: pytest.CaptureFixture[str]) -> None:
    data = save_drawings(Path("mine"), ["cat", "dog"], 3)
    for name in ("notes.txt", "loose.png", "cat/Thumbs.db", ".hidden"):
        (data / name).write_bytes(encode(paint(HOUSE)))
    printed = succeed("data", "prepare", data, "-o", "set.parquet", capfd=capfd)
    assert "3 files are no drawings of a class, and skipped: cat/Thumbs.db, loose.png, notes.txt." in printed
    found = json.loads(succeed("data", "prepare", data, "-o", "again.parquet", "--json", capfd=capfd))
    assert found["skipped"] == ["cat/Thumbs.db", "loose.png", "notes.txt"]
    printed = succeed("train", "--from", "default", "--data", data, "-o", "run", capfd=capfd)
    assert "skipped, being no drawings of a class: cat/Thumbs.db, loose.png, notes.txt" in printed
    with pytest.raises(SystemExit) as stopped:
        main(["recognize", str(data)])
    assert not stopped.value.code
    said = capfd.readouterr().err
    assert said == "2 files are no drawings by name, and skipped: mine/cat/Thumbs.db, mine/notes.txt.\n"


# --- Words


def test_an_empty_table_has_no_header(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["recognize", "nowhere.png", "nothing.json"])
    printed = capfd.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines()[-1] == "2 of 2 drawings could not be read."


def test_one_drawing_is_one_drawing(capfd: pytest.CaptureFixture[str]) -> None:
    Path("one").mkdir()
    Path("one/a.json").write_text(json.dumps(HOUSE))
    with pytest.raises(SystemExit):
        main(["recognize", "one", "--sheet", "sheet.png"])
    assert capfd.readouterr().err == "1 drawing on sheet.png.\n"
    printed = succeed("data", "prepare", save_drawings(Path("mine"), ["cat"], 1), "-o", "set.parquet", capfd=capfd)
    assert "mine: 1 class." in printed
    assert "1 drawing of 1 class in " in printed
    printed = succeed("data", "show", "set.parquet", capfd=capfd)
    assert "1 drawing of 1 class." in printed
    assert "1 fold; 0 drawings" in printed
    assert "1 sketch, 1 view each" in succeed("evaluate", "default", "--data", "set.parquet", capfd=capfd)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal")
@pytest.mark.parametrize("command", [["recognize", "a.json", "b" * 60 + ".json"], ["classes", "--search", "very"]])
def test_long_names_do_not_widen_tables_past_the_screen(command: list[str]) -> None:
    model = read_model(find_model("default"))
    labels = tuple(
        f"a very long name of a thing that goes on and on, and ends with number {i}" for i in range(model.answers)
    )
    Path("long.safetensors").write_bytes(to_bytes(dataclasses.replace(model, labels=labels)))
    for name in command[1:]:
        if name.endswith(".json"):
            Path(name).write_text(json.dumps(HOUSE))
    option = ["--model"] if command[0] == "recognize" else []
    lines = print_on_terminal(*command, *option, "long.safetensors", columns=70)
    assert len(lines) >= 3
    assert max(map(len, lines)) <= 70
    assert any("..." in line for line in lines)


def print_on_terminal(*arguments: str, columns: int) -> list[str]:
    """Run a command on a terminal of so many columns, and return the lines that it shows."""
    reader, writer = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "dumb"}
    command = [sys.executable, "-m", "dabnet", *arguments]
    with subprocess.Popen(command, stdout=writer, stderr=subprocess.PIPE, env=environment) as process:
        os.close(writer)
        shown = b""
        try:
            while some := os.read(reader, 10_000):
                shown += some
        except OSError:  # how Linux says that nobody writes any more
            pass
        os.close(reader)
    assert process.returncode == 0
    return shown.decode().splitlines()


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are any bytes on Linux only")
def test_names_that_are_not_utf8_survive_in_json() -> None:
    name = b"caf\xe9.json"
    Path(os.fsdecode(name)).write_text(json.dumps(HOUSE))
    command = [sys.executable, "-m", "dabnet", "recognize", os.fsdecode(name), "--json"]
    done = subprocess.run(command, capture_output=True, timeout=100, check=True)
    assert os.fsencode(json.loads(done.stdout)["drawing"]) == name


# --- Things that no list names


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.heic", b"\0\0\0\x1cftypheic\0\0\0\0", "this is a HEIC photograph, which phones can also save as JPEG, and"),
        ("a.avif", b"\0\0\0\x1cftypavif\0\0\0\0", "this is an AVIF picture, and cannot be read: give a PNG"),
        ("a.pdf", b"%PDF-1.7\n", "this is a PDF document, and cannot be read: give a PNG"),
        ("a.json", b"[[1, 2], [3, 9]]", "Points alone are no strokes: put a list around them"),
    ],
)
def test_what_people_have_and_is_not_read_is_named(
    name: str, data: bytes, words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    Path(name).write_bytes(data)
    assert words in refuse("recognize", name, capfd=capfd, code=1)


def test_an_address_is_not_taken_for_a_path(capfd: pytest.CaptureFixture[str]) -> None:
    said = refuse("recognize", "https://example.org/cat.png", capfd=capfd, code=1)
    assert said == "'https:/example.org/cat.png' is an address, and nothing is fetched: download it first."


def test_a_folder_as_a_model_says_how_to_pack_it(capfd: pytest.CaptureFixture[str]) -> None:
    Path("run").mkdir()
    Path("run/recipe.toml").write_text("")
    Path("a.json").write_text(json.dumps(HOUSE))
    said = refuse("recognize", "a.json", "--model", "run", capfd=capfd)
    assert said == "'run' is the folder of a training, not a packed model: dabnet export packs it."


def test_help_is_a_command_too(capfd: pytest.CaptureFixture[str]) -> None:
    assert "Tell what drawings show" in succeed("help", capfd=capfd)
    assert "--min-confidence" in succeed("help", "recognize", capfd=capfd)
