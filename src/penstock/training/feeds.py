"""From sources to the loaders of one rank, and whether they or the network are the limit."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from lightning.pytorch.callbacks import Callback
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.flow.budget import free_bytes
from penstock.flow.flow import Flow, cache_source
from penstock.flow.measuring.metrics import HOPS
from penstock.flow.measuring.waits import NOT_KNOWN, Waiting
from penstock.samples import Field, Raw, Sample, Schema, Store
from penstock.tasks.task import batched
from penstock.training.options import FeedOptions

if TYPE_CHECKING:
    from penstock.flow.flow import Flow
    from penstock.samples import Store
    from penstock.tasks.task import Task


# A flow as Lightning takes it, with the flow at hand for those who want to know how it is doing.


Batch = dict[str, Any]


class FlowLoader:
    """Batches of tensors, an epoch for each iteration; its state is saved with a checkpoint."""

    batch_sampler = None  # Lightning asks for it where there is a sampler

    def __init__(
        self,
        flow: Flow,
        device: Any = None,
        *,
        finish: Callable[[Batch], Batch] | None = None,
        bad_before: tuple[Any, ...] = (),
    ) -> None:
        self.flow = flow
        self._bad_before = bad_before  # samples that were replaced when the data were brought here
        self._loader = flow.to_torch(device)
        self._finish = finish
        self.sampler = self._loader.sampler

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Batch]:
        return iter(self._loader) if self._finish is None else map(self._finish, self._loader)

    def state_dict(self) -> dict[str, Any]:
        """What was delivered so far, as a few numbers."""
        state: dict[str, Any] = self._loader.state_dict()  # type: ignore[attr-defined]
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The next iteration goes on with exactly the next batch."""
        self._loader.load_state_dict(state)  # type: ignore[attr-defined]

    @property
    def bad_samples(self) -> tuple[Any, ...]:
        """The samples that were replaced so far, with the reasons."""
        return (*self._bad_before, *self.flow.bad_samples)

    def close(self) -> None:
        self.flow.close()


# A training set that stays in the memory of the device: made once, then only numbers of samples are fed.
#
# once    evaluation flow (nothing random) ─► tensors of all samples on the device
# epoch   numbers in the order of the seed ─► rows of those tensors ─► augmentation on the device


SHARE_OF_FREE = 0.5  # the network, its gradients and activations need the rest
POSITION = "position"


