"""From a drawing in any form to what it shows: a packed model with its labels, its raster and its temperature."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, overload

from dabnet import _native
from dabnet.errors import InputError
from dabnet.packed.shipped import DEFAULT
from dabnet.runtime.session import DEFAULT_MAX_WORK, Session
from dabnet.sketches.batch import Batch
from dabnet.sketches.raster import Raster, show_batch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from pathlib import Path

    import numpy as np
    from numpy.typing import ArrayLike, NDArray
    from PIL import Image

    from dabnet.packed.model import Model
    from dabnet.runtime.session import Cancel
    from dabnet.sketches.sketch import Sketch

    Answer = list[tuple[str, float]]

BATCH = 64
"""Pictures drawn and run at a time: any number of them takes no more memory than this."""
MIN_CONFIDENCE = 0.5
"""The probability from which on an answer is called sure: more likely right than wrong."""


class Recognizer:
    """Tells what a sketch shows; threads may share it.

    >>> recognizer = Recognizer.load()
    >>> arrow = [[(0, 50), (100, 50)], [(70, 20), (100, 50), (70, 80)]]
    >>> answer = recognizer.recognize(arrow, top=3)
    >>> [(label in recognizer.labels, 0 < probability < 1) for label, probability in answer]
    [(True, True), (True, True), (True, True)]
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.raster = raster_of(session)

    @classmethod
    def load(
        cls, path: str | PathLike[str] | bytes | None = None, threads: int = 1, *, max_work: float = DEFAULT_MAX_WORK
    ) -> Recognizer:
        """Load a packed model, or its bytes; the one that ships if nothing is given."""
        return cls(Session(DEFAULT if path is None else path, threads, max_work=max_work))

    @property
    def labels(self) -> list[str]:
        """What it can tell apart."""
        return self.session.labels

    @property
    def input_size(self) -> tuple[int, int, int]:
        """Channels, height and width of what the network sees."""
        return self.session.input_size

    @overload
    def recognize(  # type: ignore[overload-overlap]  # to mypy, texts and bytes could be strokes
        self,
        sketch: list[Sketch]
        | list[str]
        | list[Path]
        | list[os.PathLike[str]]
        | list[Image.Image]
        | list[bytes]
        | list[Sketch | str | os.PathLike[str] | Image.Image | bytes],
        top: int = 5,
    ) -> list[Answer]: ...

    @overload
    def recognize(
        self,
        sketch: Sketch | str | os.PathLike[str] | bytes | Image.Image | NDArray[Any] | Sequence[Sequence[ArrayLike]],
        top: int = 5,
    ) -> Answer: ...

    @overload
    def recognize(self, sketch: list[NDArray[Any]], top: int = 5) -> Answer | list[Answer]: ...  # strokes, or images

    def recognize(self, sketch: Any, top: int = 5) -> Answer | list[Answer]:
        """Return the likeliest labels of a sketch with their probabilities, the likeliest first.

        A sketch is whatever `dabnet.sketches.read_sketch` takes: a path or the bytes of a picture, photographed or
        not, or of an SVG or JSON file, a Pillow image, an array (height, width), dark lines on light paper or light on
        dark, strokes, or a `Sketch`. A list of sketches gives a list of answers.

        >>> from dabnet.sketches import synthetic_strokes
        >>> answers = Recognizer.load().recognize(synthetic_strokes(3)[0], top=1)
        >>> [len(answer) for answer in answers]
        [1, 1, 1]
        """
        if not hasattr(top, "__index__") or top < 1:
            raise InputError(f"an answer has at least one label: top must be 1 or more, not {top!r}.")
        several = _is_several(sketch)
        top, batch = int(top), Batch()
        for number, drawing in enumerate(sketch if several else [sketch]):
            batch.add(str(number), drawing)
        answers = list(self.answer(batch, top).values())
        return answers if several else answers[0]

    def answer(self, batch: Batch, top: int = 5) -> dict[int, Answer]:
        """Return the answers to all drawings of a batch that could be read, by their numbers; in order.

        Strokes are drawn, run and ranked natively, on all of the session's threads.
        """
        strokes = iter(self.session.recognize(batch.strokes, top))
        others = iter(self._answer_sketches(list(batch.sketches.values()), top))
        numbers = (number for number in range(len(batch)) if number not in batch.errors)
        return {number: next(others if number in batch.sketches else strokes) for number in numbers}

    def _answer_sketches(self, sketches: list[Sketch], top: int) -> list[Answer]:
        answers, size = [], min(BATCH, self.session.batch)
        for start in range(0, len(sketches), size):
            chances = self.run(self.show(sketches[start : start + size]))
            answers += [self.rank(row, top) for row in chances]
        return answers

    def show(self, sketches: Sequence[Any]) -> NDArray[np.float32]:
        """Draw sketches, whatever `read_sketch` takes, as the network sees them, (N, channels, height, width)."""
        from dabnet.sketches.read import read_sketch  # which strokes do without

        return show_batch([read_sketch(sketch) for sketch in sketches], self.raster)

    def run(
        self, x: NDArray[np.float32], *, time_limit: float | None = None, cancel: Cancel | None = None
    ) -> NDArray[np.float64]:
        """Return the probability of each label, (N, classes), for what `show` gave; see `Session.run`."""
        logits = self.session.run(x, time_limit=time_limit, cancel=cancel)
        return probabilities(logits, self.session.temperature)

    def rank(self, chances: NDArray[np.float64], top: int = 5) -> Answer:
        """Name the likeliest of the labels' probabilities, (classes,)."""
        import numpy as np

        order, labels = np.argsort(-chances, kind="stable")[:top], self.session.labels
        return [(labels[i], float(chances[i])) for i in order]

    def __repr__(self) -> str:
        return f"<dabnet Recognizer: {len(self.labels)} classes, {self.session!r}>"


