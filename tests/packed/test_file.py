from __future__ import annotations

import doctest
import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors.numpy import load, save

from dabnet.errors import ModelFormatError
from dabnet.packed import Model, read_model, to_bytes
from dabnet.packed.nodes import Clamp, Conv, Relu, Sign
from dabnet.runtime import Session

from ..runtime.models import models

DOCUMENT = Path(__file__).parents[2] / "docs" / "file-format.md"

# The document's example, byte by byte: a change of these is a change of the format, and needs a new version.
HEADER = (
    r'{"__metadata__":{"dabnet":"{\"version\":1,\"input\":[1,3,3],\"nodes\":['
    r"{\"op\":\"conv\",\"inputs\":[0],\"name\":\"first\",\"kernel\":[2,2],\"filters\":1},"
    r"{\"op\":\"sign\",\"inputs\":[1]},"
    r"{\"op\":\"conv\",\"inputs\":[2],\"kernel\":[2,3],\"padding\":[0,1,0,0],\"filters\":2}],"
    r'\"labels\":[\"sun\",\"tree\"]}"},'
    '"0.bias":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},'
    '"0.weight":{"dtype":"F32","shape":[1,2,2,1],"data_offsets":[4,20]},'
    '"1.threshold":{"dtype":"F32","shape":[1],"data_offsets":[20,24]},'
    '"2.middle":{"dtype":"F32","shape":[2],"data_offsets":[24,32]},'
    '"2.scale":{"dtype":"F32","shape":[2],"data_offsets":[32,40]},'
    '"1.flip":{"dtype":"U8","shape":[1],"data_offsets":[40,41]},'
    '"2.bits":{"dtype":"U8","shape":[2,1],"data_offsets":[41,43]}}    '
)
DATA = (
    "00 00 00 be"  # 0.bias
    "00 00 80 3f 00 00 00 bf 00 00 80 3e 00 00 00 40"  # 0.weight
    "01 00 90 3f"  # 1.threshold
    "00 00 00 3e 00 00 80 be"  # 2.middle
    "00 00 00 3f 00 00 80 3e"  # 2.scale
    "01"  # 1.flip
    "07 34"  # 2.bits
)
FILE = b"\xe8\x02\0\0\0\0\0\0" + HEADER.encode() + bytes.fromhex(DATA)


def floats(*numbers: float) -> NDArray[np.float32]:
    return np.array(numbers, dtype=np.float32)


def tiny_model() -> Model:
    first = Conv(
        inputs=(0,),
        name="first",
        filters=1,
        kernel=(2, 2),
        weight=floats(1, -0.5, 0.25, 2).reshape(1, 2, 2, 1),
        bias=floats(-0.125),
    )
    sign = Sign(inputs=(1,), threshold=np.nextafter(floats(1.125), floats(np.inf)), flip=np.array([1], dtype=np.uint8))
    second = Conv(
        inputs=(2,),
        filters=2,
        kernel=(2, 3),
        padding=(0, 1, 0, 0),
        bits=np.array([[0b000111], [0b110100]], dtype=np.uint8),
        scale=floats(0.5, 0.25),
        offset=floats(0.125, -0.25),
    )
    return Model((1, 3, 3), (first, sign, second), labels=("sun", "tree"))


def assert_same(found: Model, expected: Model) -> None:
    assert found.input_size == expected.input_size
    assert found.labels == expected.labels
    assert found.raster == expected.raster
    assert found.temperature == expected.temperature
    assert found.views_temperature == expected.views_temperature
    assert found.shapes == expected.shapes
    assert [type(node) for node in found.nodes] == [type(node) for node in expected.nodes]
    for node, other in zip(found.nodes, expected.nodes, strict=True):
        assert node.settings() == other.settings()
        assert [name for name, _ in node.arrays()] == [name for name, _ in other.arrays()]
        for (_, array), (_, wanted) in zip(node.arrays(), other.arrays(), strict=True):
            assert array.dtype == wanted.dtype
            np.testing.assert_array_equal(array, wanted)


def test_the_format_does_not_change_by_accident() -> None:
    assert to_bytes(tiny_model()) == FILE
    assert_same(read_model(FILE), tiny_model())


def test_the_document_shows_these_bytes() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    rows = re.findall(r"^ *\d+ \|(.*)\|$", text, flags=re.MULTILINE)
    assert "".join(rows) == HEADER
    hexes = re.findall(r"^\d+ ((?:[0-9a-f]{2} )+) *[0-9]\.[a-z]+ +\[", text, flags=re.MULTILINE)
    assert bytes.fromhex("".join(hexes)) == bytes.fromhex(DATA)


