"""The page to draw on, as files: for the server, for any web server, or as one file that opens without one.

The files in `static/` are written by hand, but for the core as WebAssembly and its script, which `make wasm` puts
there: with these the page runs the network itself, and without them it asks the server that it came from.
"""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

from dabnet._files import beside_name, cannot_write
from dabnet.errors import InputError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable
    from pathlib import Path

Network = Literal["page", "server", "either"]
"""Where the network runs; `either` is in the page, and on the server if a browser cannot run it."""

KINDS = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".safetensors": "application/octet-stream",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
}
"""Content types by suffix."""
POLICY = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'"
"""The content security policy that the page keeps to: nothing from elsewhere, nothing to elsewhere."""
INDEX, ENTRY, STYLE, ICON = "index.html", "pad.js", "pad.css", "icon.svg"
MODEL = "model.safetensors"
WASM, RUNTIME = "dabnet.wasm", "dabnet.js"
"""The core, and the module that calls it."""

_META = re.compile(r'<meta name="dabnet"[^>]*>')
_IMPORT = re.compile(r'^import \{ (.+) \} from "\./(\w+\.js)";\n', re.MULTILINE)
_LATER = re.compile(r'import\("\./(\w+\.js)"\)')
_EXPORT = re.compile(r"^export (?=(?:async function|function|class|const) (\w+))", re.MULTILINE)


def has_core() -> bool:
    """Return whether the core was built as WebAssembly, so that the page can run the network itself."""
    return all((_static() / name).is_file() for name in (WASM, RUNTIME))


def page_files(min_confidence: float, model: bytes | None = None, network: Network = "page") -> dict[str, bytes]:
    """Return the page's files by name; without a model the network runs on the server."""
    found = _read_static()
    if model is None:
        network = "server"
        found = {name: content for name, content in found.items() if name not in (WASM, RUNTIME)}
    else:
        _check_core(found)
        found[MODEL] = model
    found[INDEX] = _set_up(found[INDEX].decode(), network, min_confidence).encode()
    return found


def single_page(min_confidence: float, model: bytes) -> bytes:
    """Return the whole page with the network as one HTML file; its policy lets it ask nobody."""
    found = _read_static()
    _check_core(found)
    style = f"\n{found[STYLE].decode()}"
    script = f"\n{bundle({name: text.decode() for name, text in found.items() if name.endswith('.js')}, ENTRY)}"
    policy = (
        f"default-src 'none'; script-src {_hash(script)} 'wasm-unsafe-eval'; style-src {_hash(style)}; img-src data:"
    )
    page = _set_up(found[INDEX].decode(), "page", min_confidence)
    charset = '<meta charset="utf-8">'
    for old, new in (
        (charset, f'{charset}\n  <meta http-equiv="content-security-policy" content="{policy}">'),
        (f'href="{ICON}"', f'href="data:image/svg+xml;base64,{_base64(found[ICON])}"'),
        (f'<link rel="stylesheet" href="{STYLE}">', f"<style>{style}</style>"),
        (f'  <script type="module" src="{ENTRY}"></script>\n', ""),
        ("</body>", f"{_data(WASM, found[WASM])}\n{_data(MODEL, model)}\n<script>{script}</script>\n</body>"),
    ):
        assert page.count(old) == 1, old
        page = page.replace(old, new)
    return page.encode()


def write_folder(folder: Path, contents: dict[str, bytes]) -> None:
    """Write files into a folder that is new or empty; it is there whole or not at all."""
    beside = beside_name(folder.absolute())
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(f"'{folder}' is there already: choose a folder that is new or empty.")
        beside.mkdir(parents=True)
        for name, content in contents.items():
            (beside / name).write_bytes(content)
        if folder.exists():  # and may be where the command is run, so it stays
            for name in contents:
                (beside / name).rename(folder / name)
        else:
            beside.rename(folder)
    except OSError as problem:
        raise cannot_write(folder, problem) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def bundle(modules: dict[str, str], entry: str) -> str:
    r"""Return modules as one classic script, each a function that returns its exports, after those that it imports.

    >>> print(bundle({"a.js": 'import { b } from "./b.js";\nb();\n', "b.js": "export function b() {}\n"}, "a.js"))
    "use strict";
    (() => {
    const b_js = (() => {
    function b() {}
    return { b };
    })();
    (() => {
    const { b } = b_js;
    b();
    })();
    })();
    """
    order: list[str] = []

    def visit(name: str) -> None:
        if name not in order:
            for needed in [*(found[1] for found in _IMPORT.findall(modules[name])), *_LATER.findall(modules[name])]:
                visit(needed)
            order.append(name)

    visit(entry)
    return "\n".join(['"use strict";', "(() => {", *(_wrap(name, modules[name]) for name in order), "})();"])


def _wrap(name: str, module: str) -> str:
    exports = _EXPORT.findall(module)
    body = _IMPORT.sub(lambda found: f"const {{ {found[1]} }} = {_variable(found[2])};\n", module)
    body = _LATER.sub(lambda found: _variable(found[1]), body)
    body = _EXPORT.sub("", body).rstrip()
    if not exports:
        return f"(() => {{\n{body}\n}})();"
    return f"const {_variable(name)} = (() => {{\n{body}\nreturn {{ {', '.join(exports)} }};\n}})();"


def _variable(name: str) -> str:
    return name.replace(".", "_")


def _set_up(index: str, network: Network, min_confidence: float) -> str:
    return _META.sub(f'<meta name="dabnet" data-network="{network}" data-min-confidence="{min_confidence}">', index)


def _data(name: str, content: bytes) -> str:
    """Return a file as an element that nothing runs or shows, where the page finds it."""
    return f'<script type="text/plain" data-file="{name}">{_base64(content)}</script>'


def _hash(text: str) -> str:
    return f"'sha256-{_base64(hashlib.sha256(text.encode()).digest())}'"


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _read_static() -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in _static().iterdir() if each.is_file()}


def _check_core(found: dict[str, bytes]) -> None:
    if WASM not in found or RUNTIME not in found:
        raise InputError(
            "the page needs the core as WebAssembly, which is not built here: run 'make wasm', and try again."
        )


def _static() -> Traversable:
    return files("dabnet.web") / "static"
