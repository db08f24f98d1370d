"""What a feed can give, from what a sample costs: pure functions over plain numbers, for explain, tuner and doctor.

    limit        samples a second    of a sample
    cores        k / (c + d)         c: CPU seconds of the workers; d: of the thread that takes the batches
    workers      w / (c + r)         r: seconds that a worker waits with it in hand, for a disk or a network
    disk         R                   what reading alone gives, however many read at once
    lock         1 / l               l: seconds that the lock of a source is held; not for processes
    gil          1 / g               g: seconds that the GIL is held; not for processes
    deliver      1 / d

Where other programs use the cores too, a thread has one for the share s of the time that it could use it: c, d, l, g
and m are then divided by s. It is chosen such that F is what the feed really gave, unless the disk binds.

The feed gives the least of these, F. With no workers at all it gives 1 / (c + r + d).

A model takes M samples a second by itself and keeps m CPU seconds busy for each, on the same k cores (nearly 0 where it
runs on a device of its own). Training then goes at T = min(F, M, k / (c + d + m)), or at 1 / (1/F + 1/M) without
workers, because nothing is made while the model runs.

The tuner asks the other way round: k · (c + r) / c workers keep all cores busy, and F · (c + r) of them give F samples
a second (Little's law). There and in explanations r is what the present workers waited, for a lock or the GIL too: what
these allow by themselves only the doctor measures.

A remedy that can be run is run, beside the present state (diagnosis/comparing.py). One that cannot changes some of
these numbers: its speed-up is T (or F, without a model) after it, divided by T before it. Both are from this model, so
that what it leaves out (other programs on the machine, the end of an epoch) cancels out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

LEAST_SHARE = 0.01
COMPUTES = 0.5  # of the time of a model, on any core
Resource = Literal["cores", "workers", "calling thread", "disk", "lock", "gil", "deliver", "model"]


@dataclass(frozen=True)
class SampleCost:
    """Seconds that one sample takes in the feed."""

    cpu: float  # c
    wait: float = 0.0  # r
    locked: float = 0.0  # l
    held: float = 0.0  # g
    deliver: float = 0.0  # d
    reading_rate: float = math.inf  # R

    @property
    def in_hand(self) -> float:
        return self.cpu + self.wait

    def stretched(self, share: float) -> SampleCost:
        """The same where a thread has a core for this share of the time only."""
        names = ("cpu", "deliver", "locked", "held")
        return replace(self, **{name: getattr(self, name) / share for name in names})

    def times_as_cheap(self, factor: float) -> SampleCost:
        """All of it, where it is not known what became cheaper."""
        return replace(self.stretched(factor), wait=self.wait / factor, reading_rate=self.reading_rate * factor)


@dataclass(frozen=True)
class Setup:
    """What the feed runs on."""

    cores: int
    workers: int | None  # None: as many as help
    in_threads: bool = True  # of one process, which share a GIL and the locks of sources
    share: float = 1.0  # s: 1 where no other program uses the cores, and the feed gives all that it could


@dataclass(frozen=True)
class ModelCost:
    """Seconds that one sample takes in the model alone."""

    seconds: float  # 1 / M
    cpu: float = 0.0  # m

    @property
    def rate(self) -> float:
        return _per_second(1.0, self.seconds)

    @property
    def computes(self) -> bool:
        """Whether it spends its time on the cores that the feed uses."""
        return self.cpu > COMPUTES * self.seconds


@dataclass(frozen=True)
class Limit:
    """The samples a second that one resource allows."""

    resource: Resource
    rate: float


def limits(cost: SampleCost, setup: Setup) -> tuple[Limit, ...]:
    """Every limit of a feed, the one that binds first."""
    cost = cost.stretched(setup.share)
    if setup.workers == 0:
        return (Limit("calling thread", _per_second(1.0, cost.in_hand + cost.deliver)),)
    found = [
        Limit("cores", _per_second(setup.cores, cost.cpu + cost.deliver)),
        Limit("disk", cost.reading_rate),
        Limit("deliver", _per_second(1.0, cost.deliver)),
    ]
    if setup.workers is not None:
        found.append(Limit("workers", _per_second(setup.workers, cost.in_hand)))
    if setup.in_threads:
        found += [Limit("lock", _per_second(1.0, cost.locked)), Limit("gil", _per_second(1.0, cost.held))]
    return tuple(sorted(found, key=lambda limit: limit.rate))


def share_of(cost: SampleCost, setup: Setup, given_rate: float, core_share: float) -> float:
    """The share of the cores with which this model gives what the feed gave; else the one that threads had."""
    binding = limits(cost, replace(setup, share=1.0))[0]
    if binding.resource == "disk" or not math.isfinite(binding.rate):
        return core_share
    return min(max(given_rate / binding.rate, LEAST_SHARE), 1.0)


def feed_rate(cost: SampleCost, setup: Setup) -> float:
    """F: the samples a second that a feed gives to whoever takes all of them."""
    return limits(cost, setup)[0].rate


def workers_that_fill(cost: SampleCost, cores: int) -> float:
    """Workers that keep all cores busy; for samples that need no CPU, as many as there are cores."""
    return cores * cost.in_hand / cost.cpu if cost.cpu > 0 else float(cores)


def workers_that_give(cost: SampleCost, rate: float) -> float:
    """Workers that make so many samples a second, as far as there are cores."""
    return rate * cost.in_hand


def training_rate(cost: SampleCost, setup: Setup, model: ModelCost | None) -> float:
    """T: the samples a second of feed and model together; F without a model."""
    feed = feed_rate(cost, setup)
    if model is None:
        return feed
    if setup.workers == 0:
        return _per_second(1.0, 1.0 / max(feed, 1e-12) + model.seconds)
    return min(feed, model.rate, _per_second(setup.cores * setup.share, cost.cpu + cost.deliver + model.cpu))


def _per_second(count: float, seconds: float) -> float:
    return count / seconds if seconds > 0 else math.inf
