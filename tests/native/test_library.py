"""libdabnet as C and C++ users get it: built and installed by CMake, found by pkg-config and by CMake."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dabnet.packed import find_model
from dabnet.sketches import synthetic_strokes
from tests.docs.guides import Sandbox, blocks, commands

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "c" / "recognize.c"


def run(*command: str | Path, **settings: str) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = os.environ | {"PATH": path} | settings
    done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where libdabnet is installed."""
    if shutil.which("cc") is None or shutil.which("cmake", path=str(Path(sys.executable).parent)) is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("there is no C compiler, or no CMake")
    built, installed = ROOT / "build" / "libdabnet-test", tmp_path_factory.mktemp("libdabnet")
    settings = ("-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O1", "-DCMAKE_INSTALL_LIBDIR=lib")
    run("cmake", "-G", "Ninja", "-S", ROOT, "-B", built, *settings)  # -O1: half the time, and the same answers
    run("cmake", "--build", built)
    run("cmake", "--install", built, "--prefix", installed)
    return installed


@pytest.fixture(scope="module")
def drawings(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("drawings")
    files = []
    for number, sketch in enumerate(synthetic_strokes(10, seed=3)[0]):
        files.append(folder / f"{number}.json")
        files[-1].write_text(json.dumps([stroke.tolist() for stroke in sketch.strokes]))
    return files


def expected(drawings: list[Path]) -> str:
    return run(sys.executable, "-m", "dabnet", "recognize", *drawings)


def test_the_c_example_prints_what_dabnet_recognize_prints(library: Path, drawings: list[Path], tmp_path: Path) -> None:
    program, warnings = tmp_path / "recognize", ("-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror")
    flags = run("pkg-config", "--cflags", "--libs", "dabnet", PKG_CONFIG_PATH=str(library / "lib" / "pkgconfig"))
    run("cc", *warnings, EXAMPLE, *flags.split(), "-o", program)
    said = run(program, find_model("default"), *drawings, LD_LIBRARY_PATH=str(library / "lib"))
    assert said == expected(drawings)
    assert len(said.splitlines()) == 11


def test_cmake_finds_the_package_and_links_it_statically(library: Path, drawings: list[Path], tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\n"
        "project(example LANGUAGES C CXX)\n"
        "find_package(dabnet CONFIG REQUIRED)\n"
        f'add_executable(recognize "{EXAMPLE}")\n'
        "set_target_properties(recognize PROPERTIES LINKER_LANGUAGE CXX)\n"
        "target_link_libraries(recognize PRIVATE dabnet::static)\n"
    )
    built = tmp_path / "build"
    run("cmake", "-G", "Ninja", "-S", tmp_path, "-B", built, f"-DCMAKE_PREFIX_PATH={library}")
    run("cmake", "--build", built)
    assert run(built / "recognize", find_model("default"), *drawings) == expected(drawings)


def test_only_the_interface_is_visible(library: Path) -> None:
    """Nobody can come to rely on what is inside."""
    if shutil.which("nm") is None:
        pytest.skip("there is no nm")
    names = [
        line.split()[-1] for line in run("nm", "-D", "--defined-only", library / "lib" / "libdabnet.so").splitlines()
    ]
    header = (ROOT / "native" / "dabnet.h").read_text()
    own = [name for name in names if "dabnet" in name]
    assert own
    assert all(name.startswith("dabnet_") and f"{name}(" in header for name in own)


def test_the_guides_commands_run(library: Path, tmp_path: Path) -> None:
    for name in ("examples", "src"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "library").symlink_to(library)  # what make library builds
    said = [Sandbox(tmp_path).run(line) for line in commands(ROOT / "docs" / "c.md")]
    assert "umbrella" in said[-1].splitlines()[1]


def test_the_guides_code_compiles_and_links_as_its_cmake_says(library: Path, tmp_path: Path) -> None:
    (code,), (cmake,) = ([block.code for block in blocks(language)] for language in ("c", "cmake"))
    (tmp_path / "guess.c").write_text(f"{code}\nint main(void) {{ return guess(0, 0, 0, 0, 0) - 2; }}\n")
    head = "cmake_minimum_required(VERSION 3.18)\nproject(example LANGUAGES C CXX)\nadd_executable(program guess.c)\n"
    linker = "set_target_properties(program PROPERTIES LINKER_LANGUAGE CXX C_STANDARD 11)\n"
    (tmp_path / "CMakeLists.txt").write_text(head + linker + cmake)
    built = tmp_path / "build"
    run("cmake", "-G", "Ninja", "-S", tmp_path, "-B", built, f"-DCMAKE_PREFIX_PATH={library}")
    run("cmake", "--build", built)
    run(built / "program")  # which is told that no bytes are no model
