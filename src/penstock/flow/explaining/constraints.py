"""What holds a flow up, told from what it measured: the consumer, cores, waiting, or too few batches ahead."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.flow.measuring.cost_model import Setup, feed_rate
from penstock.flow.measuring.hops import MADE_BY_WORKERS, HopCost
from penstock.flow.measuring.metrics import Metrics
from penstock.flow.measuring.waiting import Waiting
from penstock.flow.tuning.allocating import BUSY, Measured, Settings
from penstock.wording import counted

LOCK_BINDS = 0.5  # of the time that workers wait
CPU_BINDS = 0.8  # of what the workers could use


@dataclass(frozen=True)
class Held:
    """What was measured, and on what."""

    measured: Measured
    hops: dict[str, HopCost]
    settings: Settings
    cores: int
    is_pinned: bool  # the workers
    lock_wait_seconds: float = 0.0  # of workers, for the lock of a source

    @property
    def consumer_binds(self) -> bool:
        return not self.measured.waiting.is_bound_by_data

    @classmethod
    def of(cls, metrics: Metrics, settings: Settings, cores: int, is_pinned: bool) -> Held:
        waiting = Waiting.of(metrics.as_dict())
        measured = Measured(
            metrics.batches, metrics.samples, waiting.waited_seconds, waiting.used_seconds, *metrics.work()
        )
        return cls(measured, metrics.costs.hops, settings, cores, is_pinned, metrics.costs.lock_wait_seconds)


def binding_words(held: Held) -> str:
    """The constraint that binds, in one or two sentences."""
    if not held.settings.workers:
        return f"samples are made in the calling thread (workers=0); {_dearest(held)} takes most of it"
    if held.consumer_binds:
        return _consumer(held)
    usable = min(held.settings.workers, held.cores)
    if held.measured.cpu_seconds >= CPU_BINDS * usable * held.measured.seconds:
        return _cores(held, usable)
    if held.measured.busy(held.settings.workers) >= BUSY:
        return _waiting(held)
    return _nothing(held)


def _consumer(held: Held) -> str:
    measured = held.measured
    could = feed_rate(measured.sample_cost, Setup(held.cores, held.settings.workers))
    return (
        f"the consumer binds: batches wait for it. It takes {measured.rate:,.0f} samples/s, "
        f"and these workers could make ≈ {could:,.0f}"
    )


def _cores(held: Held, usable: int) -> str:
    hop = _dearest(held)
    most = held.measured.demand / max(held.measured.rate, 1e-9)
    gain = min((usable + 1) / usable, most) - 1
    more = f"workers={usable + 1}" if usable < held.cores else "one more core"
    pinned = f" (workers={held.settings.workers} is pinned)" if held.is_pinned and usable < held.cores else ""
    return f"{hop} on {usable} of {counted(held.cores, 'core')} binds{pinned}; {more} would give ≈ +{gain:.0%}"


def _waiting(held: Held) -> str:
    cores = held.measured.core_wait_seconds
    if cores > held.measured.wait_seconds:
        return (
            f"other processes use the cores: a sample waits {cores / max(held.measured.made, 1) * 1e3:.2g} ms for one"
        )
    if held.lock_wait_seconds > LOCK_BINDS * held.measured.wait_seconds:
        return _locked(held)
    hop = max(MADE_BY_WORKERS, key=lambda name: held.hops[name].wait_seconds)
    each = held.hops[hop].wait_seconds / max(held.measured.made, 1) * 1e3
    if hop == "read":
        return f"reading binds: a worker waits {each:.2g} ms for the bytes of a sample"
    return f"waiting in {hop} binds ({each:.2g} ms a sample): for the disk, or for the GIL"


def _locked(held: Held) -> str:
    each = held.lock_wait_seconds / max(held.measured.made, 1) * 1e3
    return (
        "the lock of the library that reads the files binds: only one thread of a process reads at a time, and a "
        f"worker waits {each:.2g} ms a sample for it. Pack the files, or give each worker a lock of its own with "
        "executor='process'"
    )


def _nothing(held: Held) -> str:
    idle = 1 - held.measured.busy(held.settings.workers)
    return (
        f"nothing binds all the time: workers were idle for {idle:.0%} of it, and the consumer waited for "
        f"{held.measured.waiting_share:.0%}. It asks in bursts, or the flow has just begun"
    )


def _dearest(held: Held) -> str:
    return max(MADE_BY_WORKERS, key=lambda name: held.hops[name].cpu_seconds)
