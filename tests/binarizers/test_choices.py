from __future__ import annotations

import itertools
from typing import Any, get_args

import pytest

from dabnet.binarizers.choices import Method, Precision, choose_axes, paper_precision, translate_names
from dabnet.errors import InputError

PAPER = list(itertools.product(get_args(Precision), get_args(Method)))


@pytest.mark.parametrize(("precision", "method"), PAPER)
def test_the_papers_names_are_the_two_axes_and_back(precision: Any, method: Any) -> None:
    axes = choose_axes(precision, method, None, None, default=("real", "real"))
    assert axes == {"fprec": ("real", "real"), "wbin": (method, "real"), "fbin": (method, "sign")}[precision]
    assert paper_precision(*axes) == precision


def test_the_paper_has_no_word_for_signs_that_meet_real_weights() -> None:
    assert paper_precision("real", "sign") is None


@pytest.mark.parametrize(
    ("settings", "weights", "activations"),
    [
        ({"precision": "fprec"}, "real", "real"),
        ({"method": "bnn"}, "bnn", "sign"),  # by default dab and sign
        ({"weights": "xnor", "activations": "sign", "precision": "wbin"}, "xnor", "real"),
        ({"weights": "xnor", "activations": "real", "method": "bnn"}, "bnn", "real"),
        ({"weights": "real", "activations": "real", "method": "bnn"}, "real", "real"),  # nothing is binary
        ({"weights": "real", "activations": "real", "precision": "fbin"}, "dab", "sign"),
        ({"weights": "real", "activations": "real", "precision": "fbin", "method": "xnor"}, "xnor", "sign"),
    ],
)
def test_the_papers_names_change_what_the_axes_are_otherwise(
    settings: dict[str, Any], weights: str, activations: str
) -> None:
    assert translate_names({**settings, "width": 1}) == {"weights": weights, "activations": activations, "width": 1}


def test_what_has_no_papers_name_stays_as_it_is() -> None:
    assert translate_names({"weights": "bnn", "epochs": 3}) == {"weights": "bnn", "epochs": 3}


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (("fbin", None, "dab", None), "what is binary is given twice"),
        ((None, "dab", None, "sign"), "what is binary is given twice"),
        (("bin", None, None, None), "'bin' is not a precision: choose one of fprec, wbin, fbin."),
        ((None, "dap", None, None), "'dap' is not a method: .* Did you mean 'dab'?"),
    ],
)
def test_a_bad_choice_is_one_sentence(names: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        choose_axes(*names, default=("dab", "sign"))
