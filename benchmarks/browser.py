"""How fast is a sketch recognized in a browser? dabnet beside onnxruntime-web, in Node and in Chromium.

    python -m benchmarks.browser [--rounds 40] [--starts 7]

dabnet runs the model that ships, as WebAssembly; onnxruntime-web, from npm, its build for processors alone, the
real-valued twin of the same layers. Both have one thread, and take turns. A start is from a page that is opened, with
nothing cached, or from Node's beginning, to the first answer. What is fetched is counted as it is and compressed.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import http.server
import json
import shutil
import statistics
import subprocess
import sys
import threading
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from benchmarks.record import write_results
from dabnet.comparing.sketches import draw_sketches
from dabnet.comparing.twin import real_twin
from dabnet.exporting.onnx_file import to_onnx
from dabnet.packed import find_model, read_model
from dabnet.web.page import page_files
from js.pack import lay_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[1]
PACKAGES = ROOT / "build" / "browser"
FOLDER = PACKAGES / "site"
RIVAL = "1.30.0"
"""onnxruntime-web's version."""
OURS, THEIRS = "dabnet", "onnxruntime-web"
FASTER, START_MS, GZIP = 8.0, 150.0, 1_000_000
"""What is wanted: times as fast, milliseconds to start in Chromium, bytes of page, core and model."""
ORT = ("ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm")


PAGE = """<!doctype html>
<script type="module">
  import { race, start } from "./browser.mjs";
  globalThis.race = race;
  globalThis.started = location.search && start(location.search.slice(1));
</script>
"""
"""Starts the engine that its address names as soon as it is opened."""


def prepare() -> None:
    """Put all that either engine needs into one folder."""
    PACKAGES.mkdir(parents=True, exist_ok=True)
    dist = PACKAGES / "node_modules" / THEIRS / "dist"
    if not dist.exists() or json.loads((dist.parent / "package.json").read_text())["version"] != RIVAL:
        command = ["npm", "install", "--prefix", str(PACKAGES), "--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run([*command, f"{THEIRS}@{RIVAL}"], check=True, stdout=subprocess.DEVNULL)
    lay_out(FOLDER)
    for name in ORT:
        shutil.copyfile(dist / name, FOLDER / name)
    shutil.copyfile(Path(__file__).with_suffix(".mjs"), FOLDER / "browser.mjs")
    (FOLDER / "index.html").write_text(PAGE)
    model = read_model(find_model("default"))
    (FOLDER / "twin.onnx").write_bytes(to_onnx(real_twin(model)))
    sketches = draw_sketches(64, model.input_size, model.raster, seed=7)
    (FOLDER / "sketches.bin").write_bytes(sketches.astype("<f4").tobytes())
    (FOLDER / "sketches.json").write_text(json.dumps({"count": len(sketches), "shape": sketches.shape[1:]}))


def ask_node(*words: object) -> Any:
    command = ["node", str(FOLDER / "browser.mjs"), str(FOLDER), *map(str, words)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@contextlib.contextmanager
def chromium() -> Iterator[Callable[..., Any]]:
    """Yield what runs a script in a new page with an empty cache."""
    from playwright.sync_api import sync_playwright

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=FOLDER))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])

        def ask(script: str, engine: str = "") -> Any:
            with contextlib.closing(browser.new_context()) as context:
                page = context.new_page()
                page.goto(f"http://127.0.0.1:{server.server_port}/?{engine}")
                return page.evaluate(script)

        yield ask
        browser.close()
    server.shutdown()
    server.server_close()


def sizes() -> dict[str, dict[str, int]]:
    """Return the bytes that a page fetches: ours, page and all, and what onnxruntime-web needs without a page."""
    ours = page_files(0.5, find_model("default").read_bytes())
    theirs = {name: (FOLDER / name).read_bytes() for name in (*ORT, "twin.onnx")}
    return {name: count(list(files.values())) for name, files in ((OURS, ours), (THEIRS, theirs))}


