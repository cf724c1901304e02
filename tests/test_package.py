from __future__ import annotations

import importlib.metadata
import itertools
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dabnet
from dabnet._lazy import EXTRAS

ROOT = Path(__file__).parents[1]


def test_the_version_is_the_installed_one() -> None:
    assert importlib.metadata.version("dabnet") == dabnet.__version__


def test_every_public_name_is_there() -> None:
    for name in dabnet.__all__:
        assert getattr(dabnet, name) is not None
    for name in dabnet.binarizers.__all__:
        assert getattr(dabnet.binarizers, name) is not None
    with pytest.raises(AttributeError, match="module 'dabnet' has no attribute 'recognise'"):
        dabnet.recognise  # noqa: B018


def test_tab_completion_finds_the_public_names_without_loading_torch() -> None:
    code = (
        "import sys, dabnet\n"
        "for module in (dabnet, dabnet.runtime, dabnet.sketches, dabnet.binarizers):\n"
        "    assert set(dir(module)) == set(module.__all__), dir(module)\n"
        "assert {'Recognizer', 'binarize_', 'build', 'export', 'load', 'summary', 'verify'} < set(dir(dabnet))\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_splitting_an_array_does_not_load_torch() -> None:
    code = (
        "import sys, numpy, dabnet; from dabnet.binarizers import optimal_split\n"
        "optimal_split(numpy.ones((1, 2), dtype='f4')); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_recognizing_a_sketch_loads_neither_torch_nor_the_command_line() -> None:
    code = (
        "import sys, dabnet; found = dabnet.Recognizer.load().recognize([[(0, 0), (9, 5), (2, 7)]])\n"
        "assert len(found) == 5; assert not {'torch', 'lightning', 'pyarrow', 'typer', 'rich'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_session_needs_no_pillow() -> None:
    code = "import sys, dabnet; dabnet.runtime.Session('default'); assert 'PIL' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_missing_library_is_named_with_the_extra_that_brings_it() -> None:
    code = "import sys; sys.modules['torch'] = None; import dabnet; dabnet.binarize_"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "MissingExtraError: this needs torch, which is not installed: pip install 'dabnet[train]'." in done.stderr
    code = "import sys; sys.modules['torch'] = None; from dabnet.cli import main; main(['demo'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (
        2,
        "dabnet: this needs torch, which is not installed: pip install 'dabnet[train]'.\n",
    )


def test_the_extras_table_matches_the_packages_metadata() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for library, extra in EXTRAS.items():
        assert any(requirement.startswith((f"{library}>", f"{library}[")) for requirement in extras[extra])


def test_every_direct_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = {
        line.split("==")[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    extras = project["optional-dependencies"].values()
    for requirement in itertools.chain(project["dependencies"], *extras):
        name = requirement.split(">")[0].split("[")[0].lower()
        assert name == "dabnet" or name in pinned


def test_the_readmes_commands_exist() -> None:
    readme = (ROOT / "README.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    for target in ("demo", "test"):
        assert f"\nmake {target} " in readme
        assert f"\n{target}:" in makefile
