"""The protocol that training, evaluation and prediction meet a task in.

    source ──training_flow──► batches ──augment (on the device)──► loss
           ──evaluation_flow─► batches ─────────judge────────────► losses + answers ──scores──► numbers
                                                                              └─────rows──────► the table users see

A task is a frozen dataclass of settings. It holds no network, no tensor and no file, so it can be pickled, compared and
written as JSON; `network()` makes the module that is trained. A network takes what `inputs` makes of a batch.

A task may say more, looked for by name: `batch_shapes` (how samples of different sizes stand in a batch), `group_rows`
(how many rows its network answers at a time, by the kind of device), `remarks()` (what it decided from the data),
`preload_remarks()` (what a training set that is kept on the device cannot have), `is_packable` (False: packing its data
would be of no use).

A task that is trained in stages has `stage_names` and `stage(name, begins_with)`, which gives a task for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    import torch

    from penstock.flow.flow import Flow
    from penstock.samples import Source
    from penstock.tasks.weights import Taken

Shapes = Literal["fixed", "padded", "ragged"]
Batch = dict[str, Any]  # what a flow delivers, as tensors on the device
Answers = Mapping[str, Any]  # what a network says of a batch, as a user would want it: probabilities, boxes …


class Goal(NamedTuple):
    """The score that the best checkpoint is chosen by."""

    name: str
    larger_is_better: bool = True


class Judged(NamedTuple):
    """One forward pass over a batch of evaluation: its losses, the answers, and how much the batch counts.

    A mean over the whole set is that of the batches by `weight`, so it does not depend on how the set was cut into
    batches or dealt to ranks. None where every sample counts the same.
    """

    losses: Mapping[str, torch.Tensor]  # `loss` is the sum that training would use
    answers: Answers
    weight: torch.Tensor | None = None


def unused_settings(task: Any, names: Sequence[str], reason: str) -> list[str]:
    """A remark on each of these settings that was changed, and has no effect."""
    defaults = {field.name: field.default for field in fields(task)}
    changed = [name for name in names if getattr(task, name) != defaults[name]]
    return [f"{name}={getattr(task, name)!r} has no effect: {reason}." for name in changed]


class Scores(Protocol):
    """Numbers over a whole set, the same however it was cut into batches or dealt to ranks."""

    def update(self, answers: Answers, batch: Batch) -> None: ...
    def compute(self) -> dict[str, float]:
        """Plain, documented names, such as accuracy; called once at the end of the set, on every rank."""
        ...

    def details(self) -> dict[str, Any]:
        """What a report draws, as JSON: a confusion matrix, curves. May be called after `compute`."""
        ...

    def reset(self) -> None: ...


class Task(Protocol):
    """What is learned."""

    kind: ClassVar[str]  # the name in recipes and checkpoints

    @property
    def classes(self) -> tuple[str, ...]: ...
    @property
    def goal(self) -> Goal: ...

    def settings(self) -> dict[str, Any]:
        """All of it as JSON; `tasks.kinds.task_from(kind, settings)` gives an equal task."""
        ...

    def check(self, source: Source, purpose: str) -> None:
        """Raise a DataError or OptionError where data do not fit; `purpose` is training, evaluation or prediction."""
        ...

    def fitted_to(self, source: Source) -> Task:
        """The same task with what it takes from the data of its training, such as class weights; the first thing that
        training asks for, and what is kept in the checkpoint."""
        ...

    # Data

    def training_flow(self, source: Source, *, seed: int, transform: Any = None, **options: Any) -> Flow:
        """The plan of one epoch of training, up to but without `batch`; `options` are those of Flow.

        `transform` is the user's own, on each sample as it was decoded; see `tasks.transforms`.
        """
        ...

    def evaluation_flow(self, source: Source, **options: Any) -> Flow:
        """The plan of evaluation and prediction, without anything random, up to but without `batch`."""
        ...

    def augment(self, batch: Batch, *, seed: int, epoch: int) -> Batch:
        """Random changes on the device, drawn from (seed, epoch, index); for training alone."""
        ...

    # Network

    def network(self) -> torch.nn.Module:
        """A new network with random weights drawn from torch's generator; nothing is downloaded."""
        ...

    def pretrained(self) -> Mapping[str, torch.Tensor] | None:
        """The weights to begin with, for `load_backbone`; None for random ones. Downloads if the user asked for it."""
        ...

    def load_backbone(self, network: torch.nn.Module, weights: Mapping[str, torch.Tensor]) -> Taken | None:
        """Take over pretrained weights, and say what was taken; keys that do not fit are an error that names them."""
        ...

    def stages(self, network: torch.nn.Module) -> Sequence[tuple[str, torch.nn.Module]]:
        """Parts of the network in the order of the data, by name, for `freeze`."""
        ...

    def loss(self, network: torch.nn.Module, batch: Batch) -> Mapping[str, torch.Tensor]:
        """The losses of a batch of training; `loss` is the one that is minimised."""
        ...

    def judge(self, network: torch.nn.Module, batch: Batch) -> Judged:
        """Losses and answers of a batch with labels, in one pass."""
        ...

    def answer(self, network: torch.nn.Module, batch: Batch) -> Answers:
        """Answers of a batch, with or without labels."""
        ...

    def scores(self) -> Scores: ...

    def rows(self, answers: Answers, batch: Batch) -> list[dict[str, Any]]:
        """The rows of the result table, of this batch, without the columns that tell which sample it is."""
        ...


def batched(task: Task, flow: Flow, size: int) -> Flow:
    """A flow of the task in batches, as the task wants samples of different sizes."""
    shapes: Shapes = getattr(task, "batch_shapes", "fixed")
    return flow.batch(size, shapes=shapes)
