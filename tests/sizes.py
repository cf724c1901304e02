"""How much there is to fetch: the files that git tracks, the source distribution and the wheel, each with its limit.

    python -m tests.sizes

builds both and prints their bytes. The test compiles nothing: it zips what a wheel holds, with the library that
is installed (`zipped_wheel`).
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import dabnet._native

ROOT = Path(__file__).parents[1]
LIMITS = {"tracked files": 14_000_000, "sdist": 4_000_000, "wheel": 3_000_000}


def tracked_files() -> list[Path]:
    """Return the files that git tracks and that are there."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    return [path for name in listed.decode().split("\0") if name and (path := ROOT / name).is_file()]


def tracked_bytes() -> int:
    """Return the bytes of all tracked files."""
    return sum(path.stat().st_size for path in tracked_files())


def build(kind: str) -> int:
    """Build the sdist or the wheel, and return its bytes."""
    with tempfile.TemporaryDirectory() as folder:
        code = f"import scikit_build_core.build as backend; backend.build_{kind}({folder!r})"
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        return sum(path.stat().st_size for path in Path(folder).iterdir())


def zipped_wheel() -> int:
    """Return the bytes of the package's files and of the compiled library, zipped as in a wheel."""
    package, library = ROOT / "src" / "dabnet", Path(dabnet._native.__file__)
    files = [path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    inside = {path: path.relative_to(package.parent) for path in files}
    inside[library] = Path("dabnet", library.name)
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as opened:
        for path, name in inside.items():
            opened.write(path, name)
    return len(wheel.getvalue())


def main() -> None:
    """Print each size beside its limit; end with 1 where one is passed."""
    sizes = {"tracked files": tracked_bytes(), "sdist": build("sdist"), "wheel": build("wheel")}
    for name, limit in LIMITS.items():
        print(f"{name:14}{sizes[name]:>12,} bytes, at most {limit:,}")
    sys.exit(any(sizes[name] > limit for name, limit in LIMITS.items()))


if __name__ == "__main__":
    main()
