"""One workload: everybody starts, warms up, and then makes passes in turns; what they deliver is checked every time."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from benchmarks.feeding.contestants import Absent, Contestant, Entry, Pass

# Whoever tunes itself has this long to settle before anything counts; a pass may take a fifth of a second.
WARM_UP_SECONDS = 6.0
# A turn is as many passes as fill this time: one pass of raw pixels is over before a busy host has shown its mean.
TURN_SECONDS = 2.0


@dataclass(frozen=True)
class Expected:
    """What every pass must deliver."""

    samples: int
    shape: tuple[int, ...]
    dtype: str
    mean: float
    tolerance: float
    labels: int | None = None

    def of(self, entry: Entry) -> Expected:
        """Slow contestants may be given fewer samples, and some another type; rates are compared."""
        settings = entry.settings
        return replace(self, samples=settings.get("count", self.samples), dtype=settings.get("dtype", self.dtype))

    def complaint(self, made: Pass) -> str:
        """What is wrong with a pass; empty where nothing is."""
        if made.samples != self.samples:
            return f"delivered {made.samples:,} samples instead of {self.samples:,}"
        if made.shape is None:
            return ""
        if made.shape != self.shape or made.dtype != self.dtype:
            return f"delivered {made.shape} {made.dtype} instead of {self.shape} {self.dtype}"
        if abs(made.mean - self.mean) > self.tolerance:
            return f"delivered a mean of {made.mean:.2f}, far from {self.mean:.2f}"
        if self.labels is not None and made.labels != self.labels:
            return f"its labels add up to {made.labels}, not to {self.labels}: some samples are missing or come twice"
        return ""


@dataclass
class Standing:
    """What one contestant reached."""

    entry: Entry
    versions: dict[str, str] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    first_seconds: float = 0.0
    rate: float = 0.0
    absent: str = ""

    @property
    def took_part(self) -> bool:
        return not self.absent


Start = Callable[[Entry], Contestant]


def contest(entries: list[Entry], start: Start, expected: Expected, rounds: int) -> list[Standing]:
    """Median rates of all that could start, in the order in which they were given."""
    standings = {entry.name: Standing(entry) for entry in entries}
    alive: dict[str, Contestant] = {}
    try:
        for entry in entries:
            _warm_up(entry, start, expected, standings[entry.name], alive)
        for number in range(rounds):
            order = list(alive) if number % 2 == 0 else list(alive)[::-1]
            for name in order:
                _take_turn(standings[name], alive, expected)
            print(f"  round {number + 1} of {rounds}", file=sys.stderr)
    finally:
        for contestant in alive.values():
            contestant.close()
    for standing in standings.values():
        if standing.took_part:
            standing.rate = expected.of(standing.entry).samples / statistics.median(standing.seconds)
    return list(standings.values())


def _take_turn(standing: Standing, alive: dict[str, Contestant], expected: Expected) -> None:
    name = standing.entry.name
    try:
        standing.seconds.append(_mean_seconds(standing.entry, alive[name], expected))
    except Absent as reason:
        standing.absent = str(reason)
        alive.pop(name).close()


def _mean_seconds(entry: Entry, contestant: Contestant, expected: Expected) -> float:
    """Of the passes of one turn."""
    passes = [_checked(entry, contestant, expected).seconds]
    while sum(passes) < TURN_SECONDS:
        passes.append(_checked(entry, contestant, expected).seconds)
    return statistics.mean(passes)


def _warm_up(entry: Entry, start: Start, expected: Expected, standing: Standing, alive: dict[str, Contestant]) -> None:
    """Start a contestant and make passes that do not count: compilers, caches, workers and tuners get ready in them."""
    print(f"  {entry.name} gets ready", file=sys.stderr)
    try:
        contestant = start(entry)
    except Absent as reason:
        standing.absent = str(reason)
        return
    try:
        made = _checked(entry, contestant, expected)
        standing.first_seconds, seconds = made.first_seconds, made.seconds
        while seconds < WARM_UP_SECONDS:
            seconds += _checked(entry, contestant, expected).seconds
    except Absent as reason:
        standing.absent = str(reason)
        contestant.close()
        return
    standing.versions = contestant.versions
    alive[entry.name] = contestant


def _checked(entry: Entry, contestant: Contestant, expected: Expected) -> Pass:
    made = contestant.go()
    complaint = expected.of(entry).complaint(made)
    if complaint:
        raise SystemExit(f"{entry.name} {complaint}: nothing can be compared.")
    return made
