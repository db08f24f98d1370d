"""From the steps as written to an order and leaves: which sample stands where, and what is done with it.

What only some plans need is imported where it is needed: the first batch waits for imports.

Steps that decide which samples there are look at stored values, so they come before anything that depends on the
epoch (`shuffle`, `sample`, `repeat`, `mix`); the errors here say so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.augment.pixelwise import Normalize
from penstock.errors import OptionError
from penstock.flow.making.chains import Chain, Link
from penstock.flow.making.clips import Clips as ClipsSource
from penstock.flow.making.leaves import Leaf
from penstock.flow.order import selection as selecting
from penstock.flow.order.orders import Everything, Numbers, Order, Picked, Repeated, Shuffled, Sliced, WindowShuffled
from penstock.flow.order.sampling import Mixed, Weighted
from penstock.flow.order.selection import interleaved, reachable
from penstock.flow.steps import (
    Augment,
    Batch,
    Cache,
    Clips,
    Filter,
    Interleave,
    Map,
    Prefetch,
    Repeat,
    Sample,
    Shard,
    Shuffle,
    Skip,
    Step,
    Take,
    Where,
    numbered,
)
from penstock.flow.tuning.cores import cores
from penstock.problems import refuse_problems
from penstock.samples import Store

if TYPE_CHECKING:
    from penstock.flow.plans import FlowOptions, Plan

USUAL_SHARDS = 100  # a window up to here may be written for datasets that have more shards than this one


@dataclass
class Planned:
    """A plan in the making: the order so far, and for each source the chain of steps on its samples."""

    order: Order
    sources: list[Store]
    chains: list[Chain]
    is_fixed: bool = True  # whether every epoch has the same samples in the same places
    repeats_samples: bool = False
    notes: tuple[str, ...] = ()
    lengths: tuple[int | None, ...] = ()  # samples in an epoch after each step, for those who explain the plan
    first_member: int = 0  # the number of the first of its sources, where several plans are mixed

    @property
    def source(self) -> Store:
        return self.sources[0]

    def indices(self) -> Numbers:
        """The samples of the source that are left, in their order; the same in every epoch."""
        length = self.order.length or 0
        return self.order.draws(np.zeros(length, np.int64), np.arange(length, dtype=np.int64)).index

    def need_fixed(self, what: str) -> None:
        if not self.is_fixed:
            raise OptionError(
                f"{what} chooses among stored samples and must come before shuffle, sample, repeat and mix. "
                f"Move it forward: Flow(source).{what}(…).shuffle()."
            )


@dataclass(frozen=True)
class Context:
    """What planning needs beside the plan, where samples must be made for it."""

    leaf_of: Callable[[Store, Chain], Leaf]
    options: FlowOptions

    @property
    def skips_bad(self) -> bool:
        return self.options.on_bad_sample == "substitute"


def planned(plan: Plan, context: Context, first_member: int = 0) -> Planned:
    """The order and the leaves of a plan; steps on batches are not looked at."""
    state = _start(plan, context, first_member)
    for number, step in numbered(plan.steps):
        if isinstance(step, Batch):
            break
        _APPLY[type(step)](state, step, plan.seed, number, context)
        state.lengths += (state.order.length,)
    return state


def _start(plan: Plan, context: Context, first_member: int) -> Planned:
    if plan.mixture is None:
        assert plan.source is not None
        refuse_problems(plan.source, leaves_unreadable=context.skips_bad)
        return Planned(Everything(len(plan.source), first_member), [plan.source], [()], first_member=first_member)
    parts: list[Planned] = []
    for member in plan.mixture.plans:
        parts.append(planned(member, context, first_member + sum(len(part.sources) for part in parts)))
    order = Mixed(tuple(part.order for part in parts), plan.mixture.weights, plan.mixture.until)
    sources = [source for part in parts for source in part.sources]
    chains = [chain for part in parts for chain in part.chains]
    repeats = any(part.repeats_samples for part in parts) or plan.mixture.until == "all"
    notes = tuple(note for part in parts for note in part.notes)
    return Planned(
        order, sources, chains, is_fixed=False, repeats_samples=repeats, notes=notes, first_member=first_member
    )


def _shuffle(state: Planned, step: Shuffle, seed: int, number: int, context: Context) -> None:
    if step.window is None:
        state.order = Shuffled(state.order, seed, number)
    else:
        state.need_fixed("shuffle(window=…)")
        starts = selecting.block_starts(state.source, state.indices())
        if step.window > max(len(starts), USUAL_SHARDS):
            raise OptionError(
                f"shuffle(window={step.window:,}) counts shards, not samples, and there are {len(starts):,} of them. "
                "shuffle() mixes all samples in constant memory: leave the number out."
            )
        state.order = WindowShuffled(state.order, starts, step.window, seed, number)
    state.is_fixed = False


def _where(state: Planned, step: Where, seed: int, number: int, context: Context) -> None:
    state.need_fixed("where")
    indices = state.indices()
    state.order = Picked(state.order, np.flatnonzero(selecting.chosen(state.source, indices, step.conditions)))


def _filter(state: Planned, step: Filter, seed: int, number: int, context: Context) -> None:
    from penstock.flow.caching.filtering import run_filter, words_on_bad

    state.need_fixed("filter")
    _need_constant(state, "filter")
    leaf, options = context.leaf_of(state.source, state.chains[0]), context.options
    workers = cores() if options.workers is None else options.workers
    found = run_filter(leaf, state.indices(), step, workers=workers, skips_bad=context.skips_bad)
    if found.bad:
        state.notes += (words_on_bad(found.bad, options.max_bad, state.order.length or 0),)
    state.order = Picked(state.order, found.positions)


def _sample(state: Planned, step: Sample, seed: int, number: int, context: Context) -> None:
    state.need_fixed("sample")
    weights = selecting.weights_of(state.source, state.indices(), step.weights)
    count = state.order.length if step.count is None else step.count
    state.order = Weighted(state.order, weights, count or 0, seed, number)
    state.is_fixed, state.repeats_samples = False, True


def _interleave(state: Planned, step: Interleave, seed: int, number: int, context: Context) -> None:
    state.need_fixed("interleave")
    starts, lengths = selecting.runs_to_interleave(state.source, state.indices(), step.by)
    order = interleaved(starts, lengths, cycle_length=step.cycle_length, block_length=step.block_length)
    state.order = Picked(state.order, order)


def _clips(state: Planned, step: Clips, seed: int, number: int, context: Context) -> None:
    if not isinstance(state.order, Everything) or state.chains[0]:
        raise OptionError(
            "clips must be the first step: it makes samples of frames. Move it right behind Flow(source)."
        )
    source = ClipsSource(state.source, step)
    state.sources, state.order = [source], Everything(len(source), state.order.member)


def _take(state: Planned, step: Take, seed: int, number: int, context: Context) -> None:
    state.order = Sliced(state.order, 0, step.count)


def _skip(state: Planned, step: Skip, seed: int, number: int, context: Context) -> None:
    state.order = Sliced(state.order, step.count)


def _repeat(state: Planned, step: Repeat, seed: int, number: int, context: Context) -> None:
    state.order = Repeated(state.order, step.times)
    state.is_fixed = False


def _map(state: Planned, step: Map | Augment, seed: int, number: int, context: Context) -> None:
    state.chains = [
        (*chain, Link(_resolved(step, source), seed, number))
        for source, chain in zip(state.sources, state.chains, strict=True)
    ]


def _resolved(step: Map | Augment, source: Store) -> Map | Augment:
    if isinstance(step, Augment) and isinstance(step.step, Normalize):
        return replace(step, step=step.step.resolved(source))
    return step


def _cache(state: Planned, step: Cache, seed: int, number: int, context: Context) -> None:
    from penstock.flow.caching.memory_cache import cached

    _need_constant(state, "cache")
    reached = reachable(state.order) if str(step.place) != "memory" else {}
    leaves = [context.leaf_of(source, chain) for source, chain in zip(state.sources, state.chains, strict=True)]
    nothing = np.zeros(0, np.int64)
    state.sources = [
        cached(leaf, step.place, reached.get(state.first_member + member, nothing), context.options)
        for member, leaf in enumerate(leaves)
    ]
    state.chains = [() for _ in state.sources]


def _need_constant(state: Planned, what: str) -> None:
    random = [link.step.name for chain in state.chains for link in chain if link.step.is_random]
    if random:
        raise OptionError(
            f"{what} after {random[0]}, which is random: every epoch would see the same samples. "
            f"Move {what} before the first random step."
        )


def _nothing(state: Planned, step: Step, seed: int, number: int, context: Context) -> None:
    """Steps that say how to run, not what."""


_APPLY: dict[type, Callable[[Planned, Any, int, int, Context], None]] = {
    Shuffle: _shuffle,
    Where: _where,
    Filter: _filter,
    Sample: _sample,
    Interleave: _interleave,
    Clips: _clips,
    Take: _take,
    Skip: _skip,
    Repeat: _repeat,
    Map: _map,
    Augment: _map,
    Cache: _cache,
    Shard: _nothing,
    Prefetch: _nothing,
}