def test_the_document_is_what_the_code_does() -> None:
    failed, tried = doctest.testfile(str(DOCUMENT), module_relative=False, encoding="utf-8")
    assert not failed
    assert tried > 15


@given(
    model=models(),
    word=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
    raster=st.none()
    | st.fixed_dictionaries({"size": st.integers(8, 4096), "margin": st.just(0.05), "pen": st.floats(0, 1)}),
    temperature=st.just(1.0) | st.floats(0, exclude_min=True, allow_infinity=False),
    views_temperature=st.just(1.0) | st.floats(0, exclude_min=True, allow_infinity=False),
)
@example(Model((1, 1, 1), (Clamp(inputs=(0,), low=-1e38, high=0.1),)), '"\\\n', None, 0.5, 0.8)
@settings(max_examples=150)
def test_what_was_written_is_read(
    model: Model, word: str, raster: dict[str, float] | None, temperature: float, views_temperature: float
) -> None:
    labels = tuple(f"{word}{i}" for i in range(model.answers)) if model.answers < 100 else ()
    written = Model(model.input_size, model.nodes, labels, raster, temperature, views_temperature)
    data = to_bytes(written)
    found = read_model(data)
    assert_same(found, written)
    assert to_bytes(found) == data


def test_a_temperature_of_1_is_left_out_of_the_file() -> None:
    assert to_bytes(replace(tiny_model(), temperature=1.0)) == FILE
    warm = to_bytes(replace(tiny_model(), temperature=1.25))
    assert rb"\"labels\":[\"sun\",\"tree\"],\"temperature\":1.25}" in warm
    np.testing.assert_array_equal(
        Session(warm).run(np.ones((1, 1, 3, 3), np.float32)), Session(FILE).run(np.ones((1, 1, 3, 3), np.float32))
    )


def test_a_name_of_any_language_is_kept(tmp_path: Path) -> None:
    node = Relu(inputs=(0,), name="schicht/слой/层")
    path = tmp_path / "модель.safetensors"
    path.write_bytes(to_bytes(Model((1, 1, 1), (node,), labels=("ключ 🔑",))))
    found = read_model(path)
    assert (found.nodes[0].name, found.labels) == ("schicht/слой/层", ("ключ 🔑",))
    assert "ключ 🔑".encode() in path.read_bytes()


# What is wrong with a file, and the sentence that it gets.

Arrays = dict[str, NDArray[Any]]


def file_of(about: Any, tensors: Arrays) -> bytes:
    return save(tensors, {"dabnet": about if isinstance(about, str) else json.dumps(about)})


def edit(*where: str | int, to: Any) -> bytes:
    """The tiny model's file with one entry of its description set."""
    about = to_change = description()
    for key in where[:-1]:
        to_change = to_change[key]
    to_change[where[-1]] = to
    return file_of(about, load(FILE))


def without(*where: str | int) -> bytes:
    """The tiny model's file without an entry of its description."""
    about = to_change = description()
    for key in where[:-1]:
        to_change = to_change[key]
    del to_change[where[-1]]
    return file_of(about, load(FILE))


def description() -> Any:
    return json.loads(json.loads(HEADER)["__metadata__"]["dabnet"])


def with_tensors(**changed: Any) -> bytes:
    """The tiny model's file with other tensors; `None` takes one away, and `_0_bias` stands for '0.bias'."""
    tensors = load(FILE) | {name[1:].replace("_", ".", 1): array for name, array in changed.items()}
    return file_of(description(), {name: array for name, array in tensors.items() if array is not None})


def graph(*nodes: dict[str, Any], size: tuple[int, int, int] = (1, 4, 4), **tensors: NDArray[Any]) -> bytes:
    """A file of these nodes; a node without `inputs` takes what the one before it makes."""
    about = {"version": 1, "input": size, "nodes": [{"inputs": [at]} | node for at, node in enumerate(nodes)]}
    return file_of(about, {name[1:].replace("_", ".", 1): array for name, array in tensors.items()})


def node(op: str, *inputs: int, **entries: Any) -> dict[str, Any]:
    return {"op": op, **({"inputs": inputs} if inputs else {}), **entries}


