from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dabnet.errors import ModelFormatError
from dabnet.packed import Model, read_model, to_bytes
from dabnet.packed.nodes import Concat, Relu
from dabnet.runtime import Session

from .fuzz import Parts, Tensor, base_models, fuzz, make_case, put_together, split, with_header

MAX_HEADER = 4 << 20
ROOT = Path(__file__).parents[2]
SANITIZED = ROOT / "scripts" / "sanitized"


def test_broken_files_are_refused_or_run(tmp_path: Path) -> None:
    report = fuzz(600, seed=1, folder=tmp_path)
    assert not report.failures
    assert min(report.outcomes["run"], report.outcomes["refused"]) > 100
    assert not list(tmp_path.iterdir())


def test_files_depend_on_seed_and_index_only() -> None:
    bases = [to_bytes(model) for model in base_models()]
    for index in range(30):
        assert make_case(bases, 0, index) == make_case(bases, 0, index)
    assert make_case(bases, 0, 1) != make_case(bases, 1, 1)


def test_a_file_taken_apart_and_put_together_is_the_same_model() -> None:
    for model in base_models():
        data = to_bytes(model)
        assert to_bytes(read_model(put_together(split(data)))) == data


def run_sanitized(*arguments: str) -> subprocess.CompletedProcess[str]:
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    missing = pytest.fail if os.environ.get("CI") else pytest.skip
    if compiler is None:
        missing("there is no compiler")
    for library in ("libasan.so", "libubsan.so"):
        found = subprocess.run([compiler, f"-print-file-name={library}"], capture_output=True, text=True).stdout.strip()
        if not Path(found).is_absolute():
            missing(f"the compiler has no {library}")
    pytest.importorskip("scikit_build_core", reason="what builds dabnet is not installed")
    environment = os.environ | {"PYTHON": sys.executable, "CXX": compiler}
    return subprocess.run([SANITIZED, "address", *arguments], env=environment, capture_output=True, text=True)


def test_broken_files_touch_no_memory_that_is_not_theirs() -> None:
    done = run_sanitized("-m", "tests.packed.fuzz", "--count", "300", "--seed", "2")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-8000:]
    assert "300 files in" in done.stdout


def test_sanitizers_see_what_touches_memory_that_is_not_its_own() -> None:
    """Three numbers are answered where there is room for two."""
    code = """
import numpy as np
from dabnet import _native
from dabnet.packed import Model, to_bytes
from dabnet.packed.nodes import Clamp
data = to_bytes(Model((3, 50, 50), (Clamp(inputs=(0,), low=0, high=1),)))
model = _native.Model(data, 1, 1 << 20, 1e9, "portable")
images, logits = np.zeros((1, 3, 50, 50), dtype=np.float32), np.zeros((1, 2 * 50 * 50), dtype=np.float32)
model.run(images, logits, None, None, False)
"""
    done = run_sanitized("-c", code)
    assert done.returncode != 0
    assert "AddressSanitizer: heap-buffer-overflow" in done.stderr
    assert "native/network.cpp" in done.stderr


# What was found once.


def tiny_file(**changed: object) -> Parts:
    parts = split(to_bytes(Model((1, 1, 1), (Relu(inputs=(0,)),))))
    parts.about |= changed
    return parts


def refusal(data: bytes) -> str:
    with pytest.raises(ModelFormatError) as caught:
        Session(data)
    sentence = str(caught.value)
    assert sentence.isprintable()
    assert len(sentence) < 200
    return sentence


def test_a_version_is_an_integer() -> None:
    for version in (True, 1.0):
        data = put_together(tiny_file(version=version))
        assert refusal(data) == f"its format is version {version}, and this dabnet reads 1, 2 and 3."


def test_a_name_with_control_characters_is_quoted() -> None:
    data = put_together(tiny_file(nodes=[{"op": "relu", "inputs": [1], "name": "a\n\x1b[2Jb"}]))
    assert refusal(data) == r"node 0, relu ('a\n\x1b[2Jb'): it takes values [1], and there are 0 to 0."


def test_a_node_with_many_inputs_is_refused_in_few_words() -> None:
    pool = {"op": "adaptive_max_pool", "inputs": [0], "size": [2, 2]}
    for op in ("add", "concat", "relu"):
        parts = tiny_file(nodes=[pool, {"op": op, "inputs": [1, 0] * 30_000}])
        assert refusal(put_together(parts)).startswith(f"node 1, {op}: it ")
        parts = tiny_file(nodes=[{"op": op, "inputs": [9] * 60_000}])
        assert refusal(put_together(parts)).startswith(f"node 0, {op}: it takes values [9, 9, ")


def test_a_node_has_no_more_inputs_than_a_value_has_channels() -> None:
    parts = tiny_file(nodes=[{"op": "concat", "inputs": [0] * 65_535}])
    read_model(put_together(parts))
    parts.about["nodes"][0]["inputs"].append(0)
    assert refusal(put_together(parts)).startswith("node 0, concat: 'inputs' cannot be [0, 0, ")


def test_json_of_any_depth_is_refused() -> None:
    for depth in (*range(900, 1010), 100_000):
        for nested in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
            parts = tiny_file(nodes=[{"op": "nested", "inputs": [0]}, {"op": "relu", "inputs": "nested"}])
            parts.replaced["nested"] = nested
            refusal(put_together(parts))


def test_a_long_header_is_refused_before_it_is_read() -> None:
    parts = tiny_file(nodes="long")
    parts.replaced["long"] = "[" + "[]," * 10_000_000 + "[]]"
    data = put_together(parts)
    start = time.thread_time()
    assert refusal(data) == f"its header has {len(data) - 8:,} bytes, and may have 4,194,304."
    assert time.thread_time() - start < 0.5


def test_a_header_may_be_as_long_as_its_limit() -> None:
    data = put_together(tiny_file())
    read_model(with_header(data[8:].ljust(MAX_HEADER), b""))
    assert "its header has 4,194,305 bytes" in refusal(with_header(data[8:].ljust(MAX_HEADER + 1), b""))


def test_many_values_that_are_needed_at_once_are_planned_in_no_time() -> None:
    count = 9_999
    wide = Model((1, 1, 1), (*[Relu(inputs=(0,))] * count, Concat(inputs=tuple(range(1, count + 1)))))
    start = time.thread_time()
    session = Session(wide)
    assert time.thread_time() - start < 0.5
    assert session.memory < 80 * count + 2 * 64 * count


def test_inputs_count_as_memory() -> None:
    many = Model((1, 1, 1), tuple(Concat(inputs=(0,) * 65_535) for _ in range(5)))
    assert Session(many).memory > 5 * 65_535 * 8
    with pytest.raises(ModelFormatError, match="more than 1,000,000 bytes of memory"):
        Session(many, max_memory=1_000_000)


def test_a_long_name_of_a_tensor_is_cut() -> None:
    parts = tiny_file()
    parts.tensors["x" * 5000] = Tensor("U8", [0], b"")
    assert refusal(put_together(parts)).startswith("no node uses its tensor 'xxx")
