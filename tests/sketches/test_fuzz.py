from __future__ import annotations

import pytest

from . import fuzz


@pytest.mark.parametrize("kind", fuzz.KINDS)
def test_files_that_are_almost_right_end_with_a_code_and_a_sentence(kind: str) -> None:
    """`make fuzz-inputs` tries 50,000."""
    found = fuzz.run(kind, 0, 2 * fuzz.KINDS[kind].together, seed=1)
    assert found["problems"] == []
    assert sum(found["codes"].values()) == 2 * fuzz.KINDS[kind].together
