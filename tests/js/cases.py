"""Models and drawings for the core in WebAssembly, and what Node says that it answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .conftest import run


class Cases:
    """Cases that are written down, and answered all at once by `answer.mjs`."""

    def __init__(self) -> None:
        self._cases: list[dict[str, Any]] = []
        self._data = bytearray()

    def __len__(self) -> int:
        return len(self._cases)

    def add(
        self,
        model: bytes,
        x: NDArray[np.float32] | None = None,
        strokes: list[Any] | None = None,
        picture: NDArray[np.uint8] | None = None,
        **options: Any,
    ) -> None:
        """Add numbers to run, strokes, or a picture (height, width, 4), with options of `load` and `recognize`."""
        case: dict[str, Any] = {"model": self._put(model), "options": options}
        if x is not None:
            case["input"] = self._put(np.ascontiguousarray(x, dtype="<f4").tobytes())
        if strokes is not None:
            case["strokes"] = strokes
        if picture is not None:
            height, width, _ = picture.shape
            case["picture"] = {"data": self._put(picture.tobytes()), "width": width, "height": height}
        self._cases.append(case)

    def answers(self, built: Path, folder: Path) -> list[dict[str, Any]]:
        """Return what Node found of each: `sentence`, or `logits`, or `drawn` and `guesses`."""
        (folder / "cases.json").write_text(json.dumps(self._cases))
        (folder / "cases.bin").write_bytes(self._data)
        run("node", Path(__file__).with_name("answer.mjs"), built / "dabnet.wasm", folder)
        answers: list[dict[str, Any]] = json.loads((folder / "answers.json").read_text())
        data = (folder / "answers.bin").read_bytes()
        for answer in answers:
            for name in answer.keys() & {"logits", "drawn"}:
                offset, size = answer[name]
                answer[name] = np.frombuffer(data, "<f4", size // 4, offset)
        assert len(answers) == len(self._cases)
        return answers

    def _put(self, data: bytes) -> tuple[int, int]:
        self._data += data
        return len(self._data) - len(data), len(data)


def same_bits(a: NDArray[np.float32], b: NDArray[np.float32]) -> bool:
    """Return whether two arrays have the same numbers, to the last bit."""
    return a.size == b.size and bool((a.ravel().view(np.uint32) == b.ravel().view(np.uint32)).all())
