"""The three networks: that they are the published ones, and that every precision and method trains."""

from __future__ import annotations

import copy
import dataclasses
import json
import operator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, get_args

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import dabnet
from dabnet.binarizers.choices import Method, Precision, choose_axes
from dabnet.errors import InputError, NonFiniteError
from dabnet.networks.activations import RPReLU
from dabnet.networks.blocks import Network
from dabnet.networks.catalog import NETWORKS, build
from dabnet.networks.convert import binary_layers, constrain_
from dabnet.networks.layers import BinaryConv2d, BinaryLayer
from dabnet.networks.settings import NetworkSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

# Every network there is, as the arguments that choose it.
KINDS: dict[str, dict[str, Any]] = {
    "sketch_a_net": {"name": "sketch_a_net"},
    "resnet18": {"name": "resnet18"},
    "resnet18 conv": {"name": "resnet18", "shortcuts": "conv"},
    "googlenet": {"name": "googlenet"},
}
BINARY = [(precision, method) for precision in ("wbin", "fbin") for method in get_args(Method)]
every_kind = pytest.mark.parametrize("kind", KINDS)
every_precision = pytest.mark.parametrize("precision", get_args(Precision))


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Layers as small as these take longer on several threads than on one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def tiny(kind: str, precision: Precision, method: Method = "dab", **changes: Any) -> Network:
    size = 81 if kind == "sketch_a_net" else 32
    settings = {"classes": 5, "width": 0.125, "input_size": size, **KINDS[kind], **changes}
    return build(**settings, precision=precision, method=method)


def sketches(net: Network, count: int = 4) -> Tensor:
    return (torch.rand(count, 1, net.input_size, net.input_size) > 0.8).float()


def full_size(kind: str, precision: Precision = "fprec", classes: int = 250) -> Network:
    """The network of the paper, without numbers."""
    with torch.device("meta"):
        return build(**KINDS[kind], classes=classes, precision=precision)


def count_parameters(net: nn.Module) -> int:
    return sum(parameter.numel() for parameter in net.parameters())


def outputs(net: Network, x: Tensor) -> dict[str, Tensor]:
    """What each module gives in one forward pass, by name and in order."""
    found: dict[str, Tensor] = {}
    handles = [
        module.register_forward_hook(lambda _, __, output, name=name: found.update({name: output}))
        for name, module in net.named_modules()
    ]
    net(x)
    for handle in handles:
        handle.remove()
    return found


def count_multiply_adds(net: Network) -> int:
    found = outputs(net, torch.empty(2, 1, net.input_size, net.input_size, device="meta"))
    layers = {name: module for name, module in net.named_modules() if isinstance(module, nn.Conv2d | nn.Linear)}
    return sum(found[name][0].numel() * layer.weight[0].numel() for name, layer in layers.items())