ONE = np.ones((1, 1, 1, 1), dtype=np.float32)
BIT = np.ones((1, 1), dtype=np.uint8)

CONTAINERS = {
    "nothing": (b"", "not a safetensors file"),
    "text": (b"a drawing of a house", "not a safetensors file"),
    "cut": (FILE[:-1], "not a safetensors file"),
    "longer": (FILE + b"\0", "not a safetensors file"),
    "header_too_long": (b"\xff" * 8 + FILE[8:], "not a safetensors file"),
    "other_type": (
        FILE.replace(b'"F32","shape":[1],"data_offsets":[0,4]', b'"BF16","shape":[2],"data_offsets":[0,4]').replace(
            b"}}    ", b"}}   "
        ),
        "it holds a tensor of type 'BF16', and packed models have none",
    ),
    "no_metadata": (save({"0.weight": ONE}), "no description of a model under 'dabnet'"),
    "other_metadata": (save({"0.weight": ONE}, {"format": "pt"}), "no description of a model under 'dabnet'"),
    "no_json": (file_of("{", {}), "no description of a model under 'dabnet'"),
    "deep_json": (file_of("[" * 100_000, {}), "no description of a model under 'dabnet'"),
}

DESCRIPTIONS = {
    "no_object": (file_of([], {}), "its description is not a JSON object"),
    "weights_of_a_run": (
        file_of({"settings": {"network": "resnet18"}, "classes": ["sun"], "raster": {"size": 64}}, {"fc.weight": ONE}),
        "the weights of a network that is not packed yet: dabnet export packs it",
    ),
    "other_version": (edit("version", to=4), "version 4, and this dabnet reads 1, 2 and 3"),
    "no_version": (without("version"), "version None, and this dabnet reads 1, 2 and 3"),
    "unknown_entry": (edit("colour", to="red"), "has an unknown entry, 'colour'"),
    "no_nodes": (without("nodes"), "its description lacks 'nodes'"),
    "no_input": (without("input"), "its description lacks 'input'"),
    "nodes_no_list": (edit("nodes", to={"op": "relu"}), "its nodes are not a list"),
    "input_no_list": (edit("input", to=9), "its input is not a list of channels, height and width"),
    "input_too_short": (edit("input", to=[9, 9]), "its input is not a list of channels, height and width"),
    "input_too_large": (edit("input", to=[1, 65_536, 1]), "its input is not a list of channels, height and width"),
    "input_without_rows": (edit("input", to=[1, 0, 3]), "input cannot be 1x0x3"),
    "labels_no_list": (edit("labels", to="sun"), "its labels are not a list"),
    "labels_null": (edit("labels", to=None), "its labels are not a list"),
    "too_few_labels": (edit("labels", to=["sun"]), "with 2 outputs has 1 labels"),
    "same_labels": (edit("labels", to=["sun", "sun"]), "two classes of a model have the same label"),
    "label_no_text": (edit("labels", to=["sun", 7]), "labels are texts of 1 to 1,000 characters"),
    "label_a_list": (edit("labels", to=["sun", ["tree"]]), "labels are texts of 1 to 1,000 characters"),
    "label_empty": (edit("labels", to=["sun", ""]), "labels are texts of 1 to 1,000 characters"),
    "label_too_long": (edit("labels", to=["sun", "tree" * 251]), "labels are texts of 1 to 1,000 characters"),
    "label_half_a_character": (edit("labels", to=["sun", "\ud83c"]), "labels are texts of 1 to 1,000 characters"),
    "raster_no_object": (edit("raster", to=["size", "margin", "pen"]), "rasterize is not a size, a margin and a pen"),
    "raster_without_pen": (edit("raster", to={"size": 64, "margin": 0.1}), "not a size, a margin and a pen"),
    "raster_with_more": (edit("raster", to={"size": 8, "margin": 0, "pen": 0.1, "dpi": 9}), "not a size, a margin"),
    "raster_size_no_integer": (edit("raster", to={"size": 0.5, "margin": 0, "pen": 0.1}), "not a size, a margin"),
    "raster_not_finite": (edit("raster", to={"size": 8, "margin": 0, "pen": np.inf}), "not a size, a margin and a pen"),
    "temperature_of_0": (edit("temperature", to=0), "temperature is a finite number above 0, not 0.0"),
    "temperature_below_0": (edit("temperature", to=-2.5), "temperature is a finite number above 0, not -2.5"),
    "temperature_not_finite": (edit("temperature", to=np.inf), "its temperature is not a finite number"),
    "temperature_huge": (edit("temperature", to=10**400), "its temperature is not a finite number"),
    "temperature_as_text": (edit("temperature", to="1"), "its temperature is not a finite number"),
    "views_temperature_in_version_1": (edit("views_temperature", to=0.5), "needs version 2 of the format"),
    "temperature_null": (edit("temperature", to=None), "its temperature is not a finite number"),
    "raster_huge": (edit("raster", to={"size": 8, "margin": 10**400, "pen": 0.1}), "not a size, a margin and a pen"),
}

