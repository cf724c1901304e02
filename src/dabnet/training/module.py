"""A network in training: Algorithm 2 of the paper as a LightningModule.

Gradients computed with the binary weights are applied to the latent ones by Adam, which are then centred and clamped.
"""

from __future__ import annotations

import copy
import itertools
import math
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from lightning.pytorch import LightningModule
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR

from dabnet.errors import NonFiniteError
from dabnet.networks.convert import binary_layers, change_weights_, constrain_
from dabnet.networks.layers import BinaryLayer
from dabnet.training.average import MovingAverage, measure_norms
from dabnet.training.data import NO_CLASS
from dabnet.training.mixing import Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lightning.pytorch.utilities.types import OptimizerLRSchedulerConfig
    from torch.optim import Optimizer

    from dabnet.training.recipe import Recipe
    from dabnet.training.teacher import Teacher

MEASURED_BATCHES, PLAIN_BATCHES = 20, 80
"""Batches on which norms are measured anew, of changed sketches and of sketches as they are."""
BINARY_GROUP = 2
"""Which of the optimizer's groups holds the weights of binary layers, where there are two stages."""
WARM_UP = 0.3
"""Share of a one-cycle training in which the learning rate rises."""


class Training(LightningModule):
    """A network, its loss, its optimizer and its constraint."""

    def __init__(
        self,
        net: nn.Module,
        recipe: Recipe,
        steps_per_epoch: int,
        teacher: Teacher | None = None,
        sources: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self._sources = sources
        self.net, self.recipe, self.steps_per_epoch, self._teacher = net, recipe, steps_per_epoch, teacher
        self.average = MovingAverage(net, recipe.average) if recipe.average else None
        self._judged: list[nn.Module] = [net]
        # Shares the parameters of `net`; kept out of the module's children, so that checkpoints hold them once.
        self._learner: list[Callable[[Tensor], Tensor]] = [torch.compile(net) if recipe.compile else net]

    def on_train_start(self) -> None:
        """Constrain the weights before the first step; a run that goes on has done so."""
        if self.trainer.global_step == 0:
            constrain_(self.net, centre=self.recipe.centre)

    def on_train_epoch_start(self) -> None:
        """Begin a stage, or go on with it: weights that become binary are decayed only while they are still real."""
        if not self.recipe.first_stage:
            return
        first = self.recipe.in_first_stage(self.current_epoch)
        for layer in binary_layers(self.net):
            layer.keeps_weights_real = first
        optimizer = self.trainer.optimizers[0]
        optimizer.param_groups[BINARY_GROUP]["weight_decay"] = self.recipe.weight_decay if first else 0.0
        if not first and self.current_epoch and self.recipe.in_first_stage(self.current_epoch - 1):
            constrain_(self.net, centre=self.recipe.centre)

    def training_step(self, batch: Batch, _number: int) -> Tensor:
        """Return the loss of a batch; scribbles have a loss of their own."""
        images, labels, _, _ = batch
        logits = self._learner[0](images).float()  # a mixed-precision network answers in fewer bits
        known = labels != NO_CLASS
        # The teacher sees the whole batch: for every other number of images it would be compiled anew.
        answers = None if self._teacher is None else self._teacher.answer(images)[known].float()
        loss = self._loss(logits[known], Batch(*(tensor[known] for tensor in batch)), answers)
        if not known.all():
            loss = torch.lerp(unsureness_loss(logits[~known]), loss, known.float().mean())
        if not torch.isfinite(loss):
            raise NonFiniteError(self._explain(images))
        self._note("train", loss, logits[known], labels[known])
        return loss

    def _loss(self, logits: Tensor, batch: Batch, answers: Tensor | None) -> Tensor:
        if self.recipe.mixup or self.recipe.cutmix:
            first, second = (
                F.cross_entropy(logits, labels, label_smoothing=self.recipe.label_smoothing, reduction="none")
                for labels in (batch.labels, batch.second_labels)
            )
            loss = torch.lerp(second, first, batch.shares).mean()
        else:
            loss = F.cross_entropy(logits, batch.labels, label_smoothing=self.recipe.label_smoothing)
        return loss if self._teacher is None or answers is None else self._teacher.mix(loss, logits, answers)

    def validation_step(self, batch: tuple[Tensor, Tensor, Tensor], _number: int) -> None:
        """Note the loss and the accuracy on sketches that are not trained on; in a union, for each source too."""
        images, labels, sources = batch
        logits = self.judged(images)
        self._note("validation", F.cross_entropy(logits, labels), logits, labels)
        right = (logits.argmax(dim=1) == labels).float()
        for number, name in enumerate(self._sources):
            if len(mine := right[sources == number]):
                self.log(
                    f"validation_accuracy:{name}",
                    mine.mean(),
                    on_step=False,
                    on_epoch=True,
                    batch_size=len(mine),
                    sync_dist=True,
                )

    @property
    def judged(self) -> nn.Module:
        """The network that is validated and kept: this one, or one that was made of it.

        That is where weights are averaged, or finally made binary in another way.
        """
        return self._judged[0]

    def on_validation_epoch_start(self) -> None:
        """Make the network that is judged, its norms measured on the first batches of this epoch."""
        if self.average is None and self.recipe.final_weights is None and not self.recipe.plain_norms:
            return
        judged = copy.deepcopy(self.net) if self.average is None else self.average.copy_with_averages(self.net)
        if self.recipe.final_weights is not None:
            change_weights_(judged, self.recipe.final_weights)
        loader = self.trainer.train_dataloader
        assert loader is not None
        data = loader.dataset
        images = (
            data.unchanged(key.rows) if self.recipe.plain_norms else data[key].images
            for key in itertools.islice(loader.sampler, PLAIN_BATCHES if self.recipe.plain_norms else MEASURED_BATCHES)
        )
        measure_norms(judged, (batch.to(self.device) for batch in images))
        self._judged[0] = judged.eval()

    def _note(self, part: str, loss: Tensor, logits: Tensor, labels: Tensor) -> None:
        accuracy = (logits.detach().argmax(dim=1) == labels).float().mean()
        figures = {f"{part}_loss": loss.detach(), f"{part}_accuracy": accuracy}
        self.log_dict(figures, on_step=False, on_epoch=True, batch_size=len(labels), sync_dist=True)

    def on_train_epoch_end(self) -> None:
        """Look for numbers that went wrong: a sign hides them from the loss."""
        if name := self._find_wrong():
            raise NonFiniteError(f"in epoch {self.current_epoch + 1} '{name}' is no longer finite: {self._hint()}.")

    def optimizer_step(
        self, epoch: int, batch_idx: int, optimizer: Any, optimizer_closure: Callable[[], Any] | None = None
    ) -> None:
        """Take the step, let binary layers' weights decay if they are to, then keep Algorithm 2's constraint."""
        super().optimizer_step(epoch, batch_idx, optimizer, optimizer_closure)
        if self.recipe.binary_decay:
            decay_binary_(self.net, optimizer.param_groups[0]["lr"] * self.recipe.binary_decay, self.recipe.decay_to)
        progress = (self.trainer.global_step + 1) / (self.recipe.epochs * self.steps_per_epoch)
        constrain_(self.net, centre=self.recipe.centre, progress=min(1.0, progress))
        if self.average is not None:
            self.average.update(self.net)

    def configure_optimizers(self) -> OptimizerLRSchedulerConfig:
        """Adam; weight decay only on real weights of convolutions and linear layers."""
        binary = {id(layer.weight) for layer in binary_layers(self.net)}
        decayed = [p for p in self.net.parameters() if p.ndim > 1 and id(p) not in binary]
        others = [p for p in self.net.parameters() if p.ndim <= 1 or id(p) in binary]
        groups: list[dict[str, Any]] = [
            {"params": decayed, "weight_decay": self.recipe.weight_decay},
            {"params": others},
        ]
        if self.recipe.first_stage:
            groups[1]["params"] = [p for p in others if id(p) not in binary]
            groups.append({"params": [p for p in others if id(p) in binary]})
        optimizer: Optimizer = torch.optim.Adam(groups, lr=self.recipe.learning_rate)
        schedule = LambdaLR(optimizer, lambda step: learning_rate(self.recipe, step, self.steps_per_epoch))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    @torch.no_grad()
    def _explain(self, images: Tensor) -> str:
        """Say which layer went wrong first."""
        where = f"in epoch {self.current_epoch + 1} the loss is no longer a finite number"
        if name := self._find_wrong():
            return f"{where}, first in '{name}': {self._hint()}."
        wrong: list[str] = []

        def look(name: str) -> Callable[..., None]:
            def hook(_module: nn.Module, _inputs: Any, output: Any) -> None:
                if isinstance(output, Tensor) and not torch.isfinite(output).all():
                    wrong.append(name)

            return hook

        leaves = [
            (name, module)
            for name, module in self.net.named_modules()
            if isinstance(module, BinaryLayer) or not list(module.children())
        ]
        hooks = [module.register_forward_hook(look(name)) for name, module in leaves]
        try:
            self.net(images)
        finally:
            for hook in hooks:
                hook.remove()
        first = f"first in what layer '{wrong[0]}' gives" if wrong else "though no layer gives such a number"
        return f"{where}, {first}: {self._hint()}."

    def _find_wrong(self) -> str | None:
        """Name the first of the network's parameters and buffers that is not finite."""
        tensors = self.net.state_dict().items()
        return next((name for name, tensor in tensors if not torch.isfinite(tensor).all()), None)

    def _hint(self) -> str:
        return f"lower learning_rate (it is {self.recipe.learning_rate:g}), or go on from an earlier run with --from"


@torch.no_grad()
def decay_binary_(net: nn.Module, share: float, towards: tuple[float, float]) -> None:
    """Move binary layers' weights a share of their way: those below 0 to the first number, the others to the second.

    >>> from dabnet.networks.layers import BinaryLinear
    >>> layer = BinaryLinear(2, 1); layer.weight.data = torch.tensor([[0.4, -0.4]])
    >>> decay_binary_(layer, 0.5, (0.0, 0.2)); layer.weight.data
    tensor([[ 0.3000, -0.2000]])
    """
    below, above = towards
    for layer in binary_layers(net):
        goal = torch.where(layer.weight >= 0, above, below).to(layer.weight.dtype)
        layer.weight.lerp_(goal, min(1.0, share))


def unsureness_loss(logits: Tensor) -> Tensor:
    """Return how far logits (N, classes) are from giving all classes the same chance: KL(equal chances || theirs).

    >>> unsureness_loss(torch.ones(3, 5))
    tensor(0.)
    """
    return -F.log_softmax(logits, dim=1).mean() - math.log(logits.shape[1])


def learning_rate(recipe: Recipe, step: int, steps_per_epoch: int) -> float:
    """Return the learning rate of a step, as a share of the recipe's."""
    least = min(1.0, recipe.least_learning_rate / recipe.learning_rate)
    if recipe.schedule == "steps":
        return max(least, 0.5 ** (step // steps_per_epoch // recipe.halve_every))
    done = min(1.0, step / (recipe.epochs * steps_per_epoch))
    if recipe.schedule == "cosine":
        return least + (1 - least) * (1 + math.cos(math.pi * done)) / 2
    start = max(least, 0.04)
    if done < WARM_UP:
        return start + (1 - start) * (1 - math.cos(math.pi * done / WARM_UP)) / 2
    return least + (1 - least) * (1 + math.cos(math.pi * (done - WARM_UP) / (1 - WARM_UP))) / 2