def count(files: list[bytes]) -> dict[str, int]:
    """Return the bytes of files as they are, by gzip and by brotli, which Node has."""
    script = """const { brotliCompressSync } = require("node:zlib"), chunks = [];
        process.stdin.on("data", (chunk) => chunks.push(chunk)).on("end", () =>
        console.log(brotliCompressSync(Buffer.concat(chunks)).length));"""
    brotli = [
        int(subprocess.run(["node", "-e", script], input=data, capture_output=True, check=True).stdout)
        for data in files
    ]
    gzip = [len(zlib.compress(data, 9, 31)) for data in files]
    return {"raw": sum(map(len, files)), "gzip": sum(gzip), "brotli": sum(brotli)}


def measure(rounds: int, starts: int) -> dict[str, Any]:
    """Return milliseconds in Node and Chromium: of one sketch, and of starts, each engine in turn."""
    found: dict[str, Any] = {}
    with chromium() as ask:
        hosts: dict[str, tuple[Callable[[], Any], Callable[[str], Any]]] = {
            "Node": (lambda: ask_node("race", rounds), lambda engine: ask_node("start", engine)),
            "Chromium": (lambda: ask(f"race({rounds})"), lambda engine: ask("started", engine)),
        }
        for host, (race, start) in hosts.items():
            sketch = race()
            began: dict[str, list[float]] = {OURS: [], THEIRS: []}
            for _ in range(starts):
                for engine, times in began.items():
                    times.append(start(engine))
            found[host] = {"sketch_ms": summed_up(sketch), "start_ms": summed_up(began)}
    return found


def summed_up(times: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    return {name: {"least": min(each), "median": statistics.median(each)} for name, each in times.items()}


def show(console: Console, found: dict[str, Any], fetched: dict[str, dict[str, int]]) -> list[str]:
    """Print tables; return what is not as it is wanted."""
    table = Table("", "", title="milliseconds, the least (and the median)")
    for heading in (OURS, THEIRS, "ratio", "wanted"):
        table.add_column(heading, justify="right")
    problems = []
    for host, figures in found.items():
        for what, of in (("one sketch", figures["sketch_ms"]), ("start", figures["start_ms"])):
            cells = [f"{of[name]['least']:.3g} ({of[name]['median']:.3g})" for name in (OURS, THEIRS)]
            ratio, wanted = of[THEIRS]["least"] / of[OURS]["least"], ""
            if what == "one sketch":
                holds, wanted = ratio >= FASTER, f"{FASTER:g}x"
            else:
                holds = host == "Node" or of[OURS]["least"] <= START_MS
                wanted = "" if host == "Node" else f"{START_MS:g} ms"
            problems += [] if holds else [f"{what} in {host}"]
            table.add_row(host, what, *cells, f"{ratio:.1f}x", wanted)
    console.print(table)
    table = Table("bytes to fetch", title="page, core and model; onnxruntime-web's without a page")
    for heading in ("raw", "gzip", "brotli"):
        table.add_column(heading, justify="right")
    for name, of in fetched.items():
        table.add_row(name, *(f"{of[heading]:,}" for heading in ("raw", "gzip", "brotli")))
    console.print(table)
    return problems + ([] if fetched[OURS]["gzip"] <= GZIP else [f"more than {GZIP:,} bytes by gzip"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40, help="turns of each engine, of 20 sketches")
    parser.add_argument("--starts", type=int, default=7, help="starts of each engine")
    arguments = parser.parse_args()
    console = Console()
    with console.status("measuring"):
        prepare()
        found, fetched = measure(arguments.rounds, arguments.starts), sizes()
    problems = show(console, found, fetched)
    about = {"model": find_model("default").stem, THEIRS: RIVAL, "node": version_of("node"), "missed": problems}
    path = write_results("browser", {**about, "hosts": found, "bytes": fetched})
    console.print(f"Written to {path.relative_to(path.parents[2])}")
    if problems:
        sys.exit(f"Not as wanted: {', '.join(problems)}.")


def version_of(program: str) -> str:
    return subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
