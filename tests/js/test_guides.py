"""The JavaScript in the README and the guides runs, in Node, as it stands there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dabnet.packed import find_model
from tests.docs.guides import Block, blocks

from .conftest import ROOT, run

# Pages fetch files by name, as a browser does; here they come from the folder of the package.
FETCH = """import { readFile } from "node:fs/promises";
globalThis.fetch = async (name) => new Response(await readFile(`node_modules/dabnet/${name}`), {
  headers: { "content-type": String(name).endsWith(".wasm") ? "application/wasm" : "application/octet-stream" } });
"""
TELL = "for (const { label, probability } of answers) console.log(label, probability);\n"


@pytest.mark.parametrize("block", blocks("js"), ids=lambda block: block.page.stem)
def test_a_guides_javascript_runs(block: Block, built: Path, tmp_path: Path) -> None:
    package = tmp_path / "node_modules" / "dabnet"
    package.mkdir(parents=True)
    for source in (ROOT / "js" / "dabnet.js", ROOT / "js" / "package.json", built / "dabnet.wasm"):
        shutil.copy(source, package)
    shutil.copy(find_model("default"), package / "model.safetensors")
    said = block.code.replace("recognizer.recognize(", "globalThis.answers = recognizer.recognize(", 1)
    assert said != block.code
    (tmp_path / "fetch.mjs").write_text(FETCH)
    (tmp_path / "guide.mjs").write_text(f'import "./fetch.mjs";\n{said}\n{TELL}')
    lines = run("node", "guide.mjs", folder=tmp_path).splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("envelope ")
    assert all(0 <= float(line.rpartition(" ")[2]) <= 1 for line in lines)
