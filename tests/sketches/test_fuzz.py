from __future__ import annotations

import json
import subprocess
import sys

from . import fuzz

COUNT = 25


def test_files_that_are_almost_right_end_with_a_code_and_a_sentence() -> None:
    """`make fuzz-inputs` tries 50,000."""
    code = (
        "import json\nfrom tests.sketches import fuzz\n"
        f"print(json.dumps([fuzz.work(name, 0, {COUNT}, seed=1) for name in fuzz.KINDS]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    for found in json.loads(done.stdout.splitlines()[-1]):
        assert found["problems"] == []
        assert sum(found["codes"].values()) == COUNT
    assert len(fuzz.KINDS) == 6
