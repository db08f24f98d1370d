"""What a user writes: a source or a mixture, a seed, steps, and options on how to run. Nothing changes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from penstock.errors import OptionError, one_of, refuse_unused
from penstock.flow.steps import Batch, Repeat, Step, Until
from penstock.flow.streams.streams import Stream
from penstock.samples import Store

Executor = Literal["auto", "thread", "subprocess", "process"]
OnBadSample = Literal["raise", "substitute"]
COUNTS_SUBSTITUTES = (
    "with on_bad_sample='raise' the first bad sample is an error. Pass on_bad_sample='substitute' too, or leave it out."
)


@dataclass(frozen=True)
class FlowOptions:
    """How a flow runs; nothing here changes what is in a batch, but `on_bad_sample` and `fast_decode`."""

    workers: int | None = None
    executor: Executor = "auto"
    memory: int | None = None
    on_bad_sample: OnBadSample = "raise"
    max_bad: int | float | None = None
    fast_decode: bool | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        one_of("executor", self.executor, get_args(Executor))
        one_of("on_bad_sample", self.on_bad_sample, get_args(OnBadSample))
        if self.workers is not None and self.workers < 0:
            raise OptionError(f'workers={self.workers} must be 0 or more, or "auto".')
        if self.fast_decode not in (True, False, "auto"):
            raise OptionError(f'fast_decode={self.fast_decode!r} must be True, False or "auto".')
        if self.on_bad_sample == "raise":
            refuse_unused(self, "max_bad", COUNTS_SUBSTITUTES)
        if self.max_bad is not None and self.max_bad < 0:
            raise OptionError(f"max_bad={self.max_bad} must be a number of samples, or a fraction below 1.")


@dataclass(frozen=True, eq=False)
class Mixture:
    """Several plans in one."""

    plans: tuple[Plan, ...]
    weights: tuple[float, ...]
    until: Until


@dataclass(frozen=True, eq=False)
class Plan:
    """What was written: a source or a mixture, a seed, and steps."""

    source: Store | None
    mixture: Mixture | None
    seed: int
    steps: tuple[Step, ...]
    stream: Stream | None = None  # in the place of a source

    @property
    def has_passes(self) -> bool:
        """Whether an epoch may go over a sample several times, each time as another pass."""
        if any(isinstance(step, Repeat) for step in self.steps):
            return True
        mixture = self.mixture
        return mixture is not None and (mixture.until == "all" or any(plan.has_passes for plan in mixture.plans))

    @property
    def batch(self) -> Batch | None:
        return next((step for step in self.steps if isinstance(step, Batch)), None)