NODES = {
    "node_no_object": (edit("nodes", 1, to="sign"), "node 1 is 'sign', and that is no operation"),
    "op_unknown": (edit("nodes", 1, "op", to="tanh"), "node 1 is 'tanh', and that is no operation"),
    "op_missing": (without("nodes", 1, "op"), "node 1 is 'None', and that is no operation"),
    "op_no_text": (edit("nodes", 1, "op", to=["sign"]), "node 1 is .*, and that is no operation"),
    "setting_unknown": (edit("nodes", 1, "kernel", to=[1, 1]), "node 1, sign, has an unknown entry, 'kernel'"),
    "setting_is_an_array": (edit("nodes", 1, "flip", to=[1]), "node 1, sign, has an unknown entry, 'flip'"),
    "setting_missing": (without("nodes", 0, "filters"), "node 0, conv, lacks 'filters'"),
    "inputs_missing": (without("nodes", 1, "inputs"), "node 1, sign, lacks 'inputs'"),
    "pair_of_one": (edit("nodes", 0, "kernel", to=[2]), r"node 0, conv: 'kernel' cannot be \[2\]"),
    "pair_no_list": (edit("nodes", 0, "kernel", to=2), "node 0, conv: 'kernel' cannot be 2"),
    "sides_of_two": (edit("nodes", 2, "padding", to=[0, 1]), r"node 2, conv: 'padding' cannot be \[0, 1\]"),
    "below_0": (edit("nodes", 2, "padding", to=[0, -1, 0, 0]), r"'padding' cannot be \[0, -1, 0, 0\]"),
    "beyond_65535": (edit("nodes", 0, "filters", to=65_536), "'filters' cannot be 65536"),
    "integer_with_a_fraction": (edit("nodes", 0, "filters", to=1.0), "'filters' cannot be 1.0"),
    "truth_as_integer": (edit("nodes", 0, "filters", to=True), "'filters' cannot be True"),
    "name_no_text": (edit("nodes", 0, "name", to=7), "'name' cannot be 7"),
    "name_half_a_character": (edit("nodes", 0, "name", to="\ud83c"), r"'name' cannot be '\\ud83c'"),
    "number_not_finite": (graph(node("clamp", low=0, high=np.nan)), "'high' cannot be nan"),
    "number_huge": (graph(node("clamp", low=0, high=10**400)), "'high' cannot be 1000"),
    "number_as_text": (graph(node("clamp", low="0", high=1)), "'low' cannot be '0'"),
}

GRAPHS = {
    "empty": (graph(), "a model needs at least one node"),
    "too_many_nodes": (graph(*[node("relu")] * 10_001), "at most 10,000 nodes, not 10,001"),
    "value_of_its_own": (edit("nodes", 0, "inputs", to=[1]), r"node 0, conv \('first'\): it takes values \[1\]"),
    "value_before_all": (edit("nodes", 1, "inputs", to=[-1]), r"'inputs' cannot be \[-1\]"),
    "value_after_all": (edit("nodes", 2, "inputs", to=[9]), r"it takes values \[9\], and there are 0 to 2"),
    "no_value": (edit("nodes", 1, "inputs", to=[]), r"it takes values \[\], and there are 0 to 1"),
    "two_values": (edit("nodes", 1, "inputs", to=[0, 1]), "node 1, sign: it takes one value, not 2"),
    "too_large_maps": (graph(node("conv", filters=1, padding=[65_000] * 4), _0_weight=ONE), "1x130004x130004"),
    "too_many_channels": (graph(node("flatten"), size=(1, 256, 256)), "65536x1x1, and a side has 1 to 65,535"),
    "signs_to_a_relu": (graph(node("sign"), node("relu")), "node 1, relu: it takes real numbers, and gets signs"),
    "signs_to_a_sign": (graph(node("sign"), node("sign")), "node 1, sign: it takes real numbers, and gets signs"),
    "signs_to_a_sum": (graph(node("sign"), node("add", 1, 1)), "node 1, add: it takes real numbers, and gets signs"),
    "signs_to_a_concat": (graph(node("sign"), node("concat", 1, 1)), "node 1, concat: it takes real numbers"),
    "signs_to_real_weights": (
        graph(node("sign"), node("conv", filters=1), _1_weight=ONE),
        "weights of 32 bits take real numbers, and have no 'middle'",
    ),
    "sum_of_one": (graph(node("add", 0)), "it adds two values of one shape, not 1x4x4"),
    "sum_of_three": (graph(node("add", 0, 0, 0)), "it adds two values of one shape, not 1x4x4 and 1x4x4 and 1x4x4"),
    "sum_of_unlike_shapes": (graph(node("flatten"), node("add", 0, 1)), "not 1x4x4 and 16x1x1"),
    "concat_of_unlike_maps": (
        graph(node("flatten"), node("concat", 0, 1)),
        "maps of one size, not 1x4x4 and 16x1",
    ),
    "concat_of_signs_and_numbers": (graph(node("sign"), node("concat", 0, 1)), "not 1x4x4 and 1x4x4 signs"),
}

