"""What could be done, by what it brings: what is promising by the cost model, and what applies, is tried."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from penstock.diagnosis import trials
from penstock.diagnosis.diagnosis import Remedy, rate_words
from penstock.diagnosis.present import Present
from penstock.diagnosis.variants import can_be_tried, is_video, pinned_prefetch
from penstock.errors import OptionError, PenstockError
from penstock.flow.measuring.cost_model import limits
from penstock.flow.workers import messages as sharing
from penstock.wording import counted

MOST_REMEDIES = 5
WORTH_SAYING = 1.1
MOST_SPEED_UP = 1000.0  # a model that does nothing, or a cost of nothing, says nothing
MISSED_RATE = 0.75  # of what feed and model should reach together: then they wait for one another


def remedies_of(present: Present, deadline: float) -> tuple[tuple[Remedy, ...], tuple[str, ...]]:
    """The best five, and why others could not be tried; `deadline` is when no further trial begins."""
    binds_by_model = present.together is not None and not present.together.waiting.is_bound_by_data
    found = [_setting(make(present), present, deadline) for make in (*SETTINGS, *[model_remedy] * binds_by_model)]
    notes, left_out = [], []
    for trial in _in_order(present):
        if (trial.is_of_feed and present.most_by_feed < WORTH_SAYING) or not trial.applies(present):
            continue
        if time.perf_counter() > deadline:
            left_out.append(trial.name)
            continue
        try:
            found.append(trial.make(present))
        except PenstockError as error:
            notes.append(f"{trial.name} could not be tried: {str(error).rstrip('.')}")
    if not binds_by_model:  # then it comes last, if there is time
        found.append(_setting(model_remedy(present), present, deadline))
    notes += [f"not tried, because the time was over: {', '.join(left_out)}"] if left_out else []
    worth = [one for one in found if one is not None and one.speed_up >= WORTH_SAYING]
    capped = [replace(one, speed_up=min(one.speed_up, most_by(one, present))) for one in worth]
    capped = [one for one in capped if one.speed_up >= WORTH_SAYING]
    return tuple(sorted(capped, key=lambda one: -one.speed_up)[:MOST_REMEDIES]), tuple(notes)


def most_by(remedy: Remedy, present: Present) -> float:
    """What a remedy brings at most by the rates that stand beside it: the model, or the feed, is the next limit."""
    if present.model is None or remedy.name == "batch":
        return MOST_SPEED_UP
    limit = present.feed.rate if remedy.name == "model" else present.model.rate
    return min(limit / max(present.measured_rate, 1e-9), MOST_SPEED_UP)


def _in_order(present: Present) -> tuple[Trial, ...]:
    """Trials, the most promising first, since time may be over: cheap ones, but videos are for packs."""
    if not can_be_tried(present.flow):
        return ()
    return tuple(sorted(TRIALS, key=lambda trial: trial.name != A_PACK)) if is_video(present.flow) else TRIALS


def _setting(remedy: Remedy | None, present: Present, deadline: float) -> Remedy | None:
    """A remedy with what it really brings; what the cost model says of it where there is no time, or no way back."""
    if remedy is None or remedy.speed_up < WORTH_SAYING or not (remedy.is_cheap or remedy.name == "disk"):
        return remedy
    if not present.flow.running.has_random_access or time.perf_counter() > deadline:
        return remedy
    return trials.confirmed(remedy, present)


def executor_remedy(present: Present) -> Remedy | None:
    """Processes, where threads keep one another waiting."""
    contended = present.binding.resource in ("gil", "lock")
    if not contended or not sharing.is_available() or not _can_be_sent(present):
        return None
    why = "hold the GIL" if present.binding.resource == "gil" else "wait for one lock"
    return Remedy(
        "executor",
        f"processes instead of threads, which {why}",
        present.speed_up(setup=replace(present.setup, in_threads=False)),
        present.spelling.setting("executor", "process"),
        is_cheap=True,
    )


def _can_be_sent(present: Present) -> bool:
    """Whether other processes can have the plan."""
    from penstock.flow.workers.messages import close_all, parcel_of

    try:
        close_all(parcel_of(present.flow.running.program)[1])
    except OptionError:
        return False
    return True


def workers_remedy(present: Present) -> Remedy | None:
    """As many workers as help, where fewer are pinned."""
    if present.binding.resource not in ("workers", "calling thread"):
        return None
    return Remedy(
        "workers",
        f"as many workers as help, instead of {present.setup.workers}",
        present.speed_up(setup=replace(present.setup, workers=None)),
        present.spelling.setting("workers", "auto"),
        is_cheap=True,
    )


def prefetch_remedy(present: Present) -> Remedy | None:
    """More batches ahead, where few are pinned and the model waits although the feed is fast enough."""
    pinned = pinned_prefetch(present.flow.plan)
    if pinned is None or present.setup.workers == 0 or not waits_in_turn(present):
        return None
    return Remedy(
        "prefetch",
        f"as many batches ahead as help, instead of {counted(pinned, 'batch')}",
        present.modelled_rate / max(present.measured_rate, 1e-9),
        present.spelling.setting("prefetch", "auto"),
        is_cheap=True,
    )


def waits_in_turn(present: Present) -> bool:
    """Whether feed and model reach less together than each allows the other."""
    return present.together is not None and present.measured_rate < MISSED_RATE * present.modelled_rate


def disk_remedy(present: Present) -> Remedy | None:
    """A faster disk, where reading binds."""
    if present.binding.resource != "disk":
        return None
    return Remedy(
        "disk",
        "a disk that is never waited for",
        present.speed_up(cost=replace(present.cost, reading_rate=math.inf, wait=0.0)),
        present.spelling.move(),
        needs=trials.disk_words(limits(present.cost, present.setup)[1].rate),
    )


def model_remedy(present: Present) -> Remedy | None:
    """A faster model, where the feed could give more than it takes."""
    if present.model is None or present.setup.workers == 0:
        return None
    what, together = f"a faster model: the feed could give {rate_words(present.feed.rate)} samples/s", present.together
    speed_up = present.feed.rate / max(present.measured_rate, 1e-9)
    if together is not None and together.waiting.is_bound_by_data and not present.model.computes:
        # It waits as it is, and no core comes free. Where the model binds, how long it waits says nothing of the feed.
        what = f"a faster model, which waits for data {together.waiting.share:.0%} of its time"
        speed_up = min(speed_up, 1 / max(together.waiting.share, 1e-9))
    return Remedy(
        "model",
        what,
        speed_up,
        present.spelling.model(bool(present.hardware.gpus)),
        warning="At most; a smaller network or lower precision affects accuracy.",
    )


Make = Callable[[Present], Remedy | None]
SETTINGS: tuple[Make, ...] = (executor_remedy, workers_remedy, prefetch_remedy, disk_remedy)


class Trial(NamedTuple):
    """A remedy that is tried on a few samples, where it applies."""

    name: str
    applies: Callable[[Present], bool]
    make: Make
    is_of_feed: bool = True  # whether the model stays as it is


A_PACK = "a pack"
TRIALS = (
    Trial("a cache", trials.cache_applies, trials.cache_remedy),  # first what `apply` can do
    Trial(A_PACK, trials.pack_applies, trials.pack_remedy),
    Trial("the device", trials.device_applies, trials.device_remedy),
    Trial("larger batches", trials.batch_applies, trials.batch_remedy, is_of_feed=False),
)
