"""The leaderboard: methods by their accuracy, from files that anyone can add to.

An entry is a TOML file, written by `dabnet leaderboard RUN ... --add NAME` from the finished runs of one method that
differ in their seeds only:

    method = "XNOR-Net"
    network = "resnet18, 0.25 of the width, 64 pixels, 20 epochs"     # entries that share the next two are comparable
    test = "6667 drawings of 250 classes, 10 views each"
    seeds = [0, 1]
    top1 = [0.2964, 0.2946]       # of each seed, on the test fold
    bytes = 105932                # of the packed file, without the names of the classes
    milliseconds = 0.21           # for one drawing on one thread, the best of many
    processor = "AMD EPYC"

    [settings]                    # of the method: what differs from the defaults of a binary network

"""

from __future__ import annotations

import dataclasses
import json
import platform
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dabnet._files import write_beside
from dabnet.errors import InputError
from dabnet.training.means import Mean, average

_KINDS: dict[str, Any] = {
    "method": str,
    "network": str,
    "test": str,
    "seeds": int,
    "top1": int | float,
    "bytes": int,
    "milliseconds": int | float,
    "processor": str,
    "settings": dict,
}
"""What the values of an entry are, and those in its two lists."""


@dataclass(frozen=True)
class Entry:
    """What is known of one method."""

    method: str
    network: str
    test: str
    seeds: list[int]
    top1: list[float]
    bytes: int
    milliseconds: float
    processor: str
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def accuracy(self) -> Mean:
        """The mean over seeds."""
        return average(self.top1)

    def to_toml(self) -> str:
        """Write it as a file holds it."""
        values = dataclasses.asdict(self)
        settings = values.pop("settings")
        lines = [*map(_line, values.items())]
        return "\n".join([*lines, "", "[settings]", *map(_line, settings.items()), ""])

    def file_name(self) -> str:
        """Return the method's name in plain letters, with the network's: one file per method and network."""
        words = re.sub(r"[^a-z0-9]+", "-", f"{self.method} {self.network.split(', ')[0]}".lower())
        return f"{words.strip('-')}.toml"


def _line(setting: tuple[str, Any]) -> str:
    return f"{setting[0]} = {json.dumps(setting[1], ensure_ascii=False)}"


def write_entry(entry: Entry, folder: Path) -> None:
    """Write an entry to its file, which may be there, but not be another method's or network's."""
    if not re.search("[a-z0-9]", entry.method.lower()):
        raise InputError(f"'{entry.method}' has no letter from a to z and no digit, which its file is named by.")
    path = folder / entry.file_name()
    if path.exists():
        former = _read(path)
        if (former.method, former.network, former.test) != (entry.method, entry.network, entry.test):
            raise InputError(f"'{path}' is '{former.method}' with {former.network}: choose another name.")
    folder.mkdir(parents=True, exist_ok=True)
    write_beside(path, entry.to_toml().encode())


def read_entries(folder: Path) -> list[Entry]:
    """Read all entries of a folder, the best first among those that are comparable."""
    if not folder.is_dir():
        raise InputError(f"'{folder}' is not there: run this in a clone of dabnet, or give a folder with --folder.")
    entries = [_read(path) for path in sorted(folder.glob("*.toml"))]
    return sorted(entries, key=lambda entry: (entry.test, entry.network, -entry.accuracy.mean))


def _read(path: Path) -> Entry:
    try:
        entry = Entry(**tomllib.loads(path.read_text(encoding="utf-8")))
        for name, kind in _KINDS.items():
            value = getattr(entry, name)
            if not all(isinstance(each, kind) for each in (value if name in ("seeds", "top1") else [value])):
                raise TypeError(f"its {name} is {value!r}")
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, TypeError) as problem:
        raise InputError(f"'{path}' is not an entry of the leaderboard ({problem}).") from None
    if not entry.seeds or len(set(entry.seeds)) != len(entry.seeds) or len(entry.top1) != len(entry.seeds):
        raise InputError(f"'{path}' needs seeds that differ, and an accuracy in top1 for each of them.")
    if not all(0 <= share <= 1 for share in entry.top1):
        raise InputError(f"'{path}' needs shares from 0 to 1 in top1.")
    return entry


def group_entries(entries: list[Entry]) -> dict[tuple[str, str], list[Entry]]:
    """Put comparable entries together, by test and network."""
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        groups.setdefault((entry.test, entry.network), []).append(entry)
    return groups


def processor() -> str:
    """Name this machine's processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
