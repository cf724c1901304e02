from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from dabnet.binarizers.settings import BinarySettings, change_settings
from dabnet.errors import InputError
from dabnet.networks.settings import NetworkOptions, NetworkSettings
from dabnet.training.recipe import Recipe


def test_layers_networks_and_recipes_have_the_same_settings_from_one_definition() -> None:
    names = [field.name for field in dataclasses.fields(BinarySettings)]
    options = [field.name for field in dataclasses.fields(NetworkOptions)]
    assert options[: len(names)] == names
    for holder in (NetworkSettings, Recipe):
        fields = {field.name: field for field in dataclasses.fields(holder)}
        assert list(fields)[: len(options)] == options
        for field in dataclasses.fields(NetworkOptions):
            assert (fields[field.name].default, fields[field.name].type) == (field.default, field.type)
    assert set(Recipe().network_settings(5)) == {*options, "name", "classes", "input_size"}


@pytest.mark.parametrize("holder", [BinarySettings, NetworkOptions, Recipe])
def test_settings_are_made_and_replaced_by_the_papers_names_too(holder: Any) -> None:
    made = holder(precision="wbin", method="xnor")
    assert made == holder(weights="xnor", activations="real")
    assert (made.precision, made.method) == ("wbin", "xnor")
    assert dataclasses.replace(made, precision="fbin") == holder(weights="xnor", activations="sign")
    assert dataclasses.replace(made, method="bnn") == holder(weights="bnn", activations="real")
    assert dataclasses.replace(made, activations="sign") == holder(weights="xnor", activations="sign")


def test_a_network_passes_on_what_a_layer_is_told() -> None:
    settings = NetworkSettings(name="resnet18", classes=5, input_size=32, weights="bnn", threshold="learned", width=0.5)
    assert settings.binary == BinarySettings(weights="bnn", threshold="learned")
    assert type(settings.binary) is BinarySettings


def test_changes_by_name_keep_the_rest() -> None:
    mine = BinarySettings(weights="xnor", gradient="exact")
    assert change_settings(mine, {"activations": "real"}, "a layer") == BinarySettings("xnor", "real", "exact")
    assert change_settings(None, {}, "a layer") == BinarySettings()
    with pytest.raises(InputError, match=r"a layer has no setting 'weight'. Did you mean 'weights'?"):
        change_settings(mine, {"weight": "dab"}, "a layer")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"weights": "dabs"},
            "the layer's weights must be one of real, dab, xnor, bnn, dab-learned, irnet, recu, adabin, not",
        ),
        ({"weights": "real", "activations": "int4"}, "activations='int4' is for one-bit weights: choose other weights"),
        ({"threshold": "learnt"}, "the layer's threshold must be zero or learned, not 'learnt'. Did you mean"),
        ({"weights": "bnn", "gradient": "paper"}, "method 'bnn' has no 'paper' gradient: choose one of ste."),
        ({"weights": "xnor", "max_k_step": 0.1}, "only 'dab' has a K that moves"),
        ({"weights": "xnor", "split_every": 5}, "split_every=5 is for 'dab' without max_k_step"),
        ({"split_every": 5, "gradient": "exact"}, "gradient='exact' is of values found in every step"),
        ({"max_k_step": 2}, "the layer's max_k_step must be from 1e-09 to 1, not 2."),
        ({"binary_start": 0}, "the layer's binary_start must be from 0.0001 to 1, not 0."),
    ],
)
def test_a_bad_setting_is_one_sentence(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as error:
        BinarySettings(**settings)
    assert sentence in str(error.value)
