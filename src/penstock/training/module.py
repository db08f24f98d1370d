"""The LightningModule: it delegates to a task, and knows no files.

logged             when            what
train_step_loss    every step      the loss of the step; in the progress bar
train_loss         every epoch     the mean over all training samples; other losses of the task as train_<name>
val_loss           validation      the mean over all validation samples; other losses of the task as val_<name>
accuracy, …        validation      the task's own scores, under their own names
learning_rate      every step      as train_learning_rate
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import lightning.pytorch as lightning
import torch
import torch.distributed
from torch.nn.modules.batchnorm import _BatchNorm

from penstock.errors import OptionError, nearest
from penstock.runs.layout import plain
from penstock.seeds import random_bits
from penstock.tasks.checkpoints import computed_precision, read_checkpoint
from penstock.tasks.task import Batch, Scores, Task
from penstock.tasks.weights import Taken
from penstock.training.callbacks import check_finite
from penstock.training.feeds import Feed, Rank
from penstock.training.optimizers import Plateau, learning_rate, make_optimizer, rate_factor
from penstock.training.options import TrainOptions
from penstock.training.resources import chosen_batch_size

if TYPE_CHECKING:
    import torch

    from penstock.tasks.task import Task


# A batch of one sample has no statistics: normalisations then use those that they have learned.


@contextmanager
def learned_statistics(network: torch.nn.Module, rows: int) -> Iterator[None]:
    """For one sample, as the last of an epoch may be alone, layers normalise as in evaluation; else nothing changes.

    Without this torch refuses such a batch where maps are 1×1, and takes the sample for its own mean elsewhere.
    """
    if rows > 1:
        yield
        return
    layers = [layer for layer in network.modules() if isinstance(layer, _BatchNorm) and layer.training]
    for layer in layers:
        layer.eval()
    try:
        yield
    finally:
        for layer in layers:
            layer.train()


# Which stages of a network are not trained.


BACKBONE = "backbone"
Stage = tuple[str, "torch.nn.Module"]


def frozen_stages(task: Task, network: torch.nn.Module, freeze: str | int | None) -> list[Stage]:
    """None; all stages but the last; the first n; or all up to and with the one of this name."""
    if freeze is None or freeze == "none":
        return []
    stages = list(task.stages(network))
    return stages[: _count(freeze, [name for name, _ in stages])]


def _count(freeze: str | int, names: list[str]) -> int:
    if freeze == BACKBONE:
        return len(names) - 1
    if isinstance(freeze, int) and not isinstance(freeze, bool) and 0 <= freeze < len(names):
        return freeze
    if freeze in names[:-1]:
        return names.index(str(freeze)) + 1
    raise OptionError(
        f"freeze={freeze!r} must be none, {BACKBONE}, a number below {len(names)}, or a stage that is not the last of "
        f"{', '.join(names)}.{nearest(str(freeze), names)}"
    )


# Means of losses over an epoch, weighted by what each batch counts, over all ranks.


class Means:
    """Sums that stay on the device until they are asked for."""

    def __init__(self) -> None:
        self._sums: dict[str, torch.Tensor] = {}
        self._weight: float | torch.Tensor = 0.0

    def add(self, values: Mapping[str, torch.Tensor], weight: float | torch.Tensor) -> None:
        """The means of a batch that counts so much: as many as its samples, where each counts the same."""
        self._weight = self._weight + (weight.detach() if isinstance(weight, torch.Tensor) else weight)
        for name, value in values.items():
            weighted = value.detach().float() * weight
            self._sums[name] = self._sums[name].to(weighted) + weighted if name in self._sums else weighted

    def state(self) -> dict[str, Any]:
        """The sums of this rank, as plain values."""
        return {"sums": {name: float(value) for name, value in self._sums.items()}, "rows": float(self._weight)}

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> Means:
        """Go on where a state was taken."""
        means = cls()
        means._sums = {name: torch.tensor(value) for name, value in state["sums"].items()}
        means._weight = float(state["rows"])
        return means

    def compute(self) -> dict[str, float]:
        """The means over all ranks, NaN where nothing counted; every rank must ask, also one that saw nothing."""
        parts = _gathered(self.state())
        weight = sum(part["rows"] for part in parts)
        names = dict.fromkeys(name for part in parts for name in part["sums"])
        sums = {name: sum(part["sums"].get(name, 0.0) for part in parts) for name in names}
        return {name: value / weight if weight else math.nan for name, value in sums.items()}


def _gathered(own: Any) -> list[Any]:
    """What every rank has. Objects, because a rank that saw nothing does not know the names."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return [own]
    parts: list[Any] = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(parts, own)
    return parts


CHECKPOINT_VERSION = 1
STEP_STREAM, RANK_STREAM = 0x7E11, 0x7E12  # of random numbers, apart from those of flows


class Evaluation:
    """One pass over the validation set. Not a torch module, so that nothing of it gets among the weights."""

    def __init__(self, scores: Scores) -> None:
        self.scores = scores
        self.means = Means()
        self.values: dict[str, float] = {}