SETTINGS = {
    "kernel_of_0": (edit("nodes", 0, "kernel", to=[0, 2]), "kernel, stride and dilation are at least 1"),
    "stride_of_0": (edit("nodes", 0, "stride", to=[1, 0]), "kernel, stride and dilation are at least 1"),
    "dilation_of_0": (edit("nodes", 0, "dilation", to=[0, 1]), "kernel, stride and dilation are at least 1"),
    "window_too_large": (edit("nodes", 0, "kernel", to=[2, 4]), r"a window of 4 does not fit into a width of 3 with"),
    "window_too_wide_apart": (edit("nodes", 0, "dilation", to=[3, 1]), "a window of 4 does not fit into a height of 3"),
    "no_filters": (edit("nodes", 0, "filters", to=0), "filters and groups are at least 1"),
    "no_groups": (edit("nodes", 0, "groups", to=0), "filters and groups are at least 1"),
    "groups_of_channels": (edit("nodes", 2, "groups", to=2), "2 groups do not divide 1 channels and 2 filters"),
    "groups_of_filters": (
        graph(node("conv", filters=3, groups=2), size=(2, 4, 4)),
        "2 groups do not divide 2 channels and 3 filters",
    ),
    "pad_value_of_2": (edit("nodes", 2, "pad_value", to=2), "a padded tap cannot hold 2 here"),
    "pad_value_of_numbers": (edit("nodes", 0, "pad_value", to=1), "a padded tap cannot hold 1 here"),
    "too_many_taps": (
        graph(node("conv", filters=1, kernel=[4097, 4096]), size=(1, 5000, 5000), _0_bits=BIT, _0_scale=floats(1)),
        "a one-bit filter has more than 16,777,216 weights",
    ),
    "pool_too_large": (graph(node("max_pool", kernel=[5, 1])), "a window of 5 does not fit into a height of 4"),
    "pool_above": (graph(node("max_pool", padding=[1, 0, 0, 0])), "nothing but padding along its height"),
    "pool_to_the_right": (graph(node("avg_pool", padding=[0, 0, 0, 2], kernel=[1, 2])), "padding along its width"),
    "pool_between": (graph(node("max_pool", kernel=[1, 2], dilation=[1, 6], padding=[0, 2, 0, 1])), "its width"),
    "pool_of_too_many_positions": (graph(node("max_pool", padding=[0, 65_535, 0, 65_535])), "would make a width of"),
    "count_padding_of_2": (graph(node("avg_pool", count_padding=2)), "count_padding is 0 or 1, not 2"),
    "no_parts": (graph(node("adaptive_avg_pool", size=[0, 1])), "would make 1x0x1"),
    "low_above_high": (graph(node("clamp", low=1, high=0)), r"it cannot clamp to \[1.0, 0.0\]"),
    "beyond_float32": (graph(node("clamp", low=0, high=1e39)), r"it cannot clamp to \[0.0, 1e\+39\]"),
}

