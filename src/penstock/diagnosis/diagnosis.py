"""What the doctor says, as frozen values: the table of hops, the verdict, the remedies, the machine."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import Any

from penstock.diagnosis.hardware import Hardware
from penstock.diagnosis.runs import Moment
from penstock.flow.measuring.cost_model import Resource


@dataclass(frozen=True)
class HopRow:
    """One hop of the table."""

    name: str
    samples_per_second: float | None  # what it could give by itself on all cores; None where it costs nothing
    cpu_milliseconds: float  # of a sample
    cpu_share: float
    wait_milliseconds: float  # of a sample


@dataclass(frozen=True)
class Verdict:
    """What binds, and the sentence about it."""

    resource: Resource
    hop: str  # model, or one of the five
    is_input_bound: bool  # whether a model waits for data
    sentence: str

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Remedy:
    """Something to do about it: what it should bring, what it takes, and how it is done."""

    name: str  # executor, workers, prefetch, cache, pack, disk, device, batch or model
    what: str
    speed_up: float  # predicted, as a factor of the present rate
    how: str  # a command or a line of Python
    needs: str = ""  # memory, disk or a purchase
    warning: str = ""  # what it may change in what is learned
    is_cheap: bool = False  # whether `apply` may do it: a setting of the feed, with which batches stay the same


@dataclass(frozen=True)
class Applied:
    """A remedy that was put in place, what it should have brought, and what it did."""

    remedy: Remedy
    before: float  # samples a second
    after: float

    @property
    def is_kept(self) -> bool:
        """What made it slower was taken back."""
        return self.after > self.before

    @property
    def speed_up(self) -> float:
        return self.after / max(self.before, 1e-9)


@dataclass(frozen=True)
class ReadFacts:
    """Reading by itself: samples a second from memory and from the disk, and pages that were fetched from it."""

    warm_per_second: float
    cold_per_second: float | None
    cold_major_faults: float | None  # of a sample
    bytes: float  # of a sample
    fits_in_memory: bool | None  # whether the system can keep all of the data after the first epoch


@dataclass(frozen=True)
class Memory:
    """Bytes."""

    batch: int
    batches: int  # all that are under way
    peak: int  # of this process so far


@dataclass(frozen=True)
class Diagnosis:
    """Everything that was measured and follows from it. `print(diagnosis)` shows it to people."""

    name: str
    rows: int  # of a batch
    executor: str
    workers: int
    prefetch: int
    hops: tuple[HopRow, ...]
    feed_rate: float  # samples a second, to a consumer that takes all of them
    model_rate: float | None  # of the model on one batch
    training_rate: float | None  # of both together
    waiting_share: float | None  # of the model's time
    gil_milliseconds: float  # of a sample, in which it holds the GIL
    lock_milliseconds: float  # of a sample, in which it holds the lock of its source
    verdict: Verdict
    remedies: tuple[Remedy, ...]
    hardware: Hardware
    thin: tuple[str, ...]
    reading: ReadFacts | None
    memory: Memory
    notes: tuple[str, ...]
    seconds: float  # that it took
    timeline: tuple[Moment, ...]
    applied: tuple[Applied, ...] = ()
    written: str = ""  # what `apply` wrote and where, or why it wrote nothing

    @property
    def rate(self) -> float:
        """Samples a second of the training, or of the feed without a model."""
        return self.feed_rate if self.training_rate is None else self.training_rate

    @property
    def is_input_bound(self) -> bool:
        """Whether a model waits for data; the command leaves with exit code 1 then."""
        return self.verdict.is_input_bound

    @property
    def table(self) -> str:
        """The five hops and the model, as text."""
        from penstock.diagnosis.verdicts import table_of

        return table_of(self)

    def as_dict(self) -> dict[str, Any]:
        """All of it but the timeline, as plain values."""
        found = asdict(self)
        del found["timeline"]
        return {"input_bound": self.is_input_bound, **_plain(found)}

    def json(self) -> str:
        """The same as JSON."""
        return json.dumps(self.as_dict(), ensure_ascii=False)

    def __str__(self) -> str:
        from penstock.diagnosis.verdicts import diagnosis_words

        return diagnosis_words(self)


def rate_words(rate: float) -> str:
    """Samples a second, with a decimal where there are few."""
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"


def _plain(value: Any) -> Any:
    """JSON has no infinity."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
