"""What the feed of a Run did, added up from its log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from penstock.flow.measuring.metrics import HOPS
from penstock.flow.measuring.waits import NOT_KNOWN, Waiting
from penstock.reporting.wording import number, percent
from penstock.runs.run import Line

MOST_RATES = 60  # stretches of a training whose rates are told


@dataclass(frozen=True)
class HopTotal:
    """One hop over the whole training."""

    name: str
    items: float
    cpu_seconds: float
    wait_seconds: float
    bytes: float

    @property
    def cpu_milliseconds(self) -> float:
        """Of each sample."""
        return 1e3 * self.cpu_seconds / max(self.items, 1)

    @property
    def wait_milliseconds(self) -> float:
        """Of each sample."""
        return 1e3 * self.wait_seconds / max(self.items, 1)


@dataclass(frozen=True)
class FeedTotals:
    """The whole training, also where it was interrupted and gone on with."""

    batches: float
    samples: float
    waited_seconds: float  # that the network waited for data
    used_seconds: float  # that the network took
    first_wait_seconds: float  # of the waiting, for the first batch of each process
    hops: tuple[HopTotal, ...]

    @property
    def waiting(self) -> Waiting:
        return Waiting(max(self.waited_seconds - self.first_wait_seconds, 0.0), self.used_seconds, self.batches)

    @property
    def seconds(self) -> float:
        return self.waited_seconds + self.used_seconds

    @property
    def waiting_share(self) -> float:
        return self.waiting.share

    @property
    def samples_per_second(self) -> float:
        return self.samples / self.seconds

    @property
    def cpu_seconds(self) -> float:
        return sum(hop.cpu_seconds for hop in self.hops)

    @property
    def limit(self) -> str:
        return self.waiting.limit


def feed_totals(lines: Sequence[Line]) -> FeedTotals | None:
    """The sum over the log; None where nothing was delivered."""
    ends = list(_ends(lines))
    totals = FeedTotals(
        batches=sum(_value(line, "batches") for line in ends),
        samples=sum(_value(line, "samples") for line in ends),
        waited_seconds=sum(_value(line, "waited_seconds") for line in ends),
        used_seconds=sum(_value(line, "consumer_seconds") for line in ends),
        first_wait_seconds=sum(_value(line, "first_wait_seconds") for line in ends),
        hops=tuple(_hop(name, ends) for name in HOPS),
    )
    return totals if totals.batches > 0 and totals.seconds > 0 else None


def _ends(lines: Sequence[Line]) -> Iterator[Line]:
    """The last line of each process that trained: a line counts from the start of its process."""
    for line, following in pairwise(lines):
        if _value(following, "batches") < _value(line, "batches"):
            yield line
    yield from lines[-1:]


def _hop(name: str, lines: Sequence[Line]) -> HopTotal:
    costs = [_hop_values(line, name) for line in lines]
    names = ("items", "cpu_seconds", "wait_seconds", "bytes")
    return HopTotal(name, *(sum(_value(cost, each) for cost in costs) for each in names))


def _hop_values(line: Line, name: str) -> dict[str, Any]:
    hops = line.get("hops")
    found = hops.get(name) if isinstance(hops, dict) else None
    return found if isinstance(found, dict) else {}


def _value(line: Line, name: str) -> float:
    """A number of the log, and 0 for what is none."""
    found = number(line.get(name))
    return found if 0 <= found < 1e300 else 0.0


def rates(lines: Sequence[Line]) -> tuple[tuple[float, float], ...]:
    """Seconds of training, and samples per second in the stretch until then."""
    # Two lines may stand close together, and a batch between them is no rate.
    least = sum(_value(line, "running_seconds") for line in _ends(lines)) / MOST_RATES
    found, seconds = [], 0.0
    before: Line = {}
    for line in lines:
        before = {} if _value(line, "batches") < _value(before, "batches") else before
        took = _value(line, "running_seconds") - _value(before, "running_seconds")
        if took > least:
            seconds += took
            found.append((seconds, (_value(line, "samples") - _value(before, "samples")) / took))
            before = line
    return tuple(found)


def limit_sentence(totals: FeedTotals) -> str:
    """Whether data or compute was the limit, and what could be won."""
    if not totals.waiting.is_known:
        return f"{NOT_KNOWN[0].upper()}{NOT_KNOWN[1:]}."
    if not totals.waiting.is_bound_by_data:
        return f"Bound by compute: the network waited for data in {percent(totals.waiting_share)} of the time."
    return (
        f"Bound by data: the network waited for it in {percent(totals.waiting_share)} of the time. "
        f"{totals.waiting.gain_words}"
    )