class Module(lightning.LightningModule):
    """A task and its network, to be driven by any Lightning Trainer, any number of times.

    With a `feed`, `trainer.fit(module)` needs no loaders. It can be pickled and copied before and after training.
    """

    def __init__(
        self,
        task: Task,
        network: torch.nn.Module,
        options: TrainOptions,
        *,
        learning_rate: float,
        feed: Feed | None = None,
        recipe: Mapping[str, Any] | None = None,
        taken: Taken | None = None,
    ) -> None:
        super().__init__()
        self.taken = taken  # from the weights that training begins with
        self.task, self.network, self.options, self.feed = task, network, options, feed
        self.learning_rate, self.recipe = learning_rate, plain(recipe or {})
        self.save_hyperparameters(self._hyperparameters())  # which Lightning gives to every logger
        self.last_evaluation: Evaluation | None = None
        self._plateau = Plateau()
        self._means = Means()
        for _, stage in frozen_stages(task, network, options.freeze):
            stage.requires_grad_(False)

    def _hyperparameters(self) -> dict[str, Any]:
        """Settings by section and name, flat, as loggers compare them; the learning rate is the one that is used."""
        task = {"kind": self.task.kind, **self.task.settings()}
        sections = self.recipe or {"task": plain(task), "train": plain(vars(self.options))}
        size = {} if self.feed is None else {"train.batch_size": self.feed.batch_size}
        return {**_flat(sections), **size, "train.learning_rate": self.learning_rate}

    @classmethod
    def load_from_checkpoint(
        cls, checkpoint_path: Any, map_location: Any = None, *, strict: bool = True, **others: Any
    ) -> Module:
        """The module that a checkpoint was written of, with task, settings and weights, and without data.

        `ps.load` gives a model that predicts; `ps.module_for(task, data)` a module that begins anew.
        """
        if others:
            raise OptionError(
                f"load_from_checkpoint has no option {next(iter(others))!r}: a checkpoint knows its task."
            )
        found = read_checkpoint(checkpoint_path)
        train = found.meta.get("train")
        if train is None:
            raise OptionError(f"{checkpoint_path} is of no module that is trained at once: use ps.load for it.")
        options = TrainOptions(**train["options"])
        size = chosen_batch_size(options, 2**62, "cpu")
        rate = train.get("learning_rate") or learning_rate(options, size)
        module = cls(found.task, found.task.network(), options, learning_rate=rate, recipe=found.meta.get("recipe"))
        module.network.load_state_dict(found.weights, strict=strict)
        return module if map_location is None else module.to(map_location)

    # Data

    def train_dataloader(self) -> Any:
        return super().train_dataloader() if self.feed is None else self.feed.training_loader(self._rank())

    def val_dataloader(self) -> Any:
        loader = None if self.feed is None else self.feed.validation_loader(self._rank())
        return [] if loader is None else loader

    def _rank(self) -> Rank:
        trainer = self.trainer
        return Rank(trainer.global_rank, trainer.world_size, trainer.strategy.root_device)

    # Training

    def configure_optimizers(self) -> Any:
        optimizer = make_optimizer(self.network, self.options, self.learning_rate)
        step_count = self._step_count()
        epochs = self.trainer.max_epochs or 0
        warmup_steps = self.options.warmup_epochs * step_count / epochs if epochs > 0 else 0.0

        def factor(step: int) -> float:
            return rate_factor(self.options.schedule, step, step_count, warmup_steps) * self._plateau.factor

        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def _step_count(self) -> float:
        """Steps of the weights until the end.

        Lightning can tell too, but opens the loaders for it before it has read a checkpoint, and then forgets to give
        them their state.
        """
        trainer = self.trainer
        if self.feed is None:
            return float(trainer.estimated_stepping_batches)
        if trainer.max_epochs is None or trainer.max_epochs < 0:
            return float(trainer.max_steps) if trainer.max_steps >= 0 else math.inf
        steps = math.ceil(math.ceil(self.sample_count() / self.feed.batch_size) / trainer.accumulate_grad_batches)
        most = trainer.max_steps if trainer.max_steps >= 0 else math.inf
        return float(min(steps * trainer.max_epochs, most))

    def on_train_start(self) -> None:
        if self.options.compile:
            self.network.compile()
        # Statistics of frozen layers stay as they are. Not earlier: Lightning warns of layers that begin so.
        for _, stage in frozen_stages(self.task, self.network, self.options.freeze):
            stage.eval()

    def on_train_end(self) -> None:
        self.network.train()

    def on_train_epoch_start(self) -> None:
        self._means, self._epoch_means = Means(), {}

    def training_step(self, batch: Batch, batch_number: int) -> torch.Tensor:
        rows = len(batch["index"])
        torch.manual_seed(self._step_seed(batch_number))
        batch = self.task.augment(batch, seed=self.options.seed, epoch=self.current_epoch)
        with learned_statistics(self.network, rows):
            losses = self.task.loss(self.network, batch)
        loss = losses["loss"]
        check_finite(loss, batch, self)
        self._means.add(losses, rows)
        self.log("train_step_loss", loss.detach(), on_step=True, on_epoch=False, prog_bar=True, batch_size=rows)
        self.log("train_learning_rate", self._rate(), on_step=True, on_epoch=False, batch_size=rows)
        return loss * self._share(batch_number, rows)

    def _step_seed(self, batch_number: int) -> int:
        """Dropout draws from torch's own generator: seeded for each step, it is the same after an interruption."""
        bits = random_bits(self.options.seed, self.current_epoch << 40 | batch_number, STEP_STREAM)
        bits = random_bits(int(bits[0]), self.global_rank, RANK_STREAM)
        return int(bits[0] >> 1)

    def _rate(self) -> float:
        return float(self.trainer.optimizers[0].param_groups[0]["lr"])

    def _share(self, batch_number: int, rows: int) -> float:
        """What the loss counts in a step of the weights, which is the mean over the samples of all its batches.

        Lightning divides by the batches that are added up, and by the ranks, as if all had as many samples.
        """
        if self.feed is None:
            return 1.0
        batches, ranks = self.trainer.accumulate_grad_batches, self.trainer.world_size
        if batches == ranks == 1:
            return 1.0
        # The last step of an epoch has fewer batches: where it ends, where a limit ends it, or where the last batch is
        # left out because not every rank would get a sample of it.
        first = batch_number // batches * batches
        last = min(first + batches, self.trainer.num_training_batches)
        size = self.feed.batch_size
        together = min(last * size, self.sample_count()) - first * size
        return float(rows * batches * ranks / together)

    def sample_count(self) -> int:
        """Samples of an epoch; 0 without a feed."""
        if self.feed is None:
            return 0
        if self._counted is None:
            self._counted = self.feed.sample_count()
        return self._counted

    _counted: int | None = None
    _epoch_means: Mapping[str, float] = MappingProxyType({})

    def on_train_epoch_end(self) -> None:
        self._epoch_means = {f"train_{name}": value for name, value in self._means.compute().items()}
        for name, value in self._epoch_means.items():
            self.log(name, self._exact(value), prog_bar=name == "train_loss")

    # Validation

    def on_validation_epoch_start(self) -> None:
        scores = self.task.scores()
        self.last_evaluation = Evaluation(scores.to(self.device) if isinstance(scores, torch.nn.Module) else scores)

    def validation_step(self, batch: Batch, batch_number: int) -> None:
        rows = len(batch["index"])
        if not rows or self.last_evaluation is None:  # this rank got no sample of a short batch
            return
        losses, answers, weight = self.task.judge(self.network, batch)
        self.last_evaluation.means.add(losses, rows if weight is None else weight)
        self.last_evaluation.scores.update(answers, batch)

    def on_validation_epoch_end(self) -> None:
        evaluation = self.last_evaluation
        if evaluation is None:
            return
        losses = {f"val_{name}": value for name, value in evaluation.means.compute().items()}
        evaluation.values = {**losses, **evaluation.scores.compute()}
        for name, value in evaluation.values.items():
            self.log(name, self._exact(value), prog_bar=name in ("val_loss", self.task.goal.name))
        self._judge_plateau(evaluation.values)

    def _judge_plateau(self, values: Mapping[str, float]) -> None:
        goal = self.task.goal
        score = values.get(goal.name, math.nan)
        if self.options.schedule == "plateau" and not math.isnan(score):
            self._plateau.judged(score, goal.larger_is_better)

    def _exact(self, value: float) -> torch.Tensor:
        """Lightning would make 0.800000012 of 0.8, where the device has numbers of 64 bits."""
        is_short = self.device.type == "mps"
        return torch.tensor(value, dtype=torch.float32 if is_short else torch.float64, device=self.device)

    # Checkpoints

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """What is needed to predict the same again, in plain values."""
        evaluation = self.last_evaluation
        checkpoint["penstock"] = {
            "version": CHECKPOINT_VERSION,
            "task": {"kind": self.task.kind, "settings": plain(self.task.settings())},
            "thresholds": plain(getattr(self.task, "thresholds", {})),
            "train": {
                "options": plain(vars(self.options)),
                "learning_rate": self.learning_rate,
                "plateau": self._plateau.state(),
                "means": self._means.state(),
                "epoch_means": plain(self._epoch_means),
            },
            "precision": self._precision(),
            "recipe": self.recipe,
            "flow_state": _first_state(checkpoint),
            "scores": plain(evaluation.values) if evaluation is not None else {},
        }

    def _precision(self) -> str | None:
        """What the Trainer computes with; a module without one has computed nothing."""
        return None if self._trainer is None else computed_precision(self.trainer.precision, self.device)

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        train = checkpoint.get("penstock", {}).get("train", {})
        if train:
            self._plateau, self._means = Plateau(**train["plateau"]), Means.restored(train["means"])


def _flat(values: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Values of sections by their names from the outermost one on: train.epochs."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= _flat(value, f"{before}{name}.") if isinstance(value, Mapping) else {f"{before}{name}": value}
    return found


def _first_state(checkpoint: Mapping[str, Any]) -> Any:
    """Where the training flow is, as Lightning saved it."""
    states: Sequence[Any] = (
        checkpoint.get("loops", {}).get("fit_loop", {}).get("state_dict", {}).get("combined_loader", ())
    )
    return states[0] if states else {}
