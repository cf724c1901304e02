"""What MkDocs does for the site beyond its own: hooks that mkdocs.yml names.

Pages are written for a clone and link to any file of it. What lies outside docs/ comes along below `source/`: Markdown
as pages, folders as lists, everything else as it is. The page of commands is what `--help` prints, the pad is what
`dabnet page` writes, and the build fails where a public name, a page or a link is missing.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAD = "pad"
"""The folder of the site that `dabnet page` writes."""
OUTSIDE = "source"
"""The folder of the site for what lies outside docs/."""
PUBLIC = ("dabnet", "dabnet.binarizers", "dabnet.runtime", "dabnet.sketches")
"""Modules whose `__all__` is documented."""
LINK = re.compile(r'(\]\()([^)\s]+)((?: "[^"]*")?\))')
CODE = re.compile(r"^(?P<fence>```|~~~).*?^(?P=fence)|(?<=\n\n)(?: {4}[^\n]*\n)+|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add pages that the navigation does not name to the guides, and see that every public name is documented."""
    assert config.nav is not None
    named = set(re.findall(r"[\w/.-]+\.md", str(config.nav)))
    guides = next(section["Guides"] for section in config.nav if "Guides" in section)
    guides += [page.name for page in sorted(DOCS.glob("*.md")) if page.name not in named]
    if missing := undocumented((DOCS / "api.md").read_text(encoding="utf-8")):
        raise PluginError(f"docs/api.md lacks {', '.join(missing)}: add a line '::: NAME' for each.")
    return config


def undocumented(page: str) -> list[str]:
    """Return the public names that the page of the API has no line for."""
    names = [f"{module}.{name}" for module in PUBLIC for name in importlib.import_module(module).__all__]
    modules = {*PUBLIC, "dabnet.errors", "dabnet.__version__"}
    documented = set(re.findall(r"^::: ([\w.]+)$", page, re.MULTILINE)) | modules
    aliases = {"dabnet.runtime.Recognizer": "dabnet.Recognizer"}
    return [name for name in names if aliases.get(name, name) not in documented]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Bring along what pages link to outside docs/, and what that links to."""
    waiting = [ROOT / "docs" / file.src_uri for file in files.documentation_pages()]
    waiting += [ROOT / name.removeprefix(f"{OUTSIDE}/") for name in re.findall(rf"{OUTSIDE}/[\w/.-]+", str(config.nav))]
    seen: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        uri = site_uri(path)
        if files.get_file_from_path(uri) is None and path.is_dir():
            files.append(File.generated(config, uri, content=list_folder(path)))
            waiting += [each for each in path.iterdir() if each.is_file()]
        elif files.get_file_from_path(uri) is None:
            files.append(File.generated(config, uri, abs_src_path=str(path)))
        if path.suffix == ".md":
            waiting += [target for _, target in links(path.read_text(encoding="utf-8"), path) if target.exists()]
    return files


def links(text: str, path: Path) -> Iterator[tuple[str, Path]]:
    """Yield the links of a document of the clone that lead to its files, and where they lead."""
    for _, link, _ in LINK.findall(CODE.sub("", text)):
        target = unquote(link.partition("#")[0])
        if target and not re.match(r"[a-z]+:", link) and not target.startswith(f"{PAD}/"):
            yield link, Path(os.path.normpath(path.parent / target))


def site_uri(path: Path) -> str:
    """Return what a file or folder of the clone is called among MkDocs' sources."""
    inside = path.relative_to(DOCS) if path.is_relative_to(DOCS) else OUTSIDE / path.relative_to(ROOT)
    return (inside / "index.md" if path.is_dir() else inside).as_posix()


def clone_path(uri: str) -> Path:
    """Return the file of the clone that one of MkDocs' sources is."""
    return ROOT / uri.removeprefix(f"{OUTSIDE}/") if uri.startswith(f"{OUTSIDE}/") else DOCS / uri


def list_folder(path: Path) -> str:
    """Return a page that lists the files of a folder."""
    files = sorted(each.name for each in path.iterdir() if each.is_file())
    listed = "\n".join(f"* [{name}]({quote(name)})" for name in files)
    folders = "\n".join(f"* `{each.name}/`" for each in sorted(path.iterdir()) if each.is_dir() and each.name[0] != "_")
    return f"# {path.relative_to(ROOT).as_posix()}\n\nA folder of the repository.\n\n{listed}\n{folders}\n"


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Turn links within the clone into links within the site, and fill in what commands print."""
    path = clone_path(page.file.src_uri)
    found = dict(links(markdown, path)) if path.is_file() else {}

    def rewrite(match: re.Match[str]) -> str:
        target = found.get(match[2])
        if target is None or not target.exists():
            return match[0]
        here = PurePosixPath(page.file.src_uri).parent
        anchor = match[2].partition("#")[2]
        link = quote(os.path.relpath(site_uri(target), here)) + (f"#{anchor}" if anchor else "")
        return f"{match[1]}{link}{match[3]}"

    markdown = LINK.sub(rewrite, markdown)
    return markdown.replace("<!-- commands -->", commands_page()) if "<!-- commands -->" in markdown else markdown


def commands_page() -> str:
    """Return what every command says of itself."""
    from dabnet.cli import COMMANDS

    told = {}
    waiting = list(COMMANDS)
    while waiting:
        name = waiting.pop(0)
        told[name] = help_of(name.split())
        if "COMMAND [ARGS]" in told[name]:  # a group: each of its commands is told, too
            waiting = [f"{name} {sub}" for sub in re.findall(r"^│ ([a-z][\w-]+) ", told[name], re.MULTILINE)] + waiting
    return "\n\n".join(f"## dabnet {name}\n\n```text\n{said}\n```" for name, said in told.items())


def help_of(words: list[str]) -> str:
    """Return what `dabnet WORDS --help` prints."""
    environment = os.environ | {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}
    command = [str(Path(sys.executable).with_name("dabnet")), *words, "--help"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise PluginError(f"'dabnet {' '.join(words)} --help' failed: {done.stderr.strip()}")
    return "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines())


def on_post_build(config: MkDocsConfig) -> None:
    """Write the pad, and see that every link of the site leads somewhere."""
    from dabnet.runtime.recognizer import MIN_CONFIDENCE, Recognizer
    from dabnet.web.page import has_core, page_files, write_folder

    if not has_core():
        raise PluginError("the pad needs the core as WebAssembly: run make wasm.")
    site = Path(config.site_dir)
    write_folder(site / PAD, page_files(MIN_CONFIDENCE, Recognizer.load().session.data))
    if broken := broken_links(site):
        raise PluginError("links that lead nowhere: " + "; ".join(broken))


class _Names(HTMLParser):
    """What a page links to, and which of its parts can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.add(value)
            elif name in ("id", "name") and value:
                self.ids.add(value)


def broken_links(site: Path) -> list[str]:
    """Return the links of a site's pages, to itself, that lead nowhere."""
    pages = {path: _Names(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            target = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(parts.fragment)
            if not target.exists() or (anchor and target in pages and anchor not in pages[target].ids):
                found.append(f"{path.relative_to(site)}: {link}")
    return found
