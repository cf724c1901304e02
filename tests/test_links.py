"""Links in the documents lead somewhere: to a tracked file or folder of this repository, to a heading that is there."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.sizes import ROOT, tracked_files

TRACKED = set(tracked_files()) if (ROOT / ".git").exists() else set()
BUILT = {ROOT / "docs" / "pad" / "index.html"}
"""What only the site has: `make docs` puts it there."""
TARGETS = TRACKED | BUILT | {folder for path in TRACKED for folder in path.parents}
DOCUMENTS = sorted(path for path in TRACKED if path.suffix == ".md")
CODE = re.compile(r"^(```|~~~).*?^\1|(?<=\n\n)(?: {4}[^\n]*\n)+|`[^`\n]+`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r'\]\(([^)\s]+)(?: "[^"]*")?\)|^\[[^]]+\]: (\S+)|(?:href|src)="([^"]+)"', re.MULTILINE)
HEADING = re.compile(r"^#{1,6} +(.*?) *#*$", re.MULTILINE)


def links(text: str) -> list[str]:
    """Return where a document's links lead, but for those in code."""
    return [next(filter(None, found)) for found in LINK.findall(CODE.sub("", text))]


def anchors(text: str) -> set[str]:
    """Return the names of a document's headings, as GitHub makes them."""
    seen: Counter[str] = Counter()
    names = set()
    for heading in HEADING.findall(re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.MULTILINE | re.DOTALL)):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        names.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return names


def broken(document: Path, link: str) -> str | None:
    """Return what is wrong with a link; links to other sites are not followed."""
    if re.match(r"[a-z]+:", link):
        return None
    name, _, anchor = unquote(link).partition("#")
    target = (document.parent / name).resolve() if name else document
    if target not in TARGETS:
        return f"{link}: no such file or folder"
    if anchor and (target.suffix != ".md" or anchor not in anchors(target.read_text())):
        return f"{link}: no such heading"
    return None


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(document: Path) -> None:
    found = [problem for link in links(document.read_text()) if (problem := broken(document, link))]
    assert not found


def test_a_link_that_leads_nowhere_is_found() -> None:
    text = '# One `a`: two, 3\n[a](b.md "c") `[x](y)`\n```\n[z](z)\n```\n![d](e%20f.png)\n\n    [code](g)\n\n[h]: i#j\n'
    assert links(text) == ["b.md", "e%20f.png", "i#j"]
    assert anchors("# One `a`: two, 3\n## B\n## B\n```\n# no\n```\n") == {"one-a-two-3", "b", "b-1"}
    if DOCUMENTS:
        readme = ROOT / "README.md"
        assert all(broken(readme, link) for link in ("docs/nothing.md", "docs/results.md#nothing", "#nothing"))
        assert not any(broken(readme, link) for link in ("https://x.org", "docs", "docs/results.md#theorem-1"))
