"""The core in WebAssembly answers as the native one does: models, broken files, strokes and pictures, in Node."""

from __future__ import annotations

import io
import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import dabnet
from benchmarks.photographs import CONDITIONS, PENS, Scene
from dabnet import _native
from dabnet.comparing.sketches import draw_sketches
from dabnet.errors import InputError
from dabnet.packed import find_model, to_bytes
from dabnet.packed.shipped import model_names
from dabnet.runtime import Session
from dabnet.sketches import read_sketch, synthetic_strokes
from tests.packed.fuzz import MAX_MEMORY, MAX_WORK, base_models, make_case
from tests.runtime.witness import Witness, network_witnesses, random_witnesses

from .cases import Cases, same_bits
from .conftest import ROOT, run

RANDOM_MODELS = 300
REFUSED = 1000


def test_its_kernels_give_the_same_answers_bit_for_bit(built: Path) -> None:
    said = run("node", "--no-warnings", Path(__file__).with_name("wasi.mjs"), built / "compare_kernels.wasm", "2000")
    assert said.startswith("wasm_simd against portable: ")
    assert said.endswith(" 0 mismatches\n")


def test_an_overflowing_stack_leaves_memory_and_reaches_no_data(built: Path) -> None:
    """The stack grows down from where the first global points to; all data has to lie above that."""
    stack, data = stack_and_data((built / "dabnet.wasm").read_bytes())
    assert 0 < stack <= min(data)


