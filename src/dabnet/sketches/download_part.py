"""A file that is being downloaded: the bytes so far in NAME.part, and in NAME.part.json which version they are of."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from typing import IO, TYPE_CHECKING

from dabnet.errors import DownloadError

if TYPE_CHECKING:
    from pathlib import Path

CHUNK = 1 << 18


class Sums:
    """Length and checksums of the bytes so far."""

    def __init__(self) -> None:
        self.count = 0
        self._hashes = {"sha256": hashlib.sha256(), "md5": hashlib.md5(usedforsecurity=False)}

    @classmethod
    def of_file(cls, path: Path) -> Sums:
        """Read a file that is there."""
        sums = cls()
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                sums.add(chunk)
        return sums

    def add(self, chunk: bytes) -> None:
        """Count bytes that came."""
        self.count += len(chunk)
        for hashing in self._hashes.values():
            hashing.update(chunk)

    def digest(self, name: str) -> str:
        """Return a checksum, by its name, in hexadecimal digits."""
        return self._hashes[name].hexdigest()

    def find_wrong(self, checksums: dict[str, str]) -> str | None:
        """Say which checksum is not as it should be, if one is not."""
        for name, wanted in checksums.items():
            if self.digest(name) != wanted:
                return f"its {name} is {self.digest(name)}, not {wanted}"
        return None


@dataclass(frozen=True)
class Origin:
    """What the server said of the file when it began to send it."""

    url: str
    total: int | None
    validator: str | None
    """An ETag or a date that changes with the file; without it, the part cannot be resumed."""
    md5: str | None


class Part:
    """The file as far as it is there, which version of it that is, and how long it may be."""

    def __init__(self, url: str, target: Path, expected: int | None, most: int) -> None:
        self.url, self.expected = url, expected
        self.most = most if expected is None else min(most, expected)
        self.path = target.with_name(target.name + ".part")
        self.notes = target.with_name(target.name + ".part.json")
        self.forget()

    def forget(self) -> None:
        """Begin with nothing."""
        self.origin: Origin | None = None
        self.sums = Sums()
        self.resumed_from = 0

    @property
    def have(self) -> int:
        """The bytes that are there."""
        return self.sums.count

    @property
    def total(self) -> int | None:
        """The bytes in all, if the server said."""
        return self.origin.total if self.origin else None

    @property
    def validator(self) -> str | None:
        """What names the version of the bytes that are there."""
        return self.origin.validator if self.origin and self.have else None

    def recall(self) -> None:
        """Take up what an earlier call left of this address, if it can be gone on with."""
        try:
            origin = Origin(**json.loads(self.notes.read_text()))
            sums = Sums.of_file(self.path)
        except (OSError, ValueError, TypeError):
            return
        if origin.url == self.url:
            self.origin, self.sums, self.resumed_from = origin, sums, sums.count

    def restart(self, origin: Origin) -> None:
        """Empty the part. The notes go first and come last, so that they never speak of other bytes than these."""
        self.forget()
        self.notes.unlink(missing_ok=True)
        self.path.write_bytes(b"")
        self.notes.write_text(json.dumps(asdict(origin)))
        self.origin = origin

    def append(self, file: IO[bytes], chunk: bytes) -> None:
        """Write bytes that came."""
        view = memoryview(chunk)
        while view:
            view = view[file.write(view) :]
        self.sums.add(chunk)

    def check_length(self, length: int) -> None:
        """Refuse a file that is not as long as it should be, and delete what there is of it."""
        if length <= self.most and self.expected in (None, length):
            return
        wanted = f"{self.expected:,}" if self.expected is not None else f"at most {self.most:,}"
        self.discard()
        hint = "nothing was kept; check the address, and whether the file was changed there"
        raise DownloadError(f"{self.path.stem} has {length:,} bytes where {wanted} were expected: {hint}.")

    def discard(self) -> None:
        """Delete the part."""
        self.notes.unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)

    def become(self, target: Path) -> None:
        """Make the part the whole file, in one step."""
        with self.path.open("rb+") as file:
            os.fsync(file.fileno())
        self.path.replace(target)
        self.notes.unlink(missing_ok=True)