class Positions(Store):
    """A source of nothing but numbers."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._schema = Schema((Field(POSITION, "number", "int64"),))

    def __len__(self) -> int:
        return self.count

    def read(self, index: int) -> Raw:
        return Raw(index, None)

    def decode(self, raw: Raw) -> Sample:
        return {POSITION: np.int64(raw.index)}

    def gather(self, name: str, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.asarray(indices, np.int64)

    def fingerprint(self) -> str:
        return f"positions {self.count}"


def preloaded(flow: Flow, count: int, batch_size: int, seed: int, rank: Rank) -> FlowLoader:
    """The loader of a training set that was moved to the device, if it fits; `flow` gives it in batches."""
    device = torch.device("cpu") if rank.device is None else torch.device(rank.device)
    kept = _moved(flow, count, device)
    order = Flow(Positions(count), seed).shuffle().batch(batch_size).shard(rank.number, rank.count)

    def rows(batch: dict[str, Any]) -> dict[str, Any]:
        return {name: _rows(values, batch[POSITION]) for name, values in kept.items()}

    return FlowLoader(order, finish=rows, bad_before=flow.bad_samples)


def _moved(flow: Flow, count: int, device: torch.device) -> dict[str, Any]:
    """Every batch on the device, joined; measured with the first one before anything is kept."""
    pieces: list[dict[str, Any]] = []
    for batch in flow.to_torch():
        if not pieces:
            _check_room(batch, count, device)
        pieces.append({name: _copied(value, device) for name, value in batch.items()})
    flow.close()
    return {name: _joined([piece.pop(name) for piece in pieces]) for name in list(pieces[0])}


def _check_room(batch: dict[str, Any], count: int, device: torch.device) -> None:
    fields = [value if isinstance(value, list) else [value] for value in batch.values()]
    tensors = [value for values in fields for value in values if isinstance(value, torch.Tensor)]
    needed = sum(tensor.nbytes for tensor in tensors) / len(batch["index"]) * count
    free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else free_bytes()
    if needed > free * SHARE_OF_FREE:
        raise OptionError(
            f'preload="device": the training set needs {needed / 1e9:.2g} GB, and half of what {device} has free is '
            f"{free * SHARE_OF_FREE / 1e9:.2g} GB. Train without preload, or with smaller images."
        )


def _copied(value: Any, device: torch.device) -> Any:
    # A copy on the CPU too: the batch lies in a slot that is written again.
    if isinstance(value, list):
        return [_copied(one, device) for one in value]
    return value.to(device, copy=True) if isinstance(value, torch.Tensor) else value


def _joined(pieces: list[Any]) -> Any:
    if isinstance(pieces[0], torch.Tensor):
        return torch.cat(pieces)
    return [value for piece in pieces for value in piece]


def _rows(values: Any, positions: torch.Tensor) -> Any:
    if isinstance(values, torch.Tensor):
        return values[positions.to(values.device)]
    return [values[position] for position in positions.tolist()]


@dataclass(frozen=True)
class Rank:
    """Which of several processes this is, and the device it trains on."""

    number: int = 0
    count: int = 1
    device: Any = None


@dataclass(frozen=True)
class Feed:
    """The data of a training, as a plan: it holds no open flow, so it can be pickled with its module.

    `batch_size` is what all devices have in their memory together; gradients may be added up over several batches.
    """

    task: Task
    train: Store
    val: Store | None
    batch_size: int
    seed: int = 0
    options: FeedOptions = field(default_factory=FeedOptions)
    transform: Callable[..., Any] | None = None
    preload: bool = False

    def training_loader(self, rank: Rank) -> FlowLoader:
        """The share of every training batch that this rank gets."""
        if self.preload:
            flow = batched(self.task, self.evaluation_flow(self.train), self.batch_size)
            return preloaded(flow, len(self.train), self.batch_size, self.seed, rank)
        return FlowLoader(self.training_flow(rank), _transfer_device(rank))

    def training_flow(self, rank: Rank) -> Flow:
        flow = self.task.training_flow(self.train, seed=self.seed, **self._flow_options(), **self._own_transform())
        flow = batched(self.task, self._cached(flow, "train"), self.batch_size).shard(rank.number, rank.count)
        return flow if self.options.prefetch == "auto" else flow.prefetch(self.options.prefetch)

    def validation_loader(self, rank: Rank) -> FlowLoader | None:
        """The share of every validation batch that this rank gets; nothing is left out, so a share may be empty."""
        if self.val is None:
            return None
        flow = batched(self.task, self._cached(self.evaluation_flow(self.val), "val"), self.batch_size)
        return FlowLoader(flow.shard(rank.number, rank.count, keep_all=True), _transfer_device(rank))

    def evaluation_flow(self, source: Store) -> Flow:
        return self.task.evaluation_flow(source, **self._flow_options())

    def _cached(self, flow: Flow, split: str) -> Flow:
        place = self.options.cache
        if place is None:
            return flow
        return cache_source(flow, place if place == "memory" else Path(place) / split)

    def sample_count(self) -> int:
        """Samples of an epoch, which may be drawn more than once or not at all."""
        if self.preload:
            return len(self.train)
        return len(self.task.training_flow(self.train, seed=self.seed).batch(1))

    def _flow_options(self) -> dict[str, Any]:
        names = ("workers", "executor", "memory", "on_bad_sample", "max_bad")
        return {name: getattr(self.options, name) for name in names}

    def _own_transform(self) -> dict[str, Any]:
        return {} if self.transform is None else {"transform": self.transform}


def _transfer_device(rank: Rank) -> Any:
    """Copies to CUDA are begun ahead by the loader; other devices are left to Lightning."""
    return rank.device if getattr(rank.device, "type", None) == "cuda" else None


# Whether a training waits for data or for the network, and by how much: one line at the end, and while it runs.


WATCH_SECONDS = 5.0
Say = Callable[[str], None]


def limit_line(metrics: Mapping[str, Any]) -> str:
    """In words, from the metrics of the training flow."""
    waiting = Waiting.of(metrics)
    if not waiting.is_known:
        return f"{NOT_KNOWN}."
    share, rate = waiting.share, rate_words(metrics["samples"] / waiting.seconds)
    if not waiting.is_bound_by_data:
        return f"bound by compute: {1 - share:.0%} of the time in the network, {share:.0%} waiting for data ({rate})."
    return (
        f"bound by data: {share:.0%} of the time waiting for it, most of it for {_slowest_hop(metrics)} ({rate}). "
        f"{waiting.gain_words}"
    )


def rate_words(rate: float) -> str:
    """Samples a second; few of them are never none."""
    return f"{rate:,.0f} samples/s" if rate >= 10 else f"{rate:.2g} samples/s"


def _slowest_hop(metrics: Mapping[str, Any]) -> str:
    hops = metrics["hops"]
    return max(HOPS, key=lambda hop: hops[hop]["cpu_seconds"] + hops[hop]["wait_seconds"] if hop != "deliver" else -1)


def difference(now: Mapping[str, Any], before: Mapping[str, Any] | None) -> dict[str, Any]:
    """What happened between two reports."""
    if before is None:
        return dict(now)
    names = ("waited_seconds", "first_wait_seconds", "consumer_seconds", "batches", "samples")
    return {**now, **{name: now.get(name, 0.0) - before.get(name, 0.0) for name in names}}


class FeedWatch(Callback):
    """Logs what each hop does, estimates the time after the first steps, and with `watch` tells the limit."""

    def __init__(self, say: Say, *, log: str | None, watch: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._say, self._log, self._watch, self._clock = say, log, watch, clock
        self._told = 0.0
        self._before: dict[str, Any] | None = None

    def on_train_start(self, trainer: Any, module: Any) -> None:
        self._told, self._before = self._clock(), None
        flow = flow_of(trainer)
        if flow is not None and self._log is not None and trainer.is_global_zero:
            flow.log_metrics(self._log)

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_number: int) -> None:
        if not self._watch or not trainer.is_global_zero or self._clock() - self._told < WATCH_SECONDS:
            return
        flow = flow_of(trainer)
        if flow is not None:
            self._tell(flow.metrics())

    def _tell(self, now: dict[str, Any]) -> None:
        part = difference(now, self._before)
        if Waiting.of(part).is_known:
            self._say(limit_line(part))
            self._told, self._before = self._clock(), now


class TimeEstimate(Callback):
    """Says after some steps how long the training will take, and with `repeat` every minute how far it is."""

    STEPS = 10
    EVERY_SECONDS = 60.0

    def __init__(self, say: Say, *, repeat: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._say, self._repeat, self._clock = say, repeat, clock
        self._told = self._since = 0.0
        self._seen = self._seen_since = 0

    def on_train_start(self, trainer: Any, module: Any) -> None:
        self._told = self._since = self._clock()
        self._seen = self._seen_since = 0

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_number: int) -> None:
        self._seen += 1
        if self._seen == 1:  # the first step also warms up
            self._since, self._seen_since = self._clock(), 1
        if self._seen == self.STEPS + 1 or self._is_due():
            self._tell(trainer, batch_number)

    def on_validation_batch_end(
        self, trainer: Any, module: Any, outputs: Any, batch: Any, number: int, *_: Any
    ) -> None:
        if self._is_due() and not trainer.sanity_checking:
            self._speak(trainer, f"epoch {trainer.current_epoch + 1}, validation, batch {number + 1:,}.")

    def _is_due(self) -> bool:
        return self._repeat and self._clock() - self._told >= self.EVERY_SECONDS

    def _tell(self, trainer: Any, batch_number: int) -> None:
        count, batches = self._seen - self._seen_since, trainer.num_training_batches
        epochs = trainer.max_epochs if trainer.max_epochs and trainer.max_epochs > 0 else None
        where = f"epoch {trainer.current_epoch + 1}{f' of {epochs}' if epochs else ''}, batch {batch_number + 1:,}"
        where += f" of {batches:,}" if math.isfinite(batches) else ""
        if not count:
            self._speak(trainer, f"{where}.")
            return
        step_seconds = (self._clock() - self._since) / count
        self._since, self._seen_since = self._clock(), self._seen
        left = batches * ((epochs or math.inf) - trainer.current_epoch) - batch_number - 1
        ending = f"; about {in_words(step_seconds * left)} to go" if math.isfinite(left) else ""
        self._speak(trainer, f"{where}: {step_seconds:.2g} s a batch{ending}.")

    def _speak(self, trainer: Any, text: str) -> None:
        self._told = self._clock()
        if trainer.is_global_zero:
            self._say(text)


def flow_of(trainer: Any) -> Any:
    """The training flow, where it is ours."""
    return getattr(trainer.train_dataloader, "flow", None)


def in_words(seconds: float) -> str:
    """A duration as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
