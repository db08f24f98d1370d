"""What a flow has done so far: items, seconds and bytes of each hop; as JSON lines and for Prometheus."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from penstock.errors import OptionError

# What each of the five hops of a sample costs: items, CPU seconds, other seconds, bytes.


HOPS = ("read", "decode", "transform", "collate", "deliver")
MADE_BY_WORKERS = HOPS[:-1]  # the thread that takes the batches delivers
NANO = 1e-9


@dataclass
class HopCost:
    """The sum over some samples at one hop; `wait_seconds` is time that passed without using the CPU."""

    items: int = 0
    cpu_seconds: float = 0.0
    wait_seconds: float = 0.0
    bytes: int = 0

    def add(self, other: HopCost) -> None:
        self.items += other.items
        self.cpu_seconds += other.cpu_seconds
        self.wait_seconds += other.wait_seconds
        self.bytes += other.bytes

    def since(self, before: HopCost) -> HopCost:
        return HopCost(
            self.items - before.items,
            self.cpu_seconds - before.cpu_seconds,
            self.wait_seconds - before.wait_seconds,
            self.bytes - before.bytes,
        )

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass
class Costs:
    """The costs of all hops."""

    hops: dict[str, HopCost] = field(default_factory=lambda: {hop: HopCost() for hop in HOPS})
    core_wait_seconds: float = 0.0  # the part of the waiting of all hops in which no core was free
    lock_wait_seconds: float = 0.0  # the part in which another thread held the lock of a source, where it tells that

    def add(self, other: Costs) -> None:
        self.core_wait_seconds += other.core_wait_seconds
        self.lock_wait_seconds += other.lock_wait_seconds
        for hop, cost in other.hops.items():
            self.hops[hop].add(cost)

    @property
    def cpu_seconds(self) -> float:
        return sum(cost.cpu_seconds for cost in self.hops.values())

    @property
    def wait_seconds(self) -> float:
        return sum(cost.wait_seconds for cost in self.hops.values())

    @property
    def worker_cpu_seconds(self) -> float:
        return sum(self.hops[hop].cpu_seconds for hop in MADE_BY_WORKERS)

    @property
    def worker_wait_seconds(self) -> float:
        """Of workers with a sample in hand, for anything but a core."""
        return max(sum(self.hops[hop].wait_seconds for hop in MADE_BY_WORKERS) - self.core_wait_seconds, 0.0)

    def since(self, before: Costs) -> Costs:
        """What was added after an earlier copy was taken."""
        return Costs(
            {hop: cost.since(before.hops[hop]) for hop, cost in self.hops.items()},
            self.core_wait_seconds - before.core_wait_seconds,
            self.lock_wait_seconds - before.lock_wait_seconds,
        )

    def as_dict(self) -> dict[str, Any]:
        return {hop: cost.as_dict() for hop, cost in self.hops.items()}


class Stopwatch:
    """Gives the time since the last lap to a hop. CPU time is of this thread: waiting for others is not a cost."""

    def __init__(self) -> None:
        self.costs = Costs()
        self._cpu, self._wall = time.thread_time_ns(), time.perf_counter_ns()

    def count(self, hop: str, items: int) -> None:
        """Samples that passed a hop whose time was counted before."""
        self.costs.hops[hop].items += items

    def lap(self, hop: str, items: int = 0, size: int = 0) -> None:
        cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
        cost = self.costs.hops[hop]
        cost.items += items
        cost.bytes += size
        cost.cpu_seconds += (cpu - self._cpu) * NANO
        cost.wait_seconds += max(wall - self._wall - (cpu - self._cpu), 0) * NANO
        self._cpu, self._wall = cpu, wall


def summed(parts: Iterable[Costs]) -> Costs:
    total = Costs()
    for part in parts:
        total.add(part)
    return total


# Metrics as lines of JSON in a file: one line every few seconds of a running epoch, and one at its end.


Clock = Callable[[], float]


class MetricsLog:
    """Appends to a file. One that can no longer be written ends the log, not the training; `note` says why."""

    def __init__(self, path: str | Path, every_seconds: float = 10.0, *, clock: Clock = time.time) -> None:
        if every_seconds <= 0:
            raise OptionError(f"every_seconds={every_seconds} must be more than 0.")
        self.path, self.every_seconds, self._clock = Path(path), every_seconds, clock
        self.note: str | None = None
        self._last = clock()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.open("a", encoding="utf-8").close()
        except OSError as error:
            raise OptionError(f"the metrics cannot be logged to {self.path}: {error.strerror or error}.") from error

    def batch_used(self, epoch: int, report: Callable[[], dict[str, Any]]) -> None:
        """A batch was used; writes a line if the last one is long ago."""
        if self._clock() - self._last >= self.every_seconds:
            # The history of the settings is long and said at the end of an epoch.
            self._write("running", epoch, {name: value for name, value in report().items() if name != "history"})

    def epoch_left(self, epoch: int, report: Callable[[], dict[str, Any]]) -> None:
        """An epoch ended, or was left."""
        self._write("left", epoch, report())

    def _write(self, event: str, epoch: int, report: dict[str, Any]) -> None:
        self._last = self._clock()
        if self.note is not None:
            return
        line = json.dumps({"time": self._last, "event": event, "epoch": epoch, **report})
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as error:
            self.note = f"metrics are no longer logged to {self.path}: {error.strerror or error}"


class Work(NamedTuple):
    """What workers have done so far."""

    samples: int
    cpu_seconds: float
    wait_seconds: float  # for anything but a core
    core_wait_seconds: float


class Metrics:
    """Sums since the flow was made; used by the consumer's thread alone."""

    def __init__(self) -> None:
        self.costs = Costs()
        self.batches = 0
        self.samples = 0
        self.made_samples = 0
        self.bad = 0
        self.asked_seconds = 0.0  # from asking for a batch to having it
        self.first_wait_seconds = 0.0  # of these, for the first batch
        self.consumer_seconds = 0.0
        self.ready = 0  # batches that were complete when one was asked for, summed
        self.least_ready: int | None = None
        self.log: MetricsLog | None = None

    def made(self, costs: Costs, samples: int) -> None:
        """A range was made."""
        self.costs.add(costs)
        self.made_samples += samples

    def delivered(self, cost: HopCost, ready: int, asked_seconds: float) -> None:
        """A batch was handed over so long after it was asked for; so many were complete then."""
        self.asked_seconds += asked_seconds
        if not self.batches:
            self.first_wait_seconds = asked_seconds
        self.costs.hops["deliver"].add(cost)
        self.batches += 1
        self.samples += cost.items
        self.ready += ready
        self.least_ready = ready if self.least_ready is None else min(self.least_ready, ready)

    def used(self, seconds: float) -> None:
        """The consumer came back for the next batch after so many seconds."""
        self.consumer_seconds += seconds

    def work(self) -> Work:
        """The sum of what workers did, for those who compare two of them."""
        costs = self.costs
        return Work(self.made_samples, costs.worker_cpu_seconds, costs.worker_wait_seconds, costs.core_wait_seconds)

    @property
    def running_seconds(self) -> float:
        """Seconds that epochs were running: getting batches and using them."""
        return self.asked_seconds + self.consumer_seconds

    def as_dict(self) -> dict[str, Any]:
        seconds = self.running_seconds
        return {
            "batches": self.batches,
            "samples": self.samples,
            "bad_samples": self.bad,
            "running_seconds": seconds,
            "waited_seconds": self.asked_seconds,
            "first_wait_seconds": self.first_wait_seconds,
            "consumer_seconds": self.consumer_seconds,
            "batches_per_second": self.batches / seconds if seconds else 0.0,
            "samples_per_second": self.samples / seconds if seconds else 0.0,
            "ready_batches": {"least": self.least_ready or 0, "mean": self.ready / max(self.batches, 1)},
            "core_wait_seconds": self.costs.core_wait_seconds,
            "lock_wait_seconds": self.costs.lock_wait_seconds,
            "hops": self.costs.as_dict(),
        }


