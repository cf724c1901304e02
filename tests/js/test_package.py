"""The npm package as its users get it: packed, installed into an empty folder, imported and type-checked."""

from __future__ import annotations

import json
import re
import shutil
import tarfile
from pathlib import Path

import pytest

import dabnet
from js import pack as js_pack

from .conftest import PATH, ROOT, alone, lacks, run

TOOLS = ROOT / "build" / "js-tools"
PROGRAM = """
import { Recognizer, type Guess, type Strokes } from "dabnet";

declare const wasm: ArrayBuffer, image: ImageData, blob: Blob, bitmap: ImageBitmap;
const drawing: Strokes = [[[0, 50], [100, 50]], [[70, 20], [100, 50]]];
const recognizer: Recognizer = await Recognizer.load({ wasm, model: new URL("https://example.org/m"), maxWork: 1e9 });
await Recognizer.load({ wasm: await WebAssembly.compile(wasm), model: fetch("model.safetensors") });
const guesses: Guess[] = recognizer.recognize(drawing, { top: 3 });
const best: string = guesses[0]?.label ?? "nothing";
recognizer.recognize(image).map(({ probability }) => probability.toFixed(2));
console.log(best, (await recognizer.recognizeImage(blob)).length, await recognizer.recognizeImage(bitmap, { top: 1 }));
const logits: Float32Array = recognizer.run(recognizer.draw(drawing));
const [channels, height, width]: readonly number[] = recognizer.inputSize;
console.log(recognizer.labels[logits.indexOf(Math.max(...logits))], channels, height, width);
// @ts-expect-error
new Recognizer();
// @ts-expect-error
recognizer.recognize("a house");
// @ts-expect-error
recognizer.labels = [];
// @ts-expect-error
await Recognizer.load({ wasm });
"""


@pytest.fixture(scope="module")
def package(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package's folder."""
    folder = tmp_path_factory.mktemp("package")
    js_pack.lay_out(folder)
    return folder


@pytest.fixture(scope="module")
def tarball(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("npm", path=PATH) is None:
        lacks("there is no npm")
    return js_pack.pack(package, tmp_path_factory.mktemp("tarball"))


@pytest.fixture(scope="module")
def installed(tarball: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that was empty before the package was installed in it, without a network."""
    folder = tmp_path_factory.mktemp("installed")
    run("npm", "install", "--offline", "--no-audit", "--no-fund", tarball, folder=folder)
    return folder


def test_javascript_gets_what_it_is_promised(built: Path) -> None:
    run("node", "--test", Path(__file__).with_name("recognizer.test.mjs"))


def test_the_package_has_its_files_and_no_others(tarball: Path) -> None:
    with tarfile.open(tarball) as opened:
        names = {name.removeprefix("package/") for name in opened.getnames()}
        described = json.load(opened.extractfile("package/package.json"))  # type: ignore[arg-type]
    assert names == {
        *("package.json", "README.md", "LICENSE", "MODEL.md", "example.html"),
        *("dabnet.js", "dabnet.d.ts", "dabnet.wasm", "dabnet.classic.js"),
        *("model.safetensors", "model.classic.js"),
    }
    exports = described["exports"]
    exported = [*exports.pop(".").values(), *exports.values()]
    assert {way.removeprefix("./") for way in exported} <= names
    assert described["version"] == dabnet.__version__
    assert not described.keys() & {"dependencies", "peerDependencies", "scripts"}


def test_a_file_that_has_grown_fails_the_build(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert js_pack.check_sizes(package) == []
    monkeypatch.setitem(js_pack.BUDGET, "dabnet.wasm", 1000)
    (problem,) = js_pack.check_sizes(package)
    assert re.fullmatch(r"dabnet.wasm: \d+,\d+ bytes compressed, at most 1,000", problem)


def test_the_readmes_program_for_node_runs(installed: Path) -> None:
    programs = re.findall(r"```js\n(.*?)```", (ROOT / "js" / "README.md").read_text(), re.DOTALL)
    assert len(programs) == 1
    (installed / "program.mjs").write_text(programs[0])
    envelope = [[(0, 0), (100, 0), (100, 60), (0, 60), (0, 0)], [(0, 0), (50, 40), (100, 0)]]
    expected = dabnet.Recognizer.load().recognize(envelope, top=3)
    assert run("node", "program.mjs", folder=installed) == "".join(f"{label} {p:.2f}\n" for label, p in expected)


def test_typescript_accepts_a_program_that_uses_it_rightly(installed: Path) -> None:
    (installed / "program.ts").write_text(PROGRAM)
    options = ["--strict", "--noEmit", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom"]
    (installed / "package.json").write_text(json.dumps({"type": "module", "dependencies": {"dabnet": "*"}}))
    run(typescript(), *options, "program.ts", folder=installed)


def typescript() -> Path:
    """Return TypeScript's compiler, which is installed into build/ the first time."""
    compiler = TOOLS / "node_modules" / ".bin" / "tsc"
    with alone(TOOLS):
        if not compiler.exists():
            for name in ("package.json", "package-lock.json"):
                shutil.copy(Path(__file__).with_name("tools") / name, TOOLS)
            run("npm", "ci", "--no-audit", "--no-fund", folder=TOOLS)
    return compiler
