"""What a command of `dabnet paper` finds, and the files that it leaves: figures, tables, pictures, and their origin."""

from __future__ import annotations

import datetime
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image
from PIL.PngImagePlugin import PngInfo
from rich.table import Table as RichTable

import dabnet
from dabnet._files import write_beside
from dabnet.comparing.leaderboard import processor
from dabnet.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RESULTS = Path("docs/results")
"""Finished runs, one folder each."""
OUTPUT = RESULTS / "paper"


@dataclass(frozen=True)
class Table:
    """A table of words and numbers, for the screen and for Markdown."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]

    def to_rich(self) -> RichTable:
        """Return it as the screen shows it: names on the left, numbers on the right."""
        table = RichTable(title=self.title, title_justify="left")
        for column_number, column in enumerate(self.columns):
            table.add_column(column, justify="right" if column_number else "left")
        for row in self.rows:
            table.add_row(*row)
        return table

    def to_markdown(self) -> str:
        """Return it as a table of Markdown, under its title."""
        rule = tuple("---:" if column_number else "---" for column_number in range(len(self.columns)))
        return f"## {self.title}\n\n" + "".join(f"| {' | '.join(row)} |\n" for row in (self.columns, rule, *self.rows))


@dataclass(frozen=True)
class Finding:
    """What one claim of the paper comes to here."""

    name: str
    """The name of its files, without their endings."""
    title: str
    figures: dict[str, Any]
    """Every number, for JSON."""
    tables: list[Table] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    """What the figures mean, a sentence or two each."""
    picture: Figure | None = None
    seed: int | None = None
    """The seed of what was drawn at random here, or of the runs that are shown."""


def keep(finding: Finding, command: str, folder: Path) -> dict[str, Any]:
    """Write NAME.json, and NAME.md and NAME.png where there is something to read or see; return what the JSON holds.

    Where all figures are those that are there already, they keep their date and version.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(f"cannot make '{folder}' ({problem.strerror}): choose another folder with -o.") from None
    origin = {
        "command": command,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "seed": finding.seed,
        "processor": processor(),
        "dabnet": dabnet.__version__,
    }
    record = {**origin, **finding.figures}
    path = folder / f"{finding.name}.json"
    if path.exists():
        before = json.loads(path.read_text(encoding="utf-8"))
        same = {key: before.get(key) for key in ("date", "dabnet")}
        if {**record, **same} == before:  # what was found again was found then
            origin, record = {**origin, **same}, before
    write_beside(path, (json.dumps(record, indent=2, ensure_ascii=False) + "\n").encode())
    if finding.tables:
        write_beside(folder / f"{finding.name}.md", _to_markdown(finding, origin).encode())
    if finding.picture is not None:
        write_beside(folder / f"{finding.name}.png", _to_png(finding.picture, origin))
    return record


def _to_markdown(finding: Finding, origin: dict[str, Any]) -> str:
    parts = [f"# {finding.title}\n", *(table.to_markdown() for table in finding.tables)]
    if finding.remarks:
        parts.append("".join(f"* {remark}\n" for remark in finding.remarks))
    if finding.picture is not None:
        parts.append(f"![{finding.title}]({finding.name}.png)\n")
    seed = "" if origin["seed"] is None else f"seed {origin['seed']}, "
    parts.append(f"`{origin['command']}`, {origin['date']}, {seed}{origin['processor']}, dabnet {origin['dabnet']}\n")
    return "\n".join(parts)


def _to_png(picture: Figure, origin: dict[str, Any]) -> bytes:
    """Return a PNG of 64 colours, a quarter of the size, that holds its origin, wherever it is copied to."""
    drawn, small = io.BytesIO(), io.BytesIO()
    picture.savefig(drawn, dpi=120, format="png")
    about = PngInfo()
    about.add_itxt("Comment", json.dumps(origin))
    with Image.open(drawn) as image:
        palette = image.convert("RGB").quantize(64, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    palette.save(small, "PNG", optimize=True, pnginfo=about)
    return small.getvalue()