# Metrics as text that Prometheus reads: one family after the other, each with its help, type and unit.


class Family(NamedTuple):
    """One metric: how it is called there, where it stands in the report, and what it means."""

    name: str
    kind: Literal["counter", "gauge"]
    path: tuple[str, ...]
    help: str


FAMILIES = (
    Family("penstock_batches_total", "counter", ("batches",), "Batches delivered."),
    Family("penstock_samples_total", "counter", ("samples",), "Samples delivered."),
    Family("penstock_bad_samples_total", "counter", ("bad_samples",), "Samples that were replaced."),
    Family("penstock_running_seconds_total", "counter", ("running_seconds",), "Seconds that epochs were running."),
    Family("penstock_waited_seconds_total", "counter", ("waited_seconds",), "Seconds that batches were waited for."),
    Family("penstock_consumer_seconds_total", "counter", ("consumer_seconds",), "Seconds that batches were used."),
    Family("penstock_core_wait_seconds_total", "counter", ("core_wait_seconds",), "Seconds that no core was free."),
    Family("penstock_ready_batches_mean", "gauge", ("ready_batches", "mean"), "Batches ready when one was asked for."),
    Family("penstock_ready_batches_least", "gauge", ("ready_batches", "least"), "The fewest that were ready."),
    Family("penstock_workers", "gauge", ("settings", "workers"), "Workers now."),
    Family("penstock_prefetch_batches", "gauge", ("settings", "prefetch"), "Batches made ahead now."),
)
HOP_FAMILIES = (
    Family("penstock_hop_items_total", "counter", ("items",), "Samples that passed a hop."),
    Family("penstock_hop_cpu_seconds_total", "counter", ("cpu_seconds",), "CPU seconds of a hop."),
    Family("penstock_hop_wait_seconds_total", "counter", ("wait_seconds",), "Seconds of a hop without the CPU."),
    Family("penstock_hop_bytes_total", "counter", ("bytes",), "Bytes that a hop read or wrote."),
)


def metrics_text(report: dict[str, Any], flow: str | None = None) -> str:
    """A report of metrics; `flow` tells several flows of a program apart."""
    common = {} if flow is None else {"flow": flow}
    lines: list[str] = []
    for family in FAMILIES:
        value: Any = report
        for key in family.path:
            value = value[key]
        lines += [*_head(family), f"{family.name}{_labels(common)} {_number(value)}"]
    for family in HOP_FAMILIES:
        lines += _head(family)
        for hop, cost in report["hops"].items():
            lines.append(f"{family.name}{_labels({**common, 'hop': hop})} {_number(cost[family.path[0]])}")
    return "\n".join(lines) + "\n"


def _head(family: Family) -> list[str]:
    return [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}"]


def _labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return repr(float(value)) if isinstance(value, float) else str(int(value))
