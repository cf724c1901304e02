from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest

from dabnet._settings import Within, check_names, check_settings, setting_types
from dabnet.errors import InputError


@dataclass(frozen=True)
class Settings:
    share: Annotated[float, Within(0, 1)] = 0.5
    rounds: Annotated[int, Within(1, 9)] | None = None
    word: Literal["cat", "dog", "sun"] = "cat"
    views: Literal[1, 10] = 1
    fast: bool = False
    folder: str | None = None
    names: list[str] | None = None
    span: Annotated[tuple[float, float], Within(0, 2)] = (0, 1)

    def __post_init__(self) -> None:
        check_settings("the test's", self)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"share": 1},
        {"rounds": 9},
        {"word": "sun"},
        {"views": 10},
        {"fast": True},
        {"folder": "x"},
        {"names": ["a"]},
    ],
)
def test_what_a_field_allows_passes(settings: dict[str, Any]) -> None:
    made = Settings(**settings)
    assert all(getattr(made, name) == value for name, value in settings.items())


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"share": 1.5}, "the test's share must be from 0 to 1, not 1.5."),
        ({"share": None}, "the test's share must be from 0 to 1, not None."),
        ({"share": True}, "the test's share must be from 0 to 1, not True."),
        ({"share": float("nan")}, "the test's share must be from 0 to 1, not nan."),
        ({"rounds": 2.5}, "the test's rounds must be a whole number, not 2.5."),
        ({"rounds": 10}, "the test's rounds must be from 1 to 9, not 10."),
        ({"word": "dig"}, "the test's word must be one of cat, dog, sun, not 'dig'. Did you mean 'dog'?"),
        ({"word": ["cat"]}, "the test's word must be one of cat, dog, sun, not ['cat']. Did you mean 'cat'?"),
        ({"views": 5}, "the test's views must be 1 or 10, not 5."),
        ({"views": True}, "the test's views must be 1 or 10, not True."),
        ({"fast": 1}, "the test's fast must be true or false, not 1."),
        ({"folder": 7}, "the test's folder must be text, not 7."),
        ({"names": "cat"}, "the test's names must be a list of names, not 'cat'."),
        ({"names": ["cat", 3]}, "the test's names must be a list of names, not ['cat', 3]."),
        ({"span": [0, 3]}, "the test's span must be two numbers from 0 to 2, the smaller first, not [0, 3]."),
    ],
)
def test_what_a_field_does_not_allow_is_one_sentence(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as error:
        Settings(**settings)
    assert str(error.value) == sentence


def test_a_pair_from_a_file_becomes_a_tuple() -> None:
    made = Settings(span=[0.5, 1])  # type: ignore[arg-type]
    assert made.span == (0.5, 1)
    assert hash(made) == hash(Settings(span=(0.5, 1)))


def test_an_unknown_name_is_told_with_the_nearest() -> None:
    check_names("a test", ["share", "weight"], Settings, "weight")
    with pytest.raises(InputError, match=r"^a test has no setting 'shore'\. Did you mean 'share'\?$"):
        check_names("a test", ["shore"], Settings)


def test_a_field_that_nothing_could_check_is_refused_at_once() -> None:
    @dataclass(frozen=True)
    class Odd:
        table: dict[str, int]

    with pytest.raises(TypeError, match="no setting can be of type"):
        setting_types(Odd)
