"""A whole examination: measure the feed, its hops, the model and both; say what binds; try what would help.

feed alone ─► reading, disk ─► hops (one thread, all cores) ─► model alone ─► both together ─► trials of remedies
"""

from __future__ import annotations

import sys
import time
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from penstock.diagnosis.comparing import Case
from penstock.diagnosis.diagnosis import Applied, Diagnosis, HopRow, Memory, ReadFacts, Remedy
from penstock.diagnosis.hardware import measured_hardware
from penstock.diagnosis.present import Present, cost_of, fits_in_memory, reading_rate
from penstock.diagnosis.profiling import Profile, profile, seconds_of_sample
from penstock.diagnosis.reading import Disk, Reading, measured_disk, measured_reading
from penstock.diagnosis.remedies import remedies_of
from penstock.diagnosis.runs import FeedRun, Step, run_feed, run_model
from penstock.diagnosis.spelling import Spelling
from penstock.diagnosis.trials import applied, image_sizes
from penstock.diagnosis.variants import (
    can_be_tried,
    few,
    has_cache,
    in_batches,
    on_source,
    output_size,
)
from penstock.diagnosis.verdicts import verdict_of
from penstock.errors import OptionError, PenstockError
from penstock.flow.explaining.plan_words import source_words
from penstock.flow.flow import Flow
from penstock.flow.making.layout import Ragged
from penstock.flow.making.limiting import limited
from penstock.flow.measuring.cost_model import Setup, share_of
from penstock.flow.measuring.metrics import HOPS
from penstock.flow.measuring.sample_times import SampleTimes
from penstock.flow.tuning.cores import cores

DEFAULT_SECONDS = 12.0
LEAST_SECONDS = 1.0
ROUGH_SECONDS = 4.0  # below that, turns of a trial are a few batches each
TRIED_UNTIL = 20.0  # seconds after which no further remedy is tried: people wait for half a minute
SHORTEST_TRIAL = 0.5  # no trial is over before, so that a second one does not begin
# What is measured for how long, as parts of the whole; trials of remedies come on top.
FEED, READING, DISK, HOP_COSTS, MODEL, TOGETHER = 0.3, 0.1, 0.05, 0.2, 0.1, 0.25
TRIAL = 0.3  # of each remedy
BATCH = 0.03  # is the longest that a batch should take, where its size is nobody's business
MOST_ROUNDS = 3  # of remedies that are put in place, one after another
CACHED_SAMPLES = 512  # that stand for all where the plan has a cache: it is full after one pass


@dataclass(frozen=True)
class Options:
    """How to examine."""

    seconds: float = DEFAULT_SECONDS
    tries_remedies: bool = True

    def __post_init__(self) -> None:
        if not self.seconds >= LEAST_SECONDS:
            raise OptionError(f"seconds={self.seconds} must be at least {LEAST_SECONDS:g}.")


def diagnose(
    flow: Flow,
    step: Step | None = None,
    *,
    options: Options | None = None,
    spelling: Spelling | None = None,
    name: str = "",
) -> Diagnosis:
    """Examine a flow, and the model that uses its batches; the flow itself stays where it is."""
    options, spelling = options or Options(), spelling or Spelling()
    _open(flow)
    begin = time.perf_counter()
    running, warm_samples = _measurable(flow)
    if step is None:
        running = _in_quick_batches(running, BATCH * options.seconds)
    with closing(running):
        present = measured(flow, Case(running, step, warm_samples), options, spelling)
        # One is tried in any case: a diagnosis without a remedy helps nobody.
        deadline = max(begin + max(options.seconds, TRIED_UNTIL), time.perf_counter() + SHORTEST_TRIAL)
        remedies, notes = remedies_of(present, deadline) if options.tries_remedies else ((), ())
    if options.seconds < ROUGH_SECONDS:
        notes = (*notes, f"figures of {options.seconds:g} seconds are rough: {DEFAULT_SECONDS:g} make them good")
    return _told(present, remedies, notes, name or _name(flow), time.perf_counter() - begin)


def apply_remedies(flow: Flow, step: Step | None, options: Options, spelling: Spelling, found: Diagnosis) -> Diagnosis:
    """Put cheap remedies in place as long as they help; what did not help is taken back and said."""
    done: list[Applied] = []
    for _ in range(MOST_ROUNDS):
        names = [one.remedy.name for one in done]
        remedy = next((one for one in found.remedies if one.is_cheap and one.name not in names), None)
        if remedy is None:
            break
        changed = applied(flow, remedy, spelling)
        after = diagnose(changed, step, options=options, spelling=spelling, name=found.name)
        done.append(Applied(remedy, found.rate, after.rate))
        if not done[-1].is_kept:
            break
        flow, found = changed, after
    return replace(found, applied=tuple(done))


def measured(flow: Flow, case: Case, options: Options, spelling: Spelling) -> Present:
    """All that is measured of the present state."""
    running, step, seconds = case.flow, case.step, options.seconds
    feed = run_feed(running, FEED * seconds, warm_samples=case.warm_samples)
    reading, disk = _read(running, seconds)
    hardware = measured_hardware(disk)
    profiled = _profiled(running, feed, seconds)
    source = running.plan.source
    rate = np.inf if reading is None or source is None else reading_rate(reading, len(source), hardware.free_bytes)
    cost = cost_of(profiled, feed.deliver_cpu_seconds, float(rate))
    model = None if step is None else run_model(step, feed.batch, feed.rows, MODEL * seconds)
    together = None if step is None else run_feed(running, TOGETHER * seconds, step)
    if model is not None and together is not None and together.rate > model.rate:
        model = replace(model, seconds=1 / together.rate)  # it was seen to be faster than by itself
    setup = Setup(cores(), flow.options.workers, feed.executor != "process")
    setup = replace(setup, share=share_of(cost, setup, feed.rate, profiled.core_share(setup.cores)))
    return Present(
        flow,
        running,
        step,
        profiled,
        cost,
        setup,
        model,
        feed,
        together,
        reading,
        hardware,
        spelling,
        case.warm_samples,
        TRIAL * seconds,
    )


