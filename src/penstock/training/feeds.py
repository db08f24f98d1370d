"""From sources to the loaders of one rank: what `trainer.fit(module)` asks a module for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.flow.flow import Flow, cache_source
from penstock.tasks.task import batched
from penstock.training.loaders import FlowLoader
from penstock.training.options import FeedOptions
from penstock.training.preloading import preloaded

if TYPE_CHECKING:
    from penstock.samples import Store
    from penstock.tasks.task import Task


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
