"""A recipe: every setting of a training.

Keys are flat, so that `--set epochs=3` names any of them; each has a default, and an unknown one is an error. A file
holds what differs from its `base`, which is another recipe; without a base, from the defaults here. A new setting is
one field of `Recipe`: its limits stand in its type.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from dabnet._settings import Within, check_names, read_changes, setting_types
from dabnet.binarizers.choices import Weights, translate_names
from dabnet.binarizers.settings import takes_paper_names
from dabnet.errors import InputError
from dabnet.networks.settings import NetworkOptions
from dabnet.recipes import find_recipe, read_settings
from dabnet.sketches.raster import Raster
from dabnet.training.augment import ImageAugmentation
from dabnet.training.augment_strokes import StrokeAugmentation

if TYPE_CHECKING:
    from collections.abc import Sequence

Schedule = Literal["steps", "one-cycle", "cosine"]
Arithmetic = Literal["32-true", "16-mixed", "bf16-mixed"]


@takes_paper_names
@dataclass(frozen=True)
class Recipe(NetworkOptions):
    """What to train, on what, and how; what the network is like is told by the settings of `NetworkOptions`."""

    OWNER: ClassVar[str] = "the recipe's"

    network: str = "resnet18"
    """sketch_a_net, resnet18 or googlenet."""
    centre: bool = True
    """Whether Algorithm 2 centres the weights, or only clamps them."""
    final_weights: Weights | None = None
    """How weights are made binary in the network that is validated and kept, where it differs from how they are while
    training, such as dab after a training with xnor; its norms are measured anew. Left out, in the same way."""

    size: int = 224
    """Pixels per side that the network sees."""
    margin: float = 0.05
    pen: float = 0.025
    """Blank border and width of lines, as shares of the size."""
    classes: list[str] | None = None
    """Train on these classes only."""

    epochs: Annotated[int, Within(1, 100_000)] = 400
    batch_size: Annotated[int, Within(1, 65_536)] = 128
    """Sketches per step, over all devices."""
    accumulate: Annotated[int, Within(1, 65_536)] = 1
    """Parts that a batch is divided into, where it does not fit in memory."""
    learning_rate: Annotated[float, Within(1e-8, 10)] = 0.002
    least_learning_rate: Annotated[float, Within(0, 10)] = 0.00005
    schedule: Schedule = "steps"
    """steps: halved every `halve_every` epochs; one-cycle: up, then down; cosine: down."""
    halve_every: Annotated[int, Within(1, 100_000)] = 50
    weight_decay: Annotated[float, Within(0, 1)] = 0.0
    """Never on binary weights, norms and biases."""
    binary_decay: Annotated[float, Within(0, 1000)] = 0.0
    """How fast the real weights behind binary ones decay, per step and unit of learning rate; 0 is off."""
    decay_to: Annotated[tuple[float, float], Within(-1, 1)] = (0.0, 0.0)
    """Where they decay to: those below 0 to the first number, the others to the second. Two that are not equally far
    from 0 keep filters skewed, which is what two free values are for."""
    label_smoothing: Annotated[float, Within(0, 0.9)] = 0.0
    teacher: str | None = None
    """A run whose network is learnt from, beside the labels; left out, there is none."""
    teacher_share: Annotated[float, Within(0, 1)] | None = None
    """How much of the loss is the teacher's, from 0 to 1; left out, half with a teacher."""
    teacher_temperature: Annotated[float, Within(0.1, 100)] | None = None
    """How much the teacher's answers are softened; left out, not at all (1)."""
    scribbles: Annotated[float, Within(0, 0.5)] | None = None
    """Share of the sketches that are replaced by scribbles, of which the network learns to be sure of nothing."""
    arithmetic: Arithmetic = "32-true"
    compile: bool = False
    """Whether torch.compile makes the training step: about twice as fast on a CPU, after a minute at the start."""
    seed: Annotated[int, Within(0, 2**31)] = 0
    validation: Annotated[float, Within(0.01, 0.5)] = 0.1
    """Share of the training folds that is held back to choose the best epoch: one of a whole number of parts."""
    crops: Literal[1, 10] = 10
    """Views of each sketch in the final test, 1 or 10."""

    balance: Annotated[float, Within(0, 1)] = 0.0
    """How far classes are evened out: 0 draws each sketch once in an epoch; 1 draws every class equally often and, in a
    union, every class of every source."""
    balance_sources: Annotated[float, Within(0, 1)] = 0.0
    """How far the sources of a union are evened out: 0 leaves them as they are, 1 draws from each equally often."""
    epoch_size: Annotated[int, Within(1, 1_000_000_000)] | None = None
    """Sketches that are drawn in an epoch; left out, as many as there are."""
    average: Annotated[float, Within(0, 0.99999)] = 0.0
    """Decay of a moving average of the weights, such as 0.999, which is then what is validated and kept; 0 is off."""
    plain_norms: bool = False
    """Whether the norms of the network that is validated and kept are measured on sketches as they are, rather than
    on changed ones. With signs it matters: a small shift of a norm turns a sign all over the blank paper."""
    first_stage: Annotated[float, Within(0, 0.9)] = 0.0
    """Share of the epochs, at the start, in which only activations are binary and weights stay real, with weight decay;
    then weights become binary, too (two-stage training); 0 is off."""
    mixup: Annotated[float, Within(0, 10)] = 0.0
    cutmix: Annotated[float, Within(0, 10)] = 0.0
    """Alpha of mixup and of cutmix, which put two sketches into one image; 0 is off."""

    crop_scale: tuple[float, float] = (0.7, 1.0)
    crop_ratio: tuple[float, float] = (3 / 4, 4 / 3)
    degrees: float = 10.0
    flip: float = 0.5
    deform: float = 0.0
    shear: float = 0.0
    erase: float = 0.0
    """How images change; see `ImageAugmentation`."""
    remove_strokes: float = 0.0
    pen_factors: tuple[float, float] = (1.0, 1.0)
    deform_strokes: float = 0.0
    prefixes: float = 0.0
    """How strokes change; see `StrokeAugmentation`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch_size % self.accumulate:
            raise InputError(
                f"a batch of {self.batch_size} cannot be divided into {self.accumulate} equal parts: "
                "change batch_size or accumulate."
            )
        _ = self.raster, self.images, self.strokes  # which check what they are made of
        if not self.decay_to[0] <= 0 <= self.decay_to[1]:
            raise InputError(
                f"the recipe's decay_to must be one number below 0 and one above, not {list(self.decay_to)}."
            )
        if self.final_weights is not None and "real" in (self.weights, self.final_weights):
            raise InputError(
                "final_weights is another way to make weights binary, and real weights are not: leave it out."
            )

    @property
    def raster(self) -> Raster:
        """How the network sees a sketch."""
        return Raster(self.size, self.margin, self.pen)

    @property
    def images(self) -> ImageAugmentation:
        """How images change."""
        return ImageAugmentation(
            self.crop_scale, self.crop_ratio, self.degrees, self.flip, self.deform, self.shear, self.erase
        )

    @property
    def strokes(self) -> StrokeAugmentation:
        """How strokes change."""
        return StrokeAugmentation(self.remove_strokes, self.pen_factors, self.deform_strokes, self.prefixes)

    def network_settings(self, classes: int) -> dict[str, Any]:
        """Return the arguments of `dabnet.build`."""
        settings = {name: getattr(self, name) for name in setting_types(NetworkOptions)}
        return {"name": self.network, "classes": classes, "input_size": self.size, **settings}

    def in_first_stage(self, epoch: int) -> bool:
        """Say whether weights are still real in an epoch, of which the first is 0."""
        return epoch < min(round(self.first_stage * self.epochs), self.epochs - 1)

    def to_dict(self) -> dict[str, Any]:
        """Return every setting, as JSON and TOML can hold it."""
        return json.loads(json.dumps(dataclasses.asdict(self)))  # type: ignore[no-any-return]

    def to_toml(self) -> str:
        """Write every setting that is not left out."""
        values = {key: value for key, value in self.to_dict().items() if value is not None}
        return "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in values.items())

    @classmethod
    def from_dict(cls, settings: dict[str, Any]) -> Self:
        """Take settings by name; whole numbers may stand for real ones, and the paper's names will do."""
        check_names("a recipe", settings, cls, "precision", "method")
        return cls(**translate_names(settings))


def load_recipe(recipe: str | Path, changes: Sequence[str] = ()) -> Recipe:
    """Read a recipe, a file or the name of one that ships, with `changes` such as `epochs=3`.

    >>> load_recipe("small/tuberlin-resnet18-fbin-dab", ["epochs=3"]).epochs
    3
    """
    try:
        return change_recipe(Recipe.from_dict(read_settings(find_recipe(recipe))), changes)
    except InputError as error:
        raise InputError(str(error) if str(recipe) in str(error) else f"{recipe}: {error}") from None


def change_recipe(recipe: Recipe, changes: Sequence[str]) -> Recipe:
    """Change settings, each as `key=value`; a value is read as TOML, or taken as text.

    >>> change_recipe(Recipe(), ["epochs=3", "method=xnor", "crop_scale=[0.8, 1]"]).epochs
    3
    """
    settings = recipe.to_dict()
    types = setting_types(type(recipe))
    for key, value in read_changes(changes).items():
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        settings[key] = float(value) if key in types and types[key].kind is float and is_whole else value
    return type(recipe).from_dict(settings)