TENSORS = {
    "unused": (with_tensors(_3_bias=floats(1)), "no node uses its tensor '3.bias'"),
    "unknown": (with_tensors(_1_scale=floats(1)), "no node uses its tensor '1.scale'"),
    "no_weights": (with_tensors(_0_weight=None), "it needs either 'weight', or 'bits' and 'scale'"),
    "no_bits": (with_tensors(_2_bits=None), "it needs either 'weight', or 'bits' and 'scale'"),
    "no_scale": (with_tensors(_2_scale=None), "it needs either 'weight', or 'bits' and 'scale'"),
    "weights_twice": (with_tensors(_2_weight=ONE), "it needs either 'weight', or 'bits' and 'scale'"),
    "middle_of_real_weights": (with_tensors(_0_middle=floats(1)), "take real numbers, and have no 'middle'"),
    "other_shape": (
        with_tensors(_0_weight=floats(1, 2, 3, 4)),
        r"'weight' is float32 \(4,\), and has to be float32 \(1, 2, 2, 1\)",
    ),
    "other_order": (with_tensors(_2_bits=np.zeros((1, 2), dtype=np.uint8)), r"has to be uint8 \(2, 1\)"),
    "too_many_bytes": (with_tensors(_2_bits=np.zeros((2, 2), dtype=np.uint8)), r"has to be uint8 \(2, 1\)"),
    "no_axis": (with_tensors(_0_bias=np.array(1, dtype=np.float32)), r"'bias' is float32 \(\), and has to be"),
    "float64": (with_tensors(_0_bias=np.ones(1)), r"'bias' is float64 \(1,\), and has to be float32 \(1,\)"),
    "float16": (with_tensors(_2_scale=np.ones(2, dtype=np.float16)), "'scale' is float16"),
    "int8": (with_tensors(_2_bits=np.ones((2, 1), dtype=np.int8)), "'bits' is int8"),
    "truths": (with_tensors(_1_flip=np.ones(1, dtype=np.bool_)), "'flip' is bool"),
    "nan": (with_tensors(_0_bias=floats(np.nan)), "'bias' holds a number that is not finite"),
    "infinite": (with_tensors(_2_scale=floats(1, np.inf)), "'scale' holds a number that is not finite"),
    "threshold_nan": (with_tensors(_1_threshold=floats(np.nan)), "'threshold' holds a number that is not finite"),
    "bits_beyond": (with_tensors(_2_bits=np.array([[7], [64]], dtype=np.uint8)), "'bits' has bits beyond the last one"),
    "flip_beyond": (with_tensors(_1_flip=np.array([2], dtype=np.uint8)), "'flip' has bits beyond the last one"),
    "affine_without_shift": (graph(node("affine"), _0_scale=floats(1)), "it needs 'scale' and 'shift'"),
    "prelu_without_slope": (graph(node("prelu")), "it needs 'slope'"),
    "prelu_of_one_slope": (graph(node("prelu"), size=(2, 1, 1), _0_slope=floats(1)), r"has to be float32 \(2,\)"),
}


def whole(scale: Any, low: Any, high: Any, *more: dict[str, Any], version: int = 3, **tensors: Any) -> bytes:
    """A file whose first node is a quantize."""
    data = graph(node("quantize", 0, scale=scale, low=low, high=high), *more, **tensors)
    return data.replace(rb"\"version\": 1", rb"\"version\": %d" % version)


WHOLE_NUMBERS = {
    "whole_in_version_2": (whole(1, 0, 15, version=2), "whole numbers need version 3 of the format"),
    "whole_of_halves": (whole(1, 0, 15.5), r"cannot round to whole numbers of \[0.0, 15.5\]"),
    "whole_above_0": (whole(1, 1, 15), r"cannot round to whole numbers of \[1.0, 15.0\]"),
    "whole_below_0": (whole(1, -9, -1), r"cannot round to whole numbers of \[-9.0, -1.0\]"),
    "whole_of_one_number": (whole(1, 0, 0), r"cannot round to whole numbers of \[0.0, 0.0\]"),
    "whole_of_9_bits": (whole(1, -1, 255), r"cannot round to whole numbers of \[-1.0, 255.0\]"),
    "whole_scaled_by_0": (whole(0, 0, 15), "its scale cannot be 0"),
    "whole_turned": (whole(-1, 0, 15), "its scale cannot be -1"),
    "whole_scaled_by_too_much": (whole(1e39, 0, 15), "its scale cannot be 1e\\+39"),
    "whole_scaled_by_next_to_nothing": (whole(1e-50, 0, 15), "its scale cannot be 1e-50"),
    "whole_to_a_pool": (whole(1, 0, 15, node("max_pool")), "it takes real numbers, and gets whole numbers"),
    "whole_added": (whole(1, 0, 15, node("add", 1, 1)), "it takes real numbers, and gets whole numbers"),
    "whole_to_real_weights": (
        whole(1, 0, 15, node("conv", filters=1), _1_weight=floats(1).reshape(1, 1, 1, 1)),
        "weights of 32 bits take real numbers",
    ),
    "whole_padded_with_1": (
        whole(1, 0, 15, node("conv", filters=1, pad_value=1), _1_bits=np.ones((1, 1), np.uint8), _1_scale=floats(1)),
        "a padded tap cannot hold 1 here",
    ),
    "whole_with_large_filters": (
        whole(
            1,
            0,
            15,
            node("conv", filters=1, kernel=[300, 300], padding=[300, 300, 300, 300]),
            _1_bits=np.zeros((1, 11250), np.uint8),
            _1_scale=floats(1),
        ),
        "a one-bit filter of whole numbers has more than 65,536 weights",
    ),
}

