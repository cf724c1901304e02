"""The project speaks the words of its field, and names a thing in one way."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.sizes import ROOT, tracked_files

pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no clone: git tracks nothing here")

NAMES = {"sketch_a_net"}
"""Names of things that look like rates."""
RATE = re.compile(r"(?:^|_)([a-z0-9]+)_an?_[a-z]|(?:^|_)([A-Z0-9]+)_AN?_[A-Z]|^k[A-Z]\w*[a-z]An?[A-Z]")
PREPOSITIONS = {"as", "at", "by", "for", "from", "in", "into", "is", "of", "on", "to", "with"}
"""What stands before `_a_` where it is no rate."""
PRIVATE = {"across", "finisher", "finishing", "followers", "place", "places"}
"""Words for what the field calls width, epilogue and position."""
PYTHON_NOISE = re.compile(r'""".*?"""|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#[^\n]*', re.S)
C_NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
PROSE = re.compile(
    r"\b(?:bits?|drawings|images|lookups|look-ups|milliseconds|ms|nanoseconds|ns|pixels|products|sketches)"
    r" an? (?:activation|channel|class|core|cycle|epoch|filter|layer|pixel|row|second|side|sketch|weight)\b"
    r"|\bone's own\b|\bplace after place\b|\bthe way of\b"
)


def tracked(*endings: str) -> list[Path]:
    """Return the tracked files with these endings, without results, and without this one, which names the words."""
    results = (ROOT / "benchmarks" / "results", ROOT / "docs" / "results")
    return [
        path
        for path in tracked_files()
        if path.name.endswith(endings) and path != Path(__file__) and not any(path.is_relative_to(r) for r in results)
    ]


def names_in(path: Path) -> set[str]:
    """Return the names in a file's code, without comments and texts; the names of tests are sentences, and left out."""
    text = path.read_text(encoding="utf-8")
    noise = PYTHON_NOISE if path.suffix == ".py" else C_NOISE
    return {name for name in re.findall(r"[A-Za-z_]\w*", noise.sub(" ", text)) if not name.startswith("test_")}


@pytest.fixture(scope="module")
def code() -> list[tuple[str, str]]:
    found = []
    for path in tracked(".py", ".cpp", ".h", ".c", ".js", ".mjs"):
        found += [(str(path.relative_to(ROOT)), name) for name in sorted(names_in(path))]
    assert len(found) > 10_000
    return found


def test_rates_are_named_with_per(code: list[tuple[str, str]]) -> None:
    rates = [(where, name, RATE.search(name)) for where, name in code if name.lower() not in NAMES]
    assert [(where, name) for where, name, found in rates if found and not PREPOSITIONS & set(found.groups())] == []


def test_names_have_the_fields_words(code: list[tuple[str, str]]) -> None:
    parts = [(where, name, set(re.findall(r"[A-Z]?[a-z]+", name))) for where, name in code]
    private = PRIVATE | {word.capitalize() for word in PRIVATE}
    assert [(where, name) for where, name, words in parts if words & private] == []
    assert [each for each in code if re.search(r"look_up|add_up", each[1])] == []


def test_docstrings_say_return_and_not_give() -> None:
    found = []
    for path in tracked(".py"):
        found += [
            f"{path.relative_to(ROOT)}: {line}" for line in re.findall(r'"""Gives?\b[^\n]*', path.read_text("utf-8"))
        ]
    assert found == []


def test_prose_says_one_bit_per_weight() -> None:
    endings = (".py", ".md", ".cpp", ".h", ".c", ".js", ".mjs", ".toml", ".html", "Makefile")
    found = []
    for path in tracked(*endings):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if PROSE.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert found == []