def stack_and_data(module: bytes) -> tuple[int, list[int]]:
    """Return the first global's start, and where the segments of data begin: sections 6 and 11 of a module."""

    def number(at: int) -> tuple[int, int]:  # LEB128
        value = shift = 0
        while True:
            value |= (module[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if module[at - 1] < 128:
                return value, at

    stack, data, at = 0, list[int](), 8
    while at < len(module):
        kind, (size, begin) = module[at], number(at + 1)
        at = begin + size
        count, here = number(begin)
        if kind == 6:
            assert module[here : here + 3] == b"\x7f\x01\x41"  # a mutable i32, i32.const
            stack = number(here + 3)[0]
        for _ in range(count if kind == 11 else 0):
            assert module[here : here + 2] == b"\x00\x41"  # of memory 0, i32.const
            offset, here = number(here + 2)
            length, here = number(here + 1)
            data.append(offset)
            here += length
    return stack, data


def test_models_answer_as_in_the_native_runtime_bit_for_bit(built: Path, tmp_path: Path) -> None:
    """Random models, the networks of the paper and the models that ship, with both sets of kernels."""
    witnesses = [*network_witnesses(), *map(shipped_witness, model_names()), *random_witnesses(RANDOM_MODELS)]
    cases, wanted = Cases(), list(itertools.product(("wasm_simd", "portable"), witnesses))
    for kernels, witness in wanted:
        cases.add(witness.data, witness.x, kernels=kernels)
    for (kernels, witness), answer in zip(wanted, cases.answers(built, tmp_path), strict=True):
        assert answer["kernels"] == kernels
        assert same_bits(answer["logits"], witness.logits), (witness.name, kernels)


def shipped_witness(name: str) -> Witness:
    data, session = find_model(name).read_bytes(), Session(name)
    x = draw_sketches(20, session.input_size, session.raster, seed=7)
    return Witness(name, data, x, session.run(x))


def test_broken_files_are_refused_with_the_same_sentence(built: Path, tmp_path: Path) -> None:
    """As many of the fuzzer's files as it takes until 1,000 are refused, all by one module.

    Those in between that can be run give the same logits, so the module goes on working. What takes too much memory
    here may fit there, where a pointer has half the bytes.
    """
    bases = [to_bytes(model) for model in base_models()]
    cases, expected = Cases(), list[tuple[str, Any]]()
    for index in itertools.count():
        data = make_case(bases, 0, index)[1]
        status, answer, x = open_and_run(data)
        cases.add(data, x, maxMemory=MAX_MEMORY, maxWork=MAX_WORK)
        expected.append((status, answer))
        if sum(status == "refused" for status, _ in expected) == REFUSED:
            break
    outcomes = Counter(status for status, _ in expected)
    assert outcomes["run"] > 100, outcomes
    for number, ((status, wanted), answer) in enumerate(zip(expected, cases.answers(built, tmp_path), strict=True)):
        if status == "run":
            assert same_bits(answer["logits"], wanted), number
        elif status == "refused":
            assert answer["sentence"] == wanted, number


def open_and_run(data: bytes) -> tuple[str, Any, NDArray[np.float32]]:
    """Return what became of a file, the logits or the core's sentence, and what it was given."""
    x = np.zeros(0, np.float32)
    try:
        opened = _native.Model(data, 1, MAX_MEMORY, MAX_WORK, "")
        about = json.loads(opened.about())
        x = np.random.default_rng(0).standard_normal((1, *about["input"][:3]), dtype=np.float32)
        logits = np.empty((1, about["answers"]), np.float32)
        opened.run(x, logits, None, None, False)
    except _native.CoreError as problem:
        status, sentence = problem.args
        return "too large" if status == _native.TOO_LARGE else "refused", sentence, x
    return "run", logits, x


def test_strokes_are_drawn_and_named_as_in_python(built: Path, tmp_path: Path) -> None:
    sketches = synthetic_strokes(40, seed=5)[0]
    recognizers = {name: dabnet.Recognizer.load(name) for name in model_names()}
    cases, wanted = Cases(), list(itertools.product(recognizers, sketches))
    for name, sketch in wanted:
        strokes = [stroke.tolist() for stroke in sketch.strokes]
        cases.add(find_model(name).read_bytes(), strokes=[[], *strokes], top=7)
    for (name, sketch), answer in zip(wanted, cases.answers(built, tmp_path), strict=True):
        assert same_bits(answer["drawn"], recognizers[name].show([sketch]))
        check_guesses(answer["guesses"], recognizers[name].recognize(sketch, top=7))


def test_pictures_and_photographs_are_read_as_in_python(built: Path, tmp_path: Path) -> None:
    recognizer, model = dabnet.Recognizer.load(), find_model("default").read_bytes()
    pictures = [Image.open(path).convert("RGBA") for path in sorted((ROOT / "examples").glob("*.png"))]
    for number, take in enumerate(CONDITIONS.values()):
        pen = list(PENS.values())[number % len(PENS)]
        sketch = read_sketch(ROOT / "examples" / "umbrella.json")
        taken = take(Scene(sketch, pen, (900, 680), np.random.default_rng(number)))
        pictures.append(Image.open(io.BytesIO(taken)).convert("RGBA"))
    cases = Cases()
    for picture in pictures:
        cases.add(model, picture=np.asarray(picture))
    for picture, answer in zip(pictures, cases.answers(built, tmp_path), strict=True):
        assert same_bits(answer["drawn"], recognizer.show([read_sketch(picture)]))
        check_guesses(answer["guesses"], recognizer.recognize(picture))


def test_a_blank_picture_and_a_drawing_of_nothing_are_refused(built: Path, tmp_path: Path) -> None:
    model, cases = find_model("default").read_bytes(), Cases()
    cases.add(model, picture=np.full((40, 40, 4), 255, np.uint8))
    drawings: list[Any] = [[], [[]], [[[3, 3]]], [[[0, 0], [1, 1e39]]], [[[0]]], [5]]
    for strokes in drawings:
        cases.add(model, strokes=strokes)
    picture, *others = cases.answers(built, tmp_path)
    assert picture["sentence"] == "the image has no ink: there is nothing on the paper."
    for strokes, answer in zip(drawings, others, strict=True):
        with pytest.raises(InputError) as refused:
            dabnet.Recognizer.load().recognize(strokes)
        assert answer["sentence"] == str(refused.value)


def check_guesses(guesses: list[dict[str, Any]], expected: list[tuple[str, float]]) -> None:
    """Labels are the same; probabilities differ by what two libraries' exponentials do."""
    assert [guess["label"] for guess in guesses] == [label for label, _ in expected]
    assert [guess["probability"] for guess in guesses] == pytest.approx([p for _, p in expected], rel=1e-12)
