"""Files that are there whole or not at all.

A file is written under a name that nobody can guess, in the folder it belongs to, and then moved over its place in one
step. So whoever reads meanwhile sees the old file or the new one, of two writers the last one's stays, and nobody can
plant something where it will be written.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO

from dabnet.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


def write_beside(path: Path, data: bytes, then: str = "try again") -> None:
    """Write a file whole or not at all; `then` is what to do once it is possible."""
    with open_beside(path, then) as file:
        file.write(data)


@contextmanager
def open_beside(path: Path, then: str = "try again") -> Iterator[BinaryIO]:
    """Open a file that takes its place at the end, and only if nothing went wrong.

    It has the mode of the file it replaces, which must be a regular one: no folder, link, pipe or device is replaced.
    """
    try:
        mode = _mode(path)
        beside = beside_name(path)
        # Nothing that is already there is opened or followed. The mode is less what the user's umask says.
        number = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode or 0o666)
        try:
            with os.fdopen(number, "wb") as file:
                yield file
                file.flush()
                if mode is not None and hasattr(os, "fchmod"):
                    os.fchmod(file.fileno(), mode)
                os.fsync(file.fileno())
            _mode(path)  # what is there may have changed meanwhile
            beside.replace(path)
        except BaseException:
            with suppress(OSError):  # the first problem is the one to tell
                beside.unlink()
            raise
    except OSError as problem:
        raise cannot_write(path, problem, then) from None


def check_output(path: Path, suffixes: Sequence[str] = ()) -> None:
    """Refuse a path that cannot be written to, or ends in none of the suffixes, before the work that it is to hold."""
    if suffixes and path.suffix.lower() not in suffixes:
        raise InputError(f"'{path}' must end in {' or '.join(suffixes)}: choose another name.")
    if not path.parent.is_dir():
        raise InputError(
            f"cannot write '{path}' (there is no folder '{path.parent}'): make it, or choose another path."
        )
    try:
        _mode(path)
        beside = beside_name(path)
        os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))  # whether it works is known only then
        beside.unlink()
    except OSError as problem:
        raise cannot_write(path, problem) from None


def check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be written to, or made, before the work that it is to hold."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise InputError(f"cannot write to '{folder}' ('{there}' is a file): choose another folder.")
    check_output(beside_name(there / "file"))


def beside_name(path: Path) -> Path:
    """Return a name in the same folder that nobody can guess, however long the file's own is."""
    return path.with_name(f".dabnet-{secrets.token_hex(8)}.writing")


def cannot_write(path: Path, problem: OSError, then: str = "try again") -> InputError:
    """Say what went wrong, and what to do."""
    is_full = problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    hint = "make room" if is_full else "choose another place, or make it one that can be written to"
    return InputError(f"cannot write '{path}' ({problem.strerror or problem}): {hint}, and {then}.")


def _mode(path: Path) -> int | None:
    """Return the mode of the file that is to be replaced; None if there is none."""
    try:
        found = path.lstat().st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found):
        kind = "a symbolic link" if stat.S_ISLNK(found) else os.strerror(errno.EISDIR) if stat.S_ISDIR(found) else None
        raise OSError(errno.EEXIST, kind or "not a regular file")
    return stat.S_IMODE(found) & 0o777
