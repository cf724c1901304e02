"""`dabnet page`: what it writes, and what it refuses to."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from dabnet.cli import main
from dabnet.packed import find_model
from dabnet.web import page


@pytest.fixture
def static(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page's files with a core that stands for the one that `make wasm` builds."""
    folder = tmp_path / "static"
    shutil.copytree(Path(page.__file__).parent / "static", folder)
    (folder / page.WASM).write_bytes(b"\0asm")
    (folder / page.RUNTIME).write_text("export class Recognizer {}\n")
    monkeypatch.setattr(page, "_static", lambda: folder)
    return folder


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["page", *map(str, arguments)])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert run(*arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("dabnet: ")
    assert said.count("\n") == 1
    return said


def test_a_folder_holds_every_file_that_the_page_asks_for(
    static: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = tmp_path / "new" / "site"
    assert run("-o", site) == 0
    assert str(site) in capsys.readouterr().out
    assert (site / page.MODEL).read_bytes() == find_model("default").read_bytes()
    assert (site / page.WASM).read_bytes() == b"\0asm"
    index = (site / "index.html").read_text()
    assert 'data-network="page" data-min-confidence="0.5"' in index
    named = set(re.findall(r'(?:href|src)="([^"]+)"', index))
    for script in site.glob("*.js"):
        named |= set(re.findall(r'"\./(\w+\.js)"', script.read_text()))
    assert named <= {path.name for path in site.iterdir()}
    assert not list(tmp_path.rglob("*.writing"))


def test_one_file_holds_it_all(static: Path, tmp_path: Path) -> None:
    assert run("--single", "-o", tmp_path / "pad.html", "--min-confidence", "0.3", "--model", "tuberlin") == 0
    text = (tmp_path / "pad.html").read_text()
    assert 'data-min-confidence="0.3"' in text
    assert not re.findall(r'(?:href|src)="(?!data:)[^"]*"', text)
    assert text.count('<script type="text/plain" data-file=') == 2
    assert "connect-src" not in text
    assert "default-src 'none'" in text
    assert run("--single", "-o", tmp_path / "pad.html") == 0  # the file that -o names is replaced


def test_a_folder_with_something_in_it_is_left_alone(
    static: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").mkdir()
    assert run("-o", tmp_path / "mine") == 0  # it was empty
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "index.html").write_text("mine")
    assert "is there already" in refused(capsys, "-o", tmp_path / "other")
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["index.html"]
    (tmp_path / "file").write_text("mine")
    assert "is there already" in refused(capsys, "-o", tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["-o", "site", "--single"], "end it in .html"),
        (["-o", "pad.html"], "add --single"),
        (["-o", "site", "--model", "tuberlinn"], "Did you mean"),
        (["-o", "/dev/null/site"], "cannot write"),
        (["-o", "/dev/null/pad.html", "--single"], "cannot write"),
    ],
)
def test_what_cannot_be_written_is_one_sentence(
    arguments: list[str],
    sentence: str,
    static: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert sentence in refused(capsys, *arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["static"]


def test_without_the_core_it_says_how_to_build_it(
    static: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (static / page.WASM).unlink()
    assert "make wasm" in refused(capsys, "-o", tmp_path / "site")
    assert "make wasm" in refused(capsys, "--single", "-o", tmp_path / "pad.html")
    assert not (tmp_path / "site").exists()
