"""Files are there whole or not at all, whoever else writes, reads or plants something meanwhile."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from dabnet._files import open_beside, write_beside
from dabnet.errors import InputError


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    for name in ("out.png.writing", "out.png.partial", ".out.png.writing"):
        (tmp_path / name).symlink_to(precious)
    write_beside(tmp_path / "out.png", b"new")
    assert precious.read_text() == "mine"
    assert (tmp_path / "out.png").read_bytes() == b"new"


def test_names_cannot_be_guessed(tmp_path: Path) -> None:
    names = set()
    for _ in range(20):
        with open_beside(tmp_path / "file"):
            names |= set(names_in(tmp_path)) - {"file"}
    assert len(names) == 20
    assert names_in(tmp_path) == ["file"]


def test_only_regular_files_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "target").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    before = names_in(tmp_path)
    for name in ("folder", "pipe", "link", "dangling"):
        with pytest.raises(InputError, match=r"cannot write '.*' \(.*\): choose another place"):
            write_beside(tmp_path / name, b"new")
    with pytest.raises(InputError, match="not a regular file"):
        write_beside(Path("/dev/null"), b"new")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    assert (tmp_path / "target").read_text() == "mine"
    assert names_in(tmp_path) == before


def test_the_mode_is_kept_and_a_new_file_has_the_users(tmp_path: Path) -> None:
    secret, new = tmp_path / "secret", tmp_path / "new"
    secret.write_text("old")
    secret.chmod(0o600)
    with open_beside(secret) as file:
        (beside,) = (name for name in names_in(tmp_path) if name != "secret")
        assert stat.S_IMODE((tmp_path / beside).stat().st_mode) == 0o600  # at no time can others read it
        file.write(b"new")
    assert (secret.read_bytes(), stat.S_IMODE(secret.stat().st_mode)) == (b"new", 0o600)
    before = os.umask(0o027)
    try:
        write_beside(new, b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE(new.stat().st_mode) == 0o640


def test_of_two_writers_one_stays_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    contents = [bytes([letter]) * 300_000 for letter in b"ab"]
    write_beside(path, contents[0])
    problems: list[BaseException] = []

    def write(content: bytes) -> None:
        try:
            for _ in range(60):
                write_beside(path, content)
        except BaseException as problem:
            problems.append(problem)

    writers = [threading.Thread(target=write, args=(content,)) for content in contents]
    for writer in writers:
        writer.start()
    seen = set()
    while any(writer.is_alive() for writer in writers):
        seen.add(path.read_bytes())
    assert problems == []
    assert seen <= set(contents)
    assert names_in(tmp_path) == ["file"]


def test_a_name_as_long_as_the_system_allows_is_no_problem(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 250)
    write_beside(path, b"new")
    assert path.read_bytes() == b"new"


def test_the_real_problem_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"\(Not a directory\): choose another place"):
        write_beside(tmp_path / "file" / "out.png", b"")
    with pytest.raises(InputError, match=r"\(No such file or directory\): choose another place"):
        write_beside(tmp_path / "nowhere" / "out.png", b"")
    with pytest.raises(InputError, match=r"\(File name too long\)"):
        write_beside(tmp_path / ("n" * 300), b"")
    full = InputError, r"No space left on device\): make room, and resume the run"
    with pytest.raises(full[0], match=full[1]), open_beside(tmp_path / "full", then="resume the run"):
        raise OSError(28, os.strerror(28))
    assert names_in(tmp_path) == ["file"]


def test_what_is_interrupted_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def write_half() -> None:
        with open_beside(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert path.read_text() == "old"
    assert names_in(tmp_path) == ["file"]