def is_sure(answer: Answer, min_confidence: float = MIN_CONFIDENCE) -> bool:
    """Say whether the first label of an answer is likely enough to be called an answer.

    >>> is_sure([("cup", 0.41), ("mug", 0.38)]), is_sure([("cup", 0.41), ("mug", 0.38)], min_confidence=0.3)
    (False, True)
    """
    return answer[0][1] >= min_confidence


def probabilities(logits: NDArray[np.float32], temperature: float) -> NDArray[np.float64]:
    """Return softmax(logits / temperature), (N, classes), as the core ranks by it.

    >>> import numpy as np
    >>> probabilities(np.zeros((1, 2), dtype=np.float32), 1.0)
    array([[0.5, 0.5]])
    """
    import numpy as np

    shares = np.empty(logits.shape)
    _native.probabilities(np.ascontiguousarray(logits, dtype=np.float32), temperature, shares)
    return shares


def raster_of(model: Session | Model) -> Raster:
    """Return how sketches are drawn for a model; an `InputError` names what it lacks to recognize them."""
    if not model.labels:
        raise InputError("the model has no labels, so its answers have no names: export it with labels.")
    if model.raster is None:
        raise InputError("the model does not say how to draw a sketch for it: export it with a raster.")
    raster = Raster.from_dict(model.raster)
    if model.input_size != (1, raster.size, raster.size):
        size = "x".join(map(str, model.input_size))
        raise InputError(
            f"the model takes {size}, and sketches are drawn 1x{raster.size}x{raster.size}: export it again."
        )
    return raster


def _is_several(drawing: Any) -> bool:
    """Say whether something is a list of drawings, and not strokes: a stroke's points are pairs of numbers."""
    if not isinstance(drawing, list | tuple) or not len(drawing):
        return False
    import numpy as np
    from PIL import Image

    from dabnet.sketches.sketch import Sketch

    first = drawing[0]
    if isinstance(first, np.ndarray):
        return first.ndim != 2 or first.shape[1] != 2
    if not isinstance(first, list | tuple):
        return isinstance(first, Sketch | str | os.PathLike | bytes | bytearray | memoryview | dict | Image.Image)
    stroke = next((each for each in first if not hasattr(each, "__len__") or len(each)), ())
    if isinstance(stroke, np.ndarray):
        return stroke.ndim == 2
    return isinstance(stroke, list | tuple) and len(stroke) > 0 and np.ndim(stroke[0]) > 0
