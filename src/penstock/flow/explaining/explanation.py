"""`flow.explain()`: the plan as written, the plan as run, what each hop has cost so far, and what binds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.augment.steps import is_geometric
from penstock.codecs import kernel
from penstock.flow.budget import process_budget
from penstock.flow.caching.cached_source import CachedSource
from penstock.flow.caching.memory_cache import SHARE_OF_BUDGET
from penstock.flow.explaining.plan_words import fused_words, size_words, source_words, step_words, unfused_words
from penstock.flow.making.chains import Chain
from penstock.flow.making.leaves import Leaf
from penstock.flow.making.program import Program
from penstock.flow.measuring.cost_model import Setup, feed_rate
from penstock.flow.measuring.metrics import HOPS, MADE_BY_WORKERS, HopCost, Metrics
from penstock.flow.measuring.waits import ENOUGH_BATCHES, Waiting, lock_names
from penstock.flow.order.batches import counts_after
from penstock.flow.order.orders import WindowShuffled
from penstock.flow.steps import Augment, Clips, Filter, Repeat, Sample, Shard, Shuffle, Skip, Step, Take, Where
from penstock.flow.streams.sequences import TAKEN_OUT, gives_batches
from penstock.flow.streams.stream_words import stream_rows, stream_words
from penstock.flow.tuning.allocating import BUSY, Measured, Settings
from penstock.wording import counted

if TYPE_CHECKING:
    from penstock.flow.plans import FlowOptions, Plan
    from penstock.flow.running import Running


# What holds a flow up, told from what it measured: the consumer, cores, waiting, or too few batches ahead.


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


# Where a cache would pay: what it saves against what it takes. It is proposed, never inserted.
#
# Where a random crop is fused into the decoder, a cache of whole images saves little: only what is seen is decoded
# anyway, and 500×375 px of JPEG cost 1.4 ms of CPU fused and 1.1 ms cached. Behind a Resize(256) it is 1.6 and 0.5
# ms.


WORTH_IT = 0.5  # decoding must be this part of the CPU time
LOOKED_AT = 4096  # images whose sizes stand for all


def cache_words(running: Running) -> str | None:
    """A proposal, where decoded samples fit into the budget and decoding is most of the work."""
    hops = running.metrics.costs.hops
    decode, total = hops["decode"].cpu_seconds, running.metrics.work().cpu_seconds
    if len(running.program.leaves) != 1 or decode < WORTH_IT * total:
        return None
    leaf = running.program.leaves[0]
    if isinstance(leaf.source, CachedSource):
        return None
    constant = constant_links(leaf.chain)
    size = sample_bytes(leaf, constant)
    if size is None or is_cheap(leaf) or (leaf.fusion is not None and not _resizes(constant)):
        return None
    needs, room = size * len(leaf.source), int(process_budget().limit * SHARE_OF_BUDGET)
    where = f"behind {constant[-1].step.name}" if constant else "before the first map"
    seconds = decode / max(hops["decode"].items, 1) * len(leaf.source)
    saves = f"decoding, {seconds:,.1f} CPU seconds an epoch"
    if needs > room and not constant:
        return None  # whole images on a disk are no less to read
    call, place = (".cache()", "memory") if needs <= room else ('.cache("folder")', "disk")
    return f"A cache would pay: {call} {where} takes ≈ {size_words(needs)} of {place} and saves most of {saves}."


def _resizes(chain: Chain) -> bool:
    return any(isinstance(link.step, Augment) and getattr(link.step.step, "shape", "") == "resize" for link in chain)


def constant_links(chain: Chain) -> Chain:
    """The steps before the first random one: what a cache can hold."""
    for number, link in enumerate(chain):
        if link.step.is_random:
            return chain[:number]
    return chain


def is_cheap(leaf: Leaf) -> bool:
    """Whether samples come without decoding: raw pixels, or a cache already."""
    return isinstance(leaf.source, CachedSource) or (leaf.fusion is not None and leaf.fusion.stored == "raw")


def sample_bytes(leaf: Leaf, constant: Chain) -> float | None:
    """The bytes of a decoded image after these steps, where they can be told."""
    steps = [link.step.step for link in constant if isinstance(link.step, Augment)]
    if len(steps) < len(constant):
        return None  # what a function of the user gives is not known
    sizes = [getattr(step, "output_size", None) for step in steps if getattr(step, "shape", "") != "flip"]
    base, _, frames = leaf.source.images_at(np.zeros(0, np.int64))
    if sizes and sizes[-1] is not None:
        width, height = sizes[-1]
        return float(width * height * 3 * frames)
    if sizes or not len(base):
        return None
    known = base.image_sizes(np.unique(np.linspace(0, len(base) - 1, min(LOOKED_AT, len(base))).astype(np.int64)))
    return None if known is None else float(np.prod(known, axis=1, dtype=np.int64).mean() * 3 * frames)


_CHANGE_COUNTS = (Where, Filter, Sample, Clips, Take, Skip, Repeat)


def explained(plan: Plan, options: FlowOptions, running: Running) -> str:
    """All of it, for people."""
    lines = ["The plan as written", *_written(plan, running)]
    if plan.batch is None and not gives_batches(plan.source):
        return "\n".join([*lines, "", "It has no batch yet: add .batch(size) to run it."])
    lines += ["", "The plan as run", *_aligned(_as_run(plan, options, running))]
    if running.metrics.batches:
        lines += ["", *_measured(options, running)]
    return "\n".join(lines)


# As written


def _written(plan: Plan, running: Running) -> list[str]:
    rows = [*_start(plan), *_steps(plan, running)]
    width = max((len(left) for left, right in rows if right), default=0)
    return [f"  {left:<{width}}  {right}".rstrip() for left, right in rows]


def _start(plan: Plan, depth: int = 0) -> list[tuple[str, str]]:
    indent = "  " * depth
    if plan.stream is not None:
        return [(f"{stream_words(plan.stream)}, seed {plan.seed}", "")]
    if plan.source is not None:
        return [(f"{indent}{source_words(plan.source)}, seed {plan.seed}", "")]
    assert plan.mixture is not None
    weights = ", ".join(f"{weight:g}" for weight in plan.mixture.weights)
    rows = [(f"{indent}mix of {len(plan.mixture.plans)} flows, weights {weights}, until {plan.mixture.until!r}", "")]
    for member in plan.mixture.plans:
        rows += _start(member, depth + 1)
        rows += [(f"{indent}    .{step_words(step)}", "") for step in member.steps]
    return rows


def _steps(plan: Plan, running: Running) -> list[tuple[str, str]]:
    if plan.stream is not None or gives_batches(plan.source):
        return [(f".{step_words(step)}", "") for step in plan.steps]
    lengths = running.planned.lengths
    on_samples = zip(plan.steps[: len(lengths)], lengths, strict=True)
    before = [(f".{step_words(step)}", _samples_after(step, length)) for step, length in on_samples]
    if plan.batch is None:
        return before
    batches = running.batches
    left_out = batches.deal.left_out
    words = counted(batches.deal.count, "batch") + (f", {counted(left_out, 'sample')} left out" if left_out else "")
    counts = counts_after(batches.deal.count, batches.steps)[1:]
    after = [
        (f".{step_words(step)}", _batches_after(step, count)) for step, count in zip(batches.steps, counts, strict=True)
    ]
    return [*before, (f".{step_words(plan.batch)}", words), *after]


def _uneven_ranks(plan: Plan, length: int | None) -> list[str]:
    """A warning if ranks get shares of different sizes of every batch, or of the last one."""
    shard = next((step for step in plan.steps if isinstance(step, Shard)), None)
    if shard is None or plan.batch is None or shard.keep_all:
        return []
    size, ranks = plan.batch.size, shard.world_size
    if size % ranks:
        return [
            f"batch({size}) is not a multiple of {ranks} ranks: they get {size // ranks} or "
            f"{counted(size // ranks + 1, 'sample')}, "
            f"and averaging over ranks weighs them differently; use batch({max(size // ranks, 1) * ranks})"
        ]
    short = 0 if length is None or plan.batch.drop_last else length % size
    if short < ranks or short % ranks == 0:
        return []
    return [
        f"the last batch has {counted(short, 'sample')} for {ranks} ranks, and averaging over ranks weighs them "
        "differently; weigh each rank by its samples (ps.train does), or use batch(…, drop_last=True)"
    ]


def _samples_after(step: Step, length: int | None) -> str:
    return counted(length, "sample") if isinstance(step, _CHANGE_COUNTS) else ""


def _batches_after(step: Step, count: int | None) -> str:
    return counted(count, "batch") if isinstance(step, (Take, Skip, Repeat)) else ""


# As run


def _as_run(plan: Plan, options: FlowOptions, running: Running) -> list[tuple[str, str]]:
    if plan.stream is not None:
        return stream_rows(plan.stream, plan, running.tuner, options.executor)
    program = running.program
    rows = [("order", words) for words in _order(plan, running)]
    made = [words for leaf in program.leaves for words in _made(leaf)]
    rows += [("make", words) for words in dict.fromkeys([*made, *_functions_of_batches(program)])]
    rows += [("batch", "an item of the sequence" if gives_batches(plan.source) else _layout(program))]
    rows += [("workers", words) for words in _workers(options, running)]
    rows += [("memory", _memory(program, options, running.tuner.settings.prefetch))]
    rows += [("errors", _bad(options, running))]
    rows += [("note", note) for note in _uneven_ranks(plan, running.planned.order.length)]
    rows += [("note", note) for note in running.planned.notes]
    rows += [("note", note) for note in running.tuner.report(running.metrics)["notes"]]
    return rows


def _aligned(rows: list[tuple[str, str]]) -> list[str]:
    """A name is said once, where it changes."""
    last, lines = "", []
    for name, words in rows:
        lines.append(f"  {name if name != last else '':<9}{words}")
        last = name
    return lines


def _order(plan: Plan, running: Running) -> list[str]:
    order: Any = running.planned.order
    windows = []
    while order is not None:
        if isinstance(order, WindowShuffled):
            windows.append(order)
        order = getattr(order, "inner", None)
    if windows:
        among = "within each" if windows[0].window == 1 else f"among {windows[0].window} of them"
        return [
            f"whole shards in random order, samples shuffled {among}; a batch is drawn from "
            f"{windows[0].mixing:.1%} of the data (a shuffle of everything: 100%)"
        ]
    words = ["flows in turn by their weights, each in its own order"] if plan.mixture is not None else []
    if any(isinstance(step, Sample) for step in plan.steps):
        words.append("drawn with replacement, anew for each epoch")
    if any(isinstance(step, Shuffle) for step in plan.steps):
        words.append("shuffled as a whole: a sample may stand anywhere in an epoch, elsewhere in each")
    return words or ["as the source has it, the same in each epoch"]


def _made(leaf: Leaf) -> list[str]:
    words = []
    if leaf.fusion is not None:
        words.append(f"{fused_words(leaf)} — {kernel.which()}")
    words += unfused_words(leaf)
    return words + _approximations(leaf)


def _approximations(leaf: Leaf) -> list[str]:
    fusion = leaf.fusion
    if fusion is None or fusion.stored != "encoded":
        return []
    words = ["fast_decode=True: a faster inverse DCT, levels may differ a little"] if fusion.fast else []
    resizes = any(is_geometric(link.step.step) and link.step.step.shape == "resize" for link in fusion.geometric)  # type: ignore[union-attr]
    if resizes and fusion.reduced != "never":
        words.append("where an image is at least twice too large both ways it is decoded at a reduced scale")
    return words


def _functions_of_batches(program: Program) -> list[str]:
    names = [step_words(link.step) for link in program.batch_chain if link.step != TAKEN_OUT]
    return [f"whole batches, for {', '.join(names)}: they are not shared by workers"] if names else []


def _layout(program: Program) -> str:
    rows = program.batch.size
    fields = [
        f"{name} {place.dtype} {'×'.join(map(str, (rows, *place.shape)))}"
        for name, place in program.layout.fixed.items()
    ]
    loose = [
        f"{name} ({program.batch.shapes if program.batch.shapes != 'fixed' else 'list'})"
        for name in program.layout.loose
    ]
    return f"{', '.join([*fields, *loose])}: {size_words(program.layout.slot_bytes(rows))}"


def _workers(options: FlowOptions, running: Running) -> list[str]:
    settings, reasons = running.tuner.settings, running.tuner.reasons
    if not settings.workers:
        return ["none: everything is made in the calling thread (workers=0)"]
    choice = running.workers.choice
    kind = "of a kind that is chosen when the first epoch begins"
    if choice is not None or options.executor != "auto":
        kind = f"{options.executor} — pinned" if choice is None else f"{choice.kind} — {choice.reason}"
    rows, whole = settings.rows_of_task(running.program.batch.size), running.program.makes_whole_batches
    return [
        f"{settings.workers} on {counted(running.tuner.cores, 'core')} — {reasons['workers']}",
        kind,
        f"{counted(settings.prefetch, 'batch')} ahead — {reasons['prefetch']}",
        "a whole batch a task" if whole else f"{counted(rows, 'sample')} a task — {reasons['task_rows']}",
    ]


def _memory(program: Program, options: FlowOptions, prefetch: int) -> str:
    slots = (prefetch + 2) * program.layout.slot_bytes(program.batch.size)  # one is made, one is used
    limit = process_budget().limit if options.memory is None else min(options.memory, process_budget().limit)
    whose = "half of what was free, for all flows of this process" if options.memory is None else "given by memory="
    return f"≈ {size_words(slots)} for batches, of at most {size_words(limit)} ({whose})"


def _bad(options: FlowOptions, running: Running) -> str:
    if options.on_bad_sample == "raise":
        return "a sample that cannot be made is an error that names it"
    most = "" if options.max_bad is None else f", at most {options.max_bad:g}"
    return f"a sample that cannot be made is replaced by another one{most}; so far {len(running.bad):,}"


# As measured


def _measured(options: FlowOptions, running: Running) -> list[str]:
    metrics, tuner = running.metrics, running.tuner
    rate = metrics.samples / max(metrics.running_seconds, 1e-9)
    lines = [
        f"Measured so far: {counted(metrics.batches, 'batch')}, {rate:,.0f} samples/s, "
        f"{metrics.ready / metrics.batches:.1f} batches ready when one was asked for",
        *_table(running),
        *_lock(running),
    ]
    if metrics.batches < ENOUGH_BATCHES:
        return [*lines, f"  What binds is said after {ENOUGH_BATCHES} batches."]
    held = Held.of(metrics, tuner.settings, tuner.cores, options.workers is not None)
    words = binding_words(held)
    lines.append(f"  {words[0].upper()}{words[1:]}.")
    proposal = None if held.consumer_binds or not running.has_random_access else cache_words(running)
    return lines if proposal is None else [*lines, f"  {proposal}"]


def _lock(running: Running) -> list[str]:
    """What workers waited for the lock of a source, where one has a lock and tells."""
    seconds, made = running.metrics.costs.lock_wait_seconds, max(running.metrics.made_samples, 1)
    if not seconds:
        return []
    names = ", ".join(lock_names(leaf.source for leaf in running.program.leaves))
    return [f"  Of the waiting, {seconds / made * 1e3:.3f} ms/sample were for {names}."]


def _table(running: Running) -> list[str]:
    costs = running.metrics.costs
    total = max(costs.cpu_seconds, 1e-12)
    lines = [f"  {'hop':<10}{'samples':>12}{'CPU ms/sample':>16}{'waiting ms/sample':>20}{'share of CPU':>15}"]
    for hop in HOPS:
        cost = costs.hops[hop]
        items = max(cost.items, 1)
        lines.append(
            f"  {hop:<10}{cost.items:>12,}{cost.cpu_seconds / items * 1e3:>16.3f}"
            f"{cost.wait_seconds / items * 1e3:>20.3f}{cost.cpu_seconds / total:>15.0%}"
        )
    return lines