class LayerTracer(torch.fx.Tracer):
    """Takes a binary layer for one step, as it does torch's own."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, BinaryLayer) or super().is_leaf_module(m, module_qualified_name)


# The published networks have 3 input channels and 1,000 classes; ours see 1 channel and tell 250 classes apart.
STEM_7X7_OF_2_CHANNELS = 2 * 64 * 7 * 7


def test_resnet18_has_the_published_parameters_and_multiply_adds() -> None:
    net = full_size("resnet18")
    assert count_parameters(net) == 11_689_512 - STEM_7X7_OF_2_CHANNELS - 750 * (512 + 1) == 11_298_490
    multiply_adds = 1_814_073_344 - STEM_7X7_OF_2_CHANNELS * 112 * 112 - 750 * 512
    assert count_multiply_adds(net) == multiply_adds == 1_735_013_376


def test_googlenet_has_the_published_parameters_and_multiply_adds() -> None:
    net = full_size("googlenet")
    filters = sum(module.out_channels for module in net.modules() if isinstance(module, nn.Conv2d))
    # The published network has a bias where ours has the two numbers of a norm.
    assert count_parameters(net) == 6_998_552 + filters - STEM_7X7_OF_2_CHANNELS - 750 * (1024 + 1) == 6_230_810
    # Without the last layer: 5.98 million for 3 channels.
    assert count_parameters(net) - count_parameters(net.get_submodule("head")) == 5_980_832 - STEM_7X7_OF_2_CHANNELS
    multiply_adds = 1_582_671_872 - STEM_7X7_OF_2_CHANNELS * 112 * 112 - 750 * 1024
    assert count_multiply_adds(net) == multiply_adds == 1_503_227_904


def test_sketch_a_net_has_the_published_8_5_million_weights() -> None:
    net = full_size("sketch_a_net")
    weights = sum(module.weight.numel() for module in net.modules() if isinstance(module, nn.Conv2d | nn.Linear))
    assert weights == 8_506_432
    assert count_parameters(net) == weights + 2 * (64 + 128 + 3 * 256 + 2 * 512) + 250 == 8_510_650
    assert count_multiply_adds(net) == 607_991_872


@every_kind
@pytest.mark.parametrize("precision", ["wbin", "fbin"])
def test_binary_networks_do_the_same_multiply_adds(kind: str, precision: Precision) -> None:
    assert count_multiply_adds(full_size(kind, precision)) == count_multiply_adds(full_size(kind))


MAPS = {
    "sketch_a_net": {
        "conv1": (64, 71, 71),
        "pool1": (64, 35, 35),
        "conv2": (128, 31, 31),
        "pool2": (128, 15, 15),
        "conv3": (256, 15, 15),
        "conv4": (256, 15, 15),
        "conv5": (256, 15, 15),
        "pool5": (256, 7, 7),
        "full6": (512, 1, 1),
        "full7": (512, 1, 1),
        "head": (250,),
    },
    "resnet18": {
        "stem": (64, 112, 112),
        "pool": (64, 56, 56),
        "stage1": (64, 56, 56),
        "stage2": (128, 28, 28),
        "stage3": (256, 14, 14),
        "stage4": (512, 7, 7),
        "average": (512, 1, 1),
        "head": (250,),
    },
    "googlenet": {
        "stem": (64, 112, 112),
        "pool1": (64, 56, 56),
        "conv2_reduce": (64, 56, 56),
        "conv2": (192, 56, 56),
        "pool2": (192, 28, 28),
        "inception3a": (256, 28, 28),
        "inception3b": (480, 28, 28),
        "pool3": (480, 14, 14),
        "inception4a": (512, 14, 14),
        "inception4b": (512, 14, 14),
        "inception4c": (512, 14, 14),
        "inception4d": (528, 14, 14),
        "inception4e": (832, 14, 14),
        "pool4": (832, 7, 7),
        "inception5a": (832, 7, 7),
        "inception5b": (1024, 7, 7),
        "average": (1024, 1, 1),
        "head": (250,),
    },
}
MAPS["resnet18 conv"] = MAPS["resnet18"]


@every_kind
@every_precision
def test_every_stage_has_the_published_shape(kind: str, precision: Precision) -> None:
    net = full_size(kind, precision)
    found = outputs(net, torch.empty(2, 1, net.input_size, net.input_size, device="meta"))
    assert {name: tuple(found[name].shape[1:]) for name in MAPS[kind]} == MAPS[kind]
    assert found[""].shape == (2, 250)


@pytest.mark.parametrize("kind", ["resnet18", "resnet18 conv", "googlenet"])
@pytest.mark.parametrize("size", [16, 28, 33, 97])
def test_average_pooling_takes_any_size(kind: str, size: int) -> None:
    with torch.device("meta"):
        net = tiny(kind, "fbin", input_size=size)
    assert net(torch.empty(2, 1, size, size + 3, device="meta")).shape == (2, 5)


@pytest.mark.parametrize("size", [81, 92, 93, 128, 224, 256])
def test_sketch_a_net_takes_any_size_that_leaves_a_map(size: int) -> None:
    with torch.device("meta"):
        net = tiny("sketch_a_net", "wbin", input_size=size)
    found = outputs(net, torch.empty(2, 1, size, size, device="meta"))
    assert found["full6"].shape == (2, 64, 1, 1)
    assert found[""].shape == (2, 5)


@every_kind
@every_precision
@pytest.mark.parametrize("real_last", [None, True, False])
def test_all_but_the_first_layer_are_binary_and_the_last_as_asked(
    kind: str, precision: Precision, real_last: bool | None
) -> None:
    net = tiny(kind, precision, real_last=real_last)
    layers = [name for name, module in net.named_modules() if isinstance(module, nn.Conv2d | nn.Linear)]
    expected = set(layers[1:]) if precision != "fprec" else set()
    if kind == "sketch_a_net" if real_last is None else real_last:
        expected -= {"head.linear"}
    if kind == "resnet18 conv":
        expected -= {f"stage{stage}.0.conv1.shortcut.conv" for stage in (2, 3, 4)}
    assert layers[-1] == "head.linear"
    assert {name for name, module in net.named_modules() if isinstance(module, BinaryLayer)} == expected
    for layer in binary_layers(net):
        assert layer.precision == precision
        assert not (isinstance(layer, BinaryConv2d) and layer.bias is not None)


@every_kind
@every_precision
def test_a_norm_follows_a_convolution_or_precedes_its_sign(kind: str, precision: Precision) -> None:
    net = tiny(kind, precision)
    modules = dict(net.named_modules())
    for node in LayerTracer().trace(net).nodes:
        layer = modules.get(str(node.target))
        if not isinstance(layer, nn.Conv2d):
            continue
        (follower,) = node.users
        following = modules.get(str(follower.target))
        if isinstance(layer, BinaryConv2d) and precision == "fbin":
            assert isinstance(layer.norm, nn.BatchNorm2d)
            assert isinstance(following, nn.ReLU) or follower.target is operator.add
        else:
            assert not isinstance(layer, BinaryConv2d) or layer.norm is None
            assert isinstance(following, nn.BatchNorm2d)


@every_kind
@pytest.mark.parametrize("real_last", [True, False])
def test_every_sign_sees_both_signs(kind: str, real_last: bool) -> None:
    torch.manual_seed(0)
    net = tiny(kind, "fbin", real_last=real_last).train()
    found = outputs(net, sketches(net, 8))
    for name, layer in net.named_modules():
        if isinstance(layer, BinaryLayer):
            share = (found[f"{name}.norm"] >= 0).float().mean()
            assert 0.02 < share < 0.98, name


@pytest.mark.parametrize(
    ("kind", "precision", "real_last", "expected"),
    [
        ("sketch_a_net", "fprec", None, {"full7.dropout": 0.5, "head.dropout": 0.5}),
        ("sketch_a_net", "wbin", None, {"full7.dropout": 0.5, "head.dropout": 0.5}),
        ("sketch_a_net", "fbin", None, {"head.dropout": 0.5}),
        ("sketch_a_net", "fbin", False, {}),
        ("googlenet", "fprec", None, {"head.dropout": 0.4}),
        ("googlenet", "wbin", None, {"head.dropout": 0.4}),
        ("googlenet", "fbin", None, {}),
        ("googlenet", "fbin", True, {"head.dropout": 0.4}),
        ("resnet18", "fprec", None, {}),
    ],
)
def test_real_inputs_of_the_last_layers_are_dropped_and_signs_are_not(
    kind: str, precision: Precision, real_last: bool | None, expected: dict[str, float]
) -> None:
    net = tiny(kind, precision, real_last=real_last)
    assert {name: module.p for name, module in net.named_modules() if isinstance(module, nn.Dropout)} == expected


def train_once(net: Network) -> None:
    torch.manual_seed(0)
    constrain_(net)
    before = {name: parameter.detach().clone() for name, parameter in net.named_parameters()}
    optimizer = torch.optim.Adam(net.train().parameters(), lr=1e-2)
    loss = F.cross_entropy(net(sketches(net, 8)), torch.arange(8) % 5)
    loss.backward()
    optimizer.step()
    constrain_(net)
    assert loss.isfinite()
    for name, parameter in net.named_parameters():
        assert parameter.isfinite().all(), name
        assert not torch.equal(parameter, before[name]), name


@every_kind
def test_a_training_step_changes_every_parameter_of_a_real_network(kind: str) -> None:
    train_once(tiny(kind, "fprec"))


@every_kind
@pytest.mark.parametrize(("precision", "method"), BINARY)
def test_a_training_step_changes_every_parameter_of_a_binary_network(
    kind: str, precision: Precision, method: Method
) -> None:
    train_once(tiny(kind, precision, method))


@every_kind
@every_precision
def test_the_two_axes_and_the_papers_names_build_the_same(kind: str, precision: Precision) -> None:
    weights, activations = choose_axes(precision, "xnor", None, None, default=("real", "real"))
    torch.manual_seed(1)
    paper = tiny(kind, precision, "xnor")
    torch.manual_seed(1)
    net = build(**{**paper.settings, "weights": weights, "activations": activations})
    assert net.settings == paper.settings
    assert (net.settings["weights"], net.settings["activations"]) == (weights, activations)
    for mine, other in zip(net.parameters(), paper.parameters(), strict=True):
        assert torch.equal(mine, other)


def test_a_network_is_real_but_for_the_axis_that_is_given() -> None:
    def settings(**axes: Any) -> tuple[str, str]:
        net = build("resnet18", 5, width=0.125, input_size=32, **axes)
        return net.settings["weights"], net.settings["activations"]

    assert settings() == settings(method="xnor") == ("real", "real")
    assert settings(weights="xnor") == ("xnor", "real")
    assert settings(activations="sign") == ("real", "sign")
    assert settings(weights="dab", activations="int4") == ("dab", "int4")
    with pytest.raises(InputError, match="activations='int8' is for one-bit weights"):
        settings(activations="int8")


@every_kind
def test_signs_with_real_weights_are_the_first_stage_of_a_binary_network(kind: str) -> None:
    """The same tensors under the same names, so that the second stage can start from the first."""
    first = build(**{**tiny(kind, "fbin").settings, "weights": "real", "gradient": None})
    second = tiny(kind, "fbin")
    assert list(binary_layers(first)) == []
    second.load_state_dict(first.state_dict())
    train_once(first)


REACTNET: dict[str, Any] = {"threshold": "learned", "nonlinearity": "rprelu"}


@every_kind
def test_learned_thresholds_and_shifts_train_and_add_no_keys_where_they_are_off(kind: str) -> None:
    net, plain = tiny(kind, "fbin", **REACTNET), tiny(kind, "fbin")
    train_once(net)
    names = ("threshold", "shift_before", "shift_after")
    learned = [name for name, _ in net.named_parameters() if name.endswith(names)]
    signs = [layer for layer in net.modules() if isinstance(layer, BinaryLayer) and layer.has_signs]
    bent = [layer for layer in net.modules() if isinstance(layer, RPReLU)]
    assert len(learned) == len(signs) + 2 * len(bent) > 0
    assert all(layer.norm is None for layer in signs)  # the norm follows the convolution, as in ReActNet
    assert not [layer for layer in net.modules() if isinstance(layer, nn.ReLU)]
    assert not [name for name in plain.state_dict() if "threshold" in name or "shift" in name or "quantize" in name]


def test_a_prelu_becomes_an_rprelu_with_the_same_slopes() -> None:
    plain, net = (tiny("resnet18 conv", "fbin", nonlinearity=kind) for kind in (None, "rprelu"))
    assert isinstance(plain.get_submodule("stage1.0.conv1.activation"), nn.PReLU)
    missing, unexpected = net.load_state_dict(plain.state_dict(), strict=False)
    assert unexpected == []
    assert {name.rpartition(".")[2] for name in missing} == {"shift_before", "shift_after"}
    x = sketches(net)
    torch.testing.assert_close(net.eval()(x), plain.eval()(x))


@pytest.mark.parametrize(("kind", "expected"), [("relu", nn.ReLU), ("prelu", nn.PReLU), ("rprelu", RPReLU)])
def test_a_nonlinearity_takes_the_place_of_every_relu_but_the_first(kind: str, expected: type[nn.Module]) -> None:
    net = tiny("googlenet", "wbin", nonlinearity=kind)
    found = [m for name, m in net.named_modules() if name.endswith("relu") and not name.startswith("stem")]
    assert found
    assert all(type(module) is expected for module in found)


def test_binary_layers_start_with_the_deviation_that_is_asked_for() -> None:
    net = tiny("resnet18", "fbin", binary_start=0.01, width=0.5)
    assert all(0.008 < layer.weight.std() < 0.012 for layer in binary_layers(net))
    assert net.get_parameter("stem.conv.weight").std() > 0.02


@every_kind
def test_settings_of_binary_layers_reach_them_and_train(kind: str) -> None:
    net = tiny(kind, "fbin", gradient="exact", input_gradient="approx", max_k_step=0.1, real_last=False)
    for layer in binary_layers(net):
        settings = layer.settings
        assert (settings.gradient, settings.input_gradient, settings.max_k_step) == ("exact", "approx", 0.1)
    train_once(net)


@every_kind
@every_precision
def test_first_logits_are_of_size_one_for_any_number_of_classes(kind: str, precision: Precision) -> None:
    torch.manual_seed(0)
    for classes in (5, 500):
        net = tiny(kind, precision, classes=classes, width=0.25).train()
        assert 0.2 < net(sketches(net, 8)).std() < 5


@every_kind
@every_precision
def test_eval_mode_gives_the_same_logits_every_time_and_for_every_batch(kind: str, precision: Precision) -> None:
    torch.manual_seed(0)
    net = tiny(kind, precision)
    x = sketches(net)
    net.train()(x)
    net.eval()
    with torch.no_grad():
        logits = net(x)
        assert torch.equal(net(x), logits)
        torch.testing.assert_close(net(x[:1]), logits[:1], rtol=1e-3, atol=1e-3)


@every_kind
@every_precision
def test_networks_copy_trace_and_run_channels_last(kind: str, precision: Precision) -> None:
    torch.manual_seed(0)
    net = tiny(kind, precision)
    x = sketches(net)
    torch.fx.symbolic_trace(net)(x)
    net.eval()
    with torch.no_grad():
        logits = net(x)
        assert torch.equal(copy.deepcopy(net)(x), logits)
        traced = torch.fx.GraphModule(net, LayerTracer().trace(net))
        assert torch.equal(traced(x), logits)
        last = copy.deepcopy(net).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        torch.testing.assert_close(last(x.to(memory_format=torch.channels_last)), logits, rtol=1e-3, atol=1e-3)


@every_kind
@pytest.mark.parametrize(
    "changes",
    [{}, {"threshold": "learned", "nonlinearity": "rprelu"}, {"activations": "int4"}, {"activations": "int8"}],
)
def test_networks_compile_without_a_graph_break(kind: str, changes: dict[str, Any]) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    size = 81 if kind == "sketch_a_net" else 32
    kept = {"classes": 5, "width": 0.125, "input_size": size, "weights": "dab", "activations": "sign", **KINDS[kind]}
    net = build(**(kept | changes))
    compiled = torch.compile(net, fullgraph=True, backend="eager")  # raises where the graph would break
    assert compiled(sketches(net)).shape == (4, 5)


@every_kind
@every_precision
def test_settings_are_plain_and_build_the_same_network_again(kind: str, precision: Precision) -> None:
    net = tiny(kind, precision, "bnn")
    settings = json.loads(json.dumps(net.settings))
    assert settings == net.settings
    assert set(settings) == {field.name for field in dataclasses.fields(NetworkSettings)}
    again = build(**settings)
    assert type(again) is type(net)
    assert again.settings == net.settings
    assert again.input_size == net.input_size == settings["input_size"]
    shapes = [{name: value.shape for name, value in n.state_dict().items()} for n in (net, again)]
    assert shapes[0] == shapes[1]
    again.load_state_dict(net.state_dict())


def test_settings_left_out_are_filled_in_as_in_the_paper() -> None:
    with torch.device("meta"):
        sizes = {name: build(name, 250, "fbin").settings for name in NETWORKS}
    assert [settings["input_size"] for settings in sizes.values()] == [225, 224, 224]
    assert [settings["real_last"] for settings in sizes.values()] == [True, False, False]
    assert all(settings["gradient"] == "paper" for settings in sizes.values())
    assert dabnet.build is build


@every_kind
def test_width_multiplies_channels_and_keeps_them_multiples_of_8(kind: str) -> None:
    with torch.device("meta"):
        nets = [tiny(kind, "wbin", width=width) for width in (0.01, 0.3, 1, 2)]
    counts = []
    for net in nets:
        filters = [module.out_channels for module in net.modules() if isinstance(module, nn.Conv2d)]
        assert all(count >= 8 and count % 8 == 0 for count in filters)
        counts.append(filters)
    assert set(counts[0]) == {8}
    assert counts[3] == [2 * count for count in counts[2]]
    assert all(narrow < wide for narrow, wide in pairwise(map(sum, counts)))


def test_binary_layers_are_named_by_their_path() -> None:
    net = tiny("googlenet", "wbin")
    assert all(layer.name == name for name, layer in net.named_modules() if isinstance(layer, BinaryLayer))
    with torch.no_grad():
        net.get_parameter("inception4b.five.expand.conv.weight")[0, 0, 0, 0] = torch.nan
    with pytest.raises(NonFiniteError, match=r"inception4b\.five\.expand\.conv"):
        net(sketches(net))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"name": "resnet"}, "'resnet' is not a network: .* Did you mean 'resnet18'?"),
        ({"precision": "fbim"}, "'fbim' is not a precision: .* Did you mean 'fbin'?"),
        ({"method": "xor"}, "'xor' is not a method: .* Did you mean 'xnor'?"),
        ({"shortcuts": "convolution"}, "the network's shortcuts must be block or conv, not 'convolution'"),
        ({"name": "googlenet", "shortcuts": "conv"}, "'googlenet' has no shortcuts"),
        ({"name": "sketch_a_net", "shortcuts": "conv"}, "shortcuts='conv' is for 'resnet18' only"),
        ({"classes": 1}, "classes must be from 2 to"),
        ({"classes": 2.5}, "classes must be a whole number, not 2.5"),
        ({"width": 0}, "width must be from 0.01 to 4, not 0"),
        ({"width": 4.5}, "width must be from 0.01 to 4, not 4.5"),
        ({"input_size": 15}, "input_size of 'resnet18' must be from 16 to"),
        ({"name": "googlenet", "input_size": 15}, "input_size of 'googlenet' must be from 16 to"),
        ({"name": "sketch_a_net", "input_size": 80}, "input_size of 'sketch_a_net' must be from 81 to"),
        ({"input_size": 64.5}, "input_size must be a whole number, not 64.5"),
        ({"real_last": "yes"}, "real_last must be true or false"),
        (
            {"gradient": "exakt"},
            "the network's gradient must be one of paper, exact, ste, annealed, not 'exakt'. Did you mean 'exact'?",
        ),
        ({"method": "bnn", "gradient": "paper"}, "'paper'.*bnn|bnn.*'paper'"),
        (
            {"input_gradient": "clip"},
            "the network's input_gradient must be one of clipped, approx, annealed, not 'clip'",
        ),
        ({"max_k_step": 2}, "max_k_step must be from 1e-09 to 1, not 2"),
        ({"weights": "dab"}, "what is binary is given twice"),
        ({"activations": "sign"}, "what is binary is given twice"),
        ({"widht": 2}, "'resnet18' has no setting 'widht'. Did you mean 'width'?"),
        (
            {
                "activations": "sign",
                "weights": "dab",
                "precision": None,
                "threshold": "learned",
                "nonlinearity": "relu",
            },
            "makes signs that are all \\+1: choose prelu or rprelu",
        ),
        ({"nonlinearity": "rrelu"}, "nonlinearity must be one of relu, prelu, rprelu, not 'rrelu'. Did you mean"),
        ({"method": "xnor", "max_k_step": 0.1}, "max_k_step=0.1 with method 'xnor'"),
    ],
)
@every_precision
def test_a_bad_argument_gets_its_sentence_whatever_the_precision(
    arguments: dict[str, Any], sentence: str, precision: Precision
) -> None:
    with pytest.raises(InputError, match=sentence):
        build(**{"name": "resnet18", "classes": 5, "precision": precision, **arguments})