def _open(flow: Flow) -> None:
    """Let sources make what they make once, such as the index of a video: that is no measuring."""
    if flow.running.has_random_access:
        _ = flow.running.program


def _measurable(flow: Flow) -> tuple[Flow, int]:
    """A flow of its own, and the samples after which it has settled: with a cache, few samples that all fit."""
    if not has_cache(flow) or not can_be_tried(flow):
        return flow.rewrite(), 0
    source = flow.plan.source
    assert source is not None
    some = few(source, CACHED_SAMPLES)
    return on_source(flow, some), len(some)


def _in_quick_batches(flow: Flow, seconds: float) -> Flow:
    """Smaller batches where a batch of slow samples would take longer; without a model nobody looks at their size."""
    batch, running = flow.plan.batch, flow.running
    if batch is None or not running.has_random_access or running.program.makes_whole_batches:
        return flow
    size = int(seconds * cores() / seconds_of_sample(limited(running.program)))
    return flow if size >= batch.size else in_batches(flow, max(size, 1))


def _read(flow: Flow, seconds: float) -> tuple[Reading | None, Disk]:
    """Reading alone, of the first source; a stream cannot be read apart."""
    if not flow.running.has_random_access:
        return None, Disk("unknown")
    source = flow.running.program.leaves[0].source
    reading = measured_reading(source, READING * seconds)
    return reading, measured_disk(reading.files, DISK * seconds)


def _profiled(flow: Flow, feed: FeedRun, seconds: float) -> Profile:
    """Of hops by themselves; of a stream, what it cost while it ran."""
    if flow.running.has_random_access:
        return profile(flow.running.program, HOP_COSTS * seconds)
    times = SampleTimes.of(feed.costs, feed.samples, 1)
    return Profile(times, times)


# What is told


def _told(
    present: Present, remedies: tuple[Remedy, ...], notes: tuple[str, ...], name: str, seconds: float
) -> Diagnosis:
    feed, together = present.feed, present.together
    return Diagnosis(
        name=name,
        rows=_batch_rows(present),
        executor=feed.executor,
        workers=feed.workers,
        prefetch=feed.prefetch,
        hops=_rows(present),
        feed_rate=feed.rate,
        model_rate=None if present.model is None else present.model.rate,
        training_rate=None if together is None else together.rate,
        waiting_share=None if together is None else together.waiting.share,
        gil_milliseconds=1e3 * present.profile.held_seconds,
        lock_milliseconds=1e3 * present.profile.locked_seconds,
        verdict=verdict_of(present),
        remedies=remedies,
        hardware=present.hardware,
        thin=present.hardware.thin(_input_factor(present)),
        reading=_read_facts(present),
        memory=_memory(present),
        notes=notes,
        seconds=seconds,
        timeline=(together or feed).moments,
    )


def _rows(present: Present) -> tuple[HopRow, ...]:
    """The five hops; what is delivered is delivered by one thread."""
    times, deliver = present.profile.crowded, present.cost.deliver
    total = max(times.cpu_seconds + deliver, 1e-12)
    found = []
    for hop in HOPS:
        cpu = deliver if hop == "deliver" else times.hops[hop].cpu_seconds
        rate = None if cpu <= 0 else (1 if hop == "deliver" else present.setup.cores) / cpu
        if hop == "read" and rate is not None:
            rate = min(rate, present.cost.reading_rate)
        found.append(HopRow(hop, rate, 1e3 * cpu, cpu / total, 1e3 * present.profile.alone.hops[hop].wait_seconds))
    return tuple(found)


def _read_facts(present: Present) -> ReadFacts | None:
    reading = present.reading
    if reading is None:
        return None
    cold = reading.cold
    return ReadFacts(
        reading.warm.many.samples_per_second,
        None if cold is None else cold.many.samples_per_second,
        None if cold is None else cold.one.major_faults,
        reading.warm.one.bytes,
        fits_in_memory(reading.warm.one.bytes, present.samples, present.hardware.free_bytes),
    )


def _batch_rows(present: Present) -> int:
    """Of the user's batches, also where smaller ones were measured."""
    own, measured = present.flow.plan.batch, present.running.plan.batch
    return own.size if own is not None and own != measured else present.feed.rows


def _memory(present: Present) -> Memory:
    size = sum(map(_bytes, present.feed.batch.values())) * _batch_rows(present) // present.feed.rows
    return Memory(size, size * (present.feed.prefetch + 2), _peak_bytes())


def _bytes(value: Any) -> int:
    """Of an array, or of several of different sizes."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    return sum(map(_bytes, value)) if isinstance(value, (list, Ragged)) else 0


def _peak_bytes() -> int:
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _input_factor(present: Present) -> float | None:
    """How many times the pixels of a batch's image a stored one has."""
    source, size = present.flow.plan.source, output_size(present.flow)
    if source is None or size is None or not can_be_tried(present.flow):
        return None
    try:
        sizes = image_sizes(source)
    except (PenstockError, OSError):
        return None
    return None if sizes is None else float(sizes.prod(axis=1).mean() / (size[0] * size[1]))


def _name(flow: Flow) -> str:
    plan = flow.plan
    if plan.source is not None:
        return source_words(plan.source)
    return "a stream" if plan.stream is not None else f"a mixture of {len(plan.mixture.plans)} flows"  # type: ignore[union-attr]