BAD = CONTAINERS | DESCRIPTIONS | NODES | GRAPHS | SETTINGS | TENSORS | WHOLE_NUMBERS


@pytest.mark.parametrize(("data", "sentence"), BAD.values(), ids=BAD)
def test_a_bad_file_gets_its_sentence(data: bytes, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError, match=rf"^[^\n]*{sentence}[^\n]*\.$") as caught:
        read_model(data)
    path = tmp_path / "bad.safetensors"
    path.write_bytes(data)
    with pytest.raises(ModelFormatError) as of_file:
        read_model(path)
    assert str(of_file.value) == f"'{path}' is not a packed model that can be used: {caught.value}"
    assert str(of_file.value).isprintable()


def test_the_table_spoils_one_thing_at_a_time() -> None:
    assert len(BAD) == sum(map(len, (CONTAINERS, DESCRIPTIONS, NODES, GRAPHS, SETTINGS, TENSORS, WHOLE_NUMBERS)))
    assert_same(read_model(edit("version", to=1)), tiny_model())
    assert_same(read_model(edit("raster", to=None)), tiny_model())
    assert read_model(edit("temperature", to=2)).temperature == 2
    read_model(with_tensors(_1_threshold=floats(-np.inf)))
    read_model(graph(*[node("relu")] * 10_000))
    read_model(graph(node("sign"), node("conv", filters=1), _1_bits=BIT, _1_scale=floats(1)))


def test_files_that_cannot_be_read_get_their_sentence(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("none", "", "pipe"):
        with pytest.raises(ModelFormatError, match=r"^'.*' is not a file that is there: check the path\.$"):
            read_model(tmp_path / name)


def test_files_over_the_limit_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "tiny.safetensors"
    path.write_bytes(FILE)
    with pytest.raises(ModelFormatError, match=r"has 795 bytes, and a model may take 794: raise max_memory .*\.$"):
        read_model(path, max_memory=794)
    assert_same(read_model(path, max_memory=795), tiny_model())
    with path.open("r+b") as file:
        file.truncate(300 << 20)  # takes no space
    with pytest.raises(ModelFormatError, match=r"has 314,572,800 bytes, and a model may take 268,435,456"):
        read_model(path)


@pytest.mark.parametrize(
    "model",
    [
        lambda: Session(graph(node("conv", filters=1, padding=[20_000] * 4), _0_weight=ONE)),
        lambda: Session(FILE, max_memory=100),
    ],
)
def test_models_that_take_too_much_memory_get_their_sentence(model: Callable[[], Session]) -> None:
    with pytest.raises(ModelFormatError, match=r"^the model takes more than [\d,]+ bytes of memory: raise max_.*\.$"):
        model()


def test_what_no_file_can_hold_is_refused_before_it_is_written() -> None:
    nodes = (Relu(inputs=(0,)),)
    for label in ("", "\ud83c", "x" * 1001):
        with pytest.raises(ModelFormatError, match=r"labels are texts of 1 to 1,000 characters\.$"):
            Model((1, 1, 1), nodes, labels=(label,))
    with pytest.raises(ModelFormatError, match=r"way to rasterize is not a size, a margin and a pen\.$"):
        Model((1, 1, 1), nodes, raster={"size": 64})
    for temperature in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ModelFormatError, match=r"temperature is (not )?a finite number.*\.$"):
            Model((1, 1, 1), nodes, temperature=temperature)
