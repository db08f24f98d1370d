"""Flow: from a source to batches. A plan that nothing changes, and a position in it."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from penstock.augment.applying import kinds_of
from penstock.augment.steps import Geometric, Pixelwise
from penstock.errors import OptionError, Sealed, nearest, one_of
from penstock.flow import steps
from penstock.flow.order.sampling import checked_shares
from penstock.flow.pixel_moves import as_function, check_moves
from penstock.flow.plans import Executor, FlowOptions, Mixture, OnBadSample, Plan
from penstock.flow.running import Running
from penstock.flow.state import checked_state
from penstock.flow.steps import not_a_source
from penstock.flow.streams.sequences import check_on_items, gives_batches, plan_of_items
from penstock.flow.streams.streams import Stream
from penstock.samples import Kind, Sample, Source, Store, as_store, checked_index
from penstock.storage.free_memory import bytes_of
from penstock.storage.locations import refuses_urls

if TYPE_CHECKING:
    from penstock.flow.adapters.jax_batches import JaxBatches
    from penstock.flow.adapters.torch_loader import TorchLoader


# Options that a method does not have are errors that name the nearest one, or say what to do instead.


AUTOMATIC = "Functions run in parallel, in order, and as many at once as pays: leave it out (workers=n sets a limit)."
INSTEAD = {
    "num_parallel_calls": AUTOMATIC,
    "num_workers": "Say it where the flow begins: Flow(source, workers=4).",
    "deterministic": "Samples always come in order: leave it out.",
    "buffer_size": "shuffle() mixes all samples, and prefetch(4) counts batches: leave the name out.",
    "drop_remainder": "It is called drop_last.",
    "reshuffle_each_iteration": "Every epoch has an order of its own: leave it out.",
    "pin_memory": "Say it where tensors are made: flow.to_torch(pin_memory=True).",
}


class UnknownOption(OptionError, TypeError):  # noqa: N818 - users see a OptionError
    """An option that a method does not have; a TypeError too, as Python raises it."""


def knows_its_options(kind: type) -> type:
    """Let every public method of a class, and its making, say which option was meant."""
    for name, function in list(vars(kind).items()):
        if inspect.isfunction(function) and (name == "__init__" or not name.startswith("_")):
            setattr(kind, name, checked(function, kind.__name__ if name == "__init__" else name))
    return kind


def checked(function: Any, name: str) -> Any:
    """A function that refuses options it does not have."""
    parameters = inspect.signature(function).parameters.values()
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return function
    options = tuple(one.name for one in parameters if one.name != "self")

    @functools.wraps(function)
    def called(*values: Any, **named: Any) -> Any:
        for given in named:
            if given not in options:
                raise UnknownOption(f"{name} has no option {given!r}{_words(options)}.{_instead(given, options)}")
        return function(*values, **named)

    return called


def _words(options: tuple[str, ...]) -> str:
    return f"; it has {', '.join(options)}" if options else ""


def _instead(given: str, options: tuple[str, ...]) -> str:
    return nearest(given, options) or (f" {INSTEAD[given]}" if given in INSTEAD else "")


Batch = dict[str, Any]


class Flow(Sealed):
    """A lazy plan from a Source, or a path for `ps.open`, to batches.

    Every method gives a new flow, and nothing runs until it is iterated.

    `workers`, `executor` and `memory` say how it runs and never what is in a batch. With
    `on_bad_sample="substitute"` a sample that cannot be made is replaced by another one and counted, at most
    `max_bad` of them in an epoch (a number, or a fraction below 1). `fast_decode=True` allows approximate decoding
    (fast DCT, reduced scale), False nothing of it; "auto" reduces only what is at least twice too large.
    """

    def __init__(
        self,
        source: Source | Stream | str | os.PathLike[str],
        seed: int = 0,
        *,
        workers: int | str = "auto",
        executor: Executor = "auto",
        memory: int | str = "auto",
        on_bad_sample: OnBadSample = "raise",
        max_bad: int | float | None = None,
        fast_decode: bool | Literal["auto"] = "auto",
    ) -> None:
        if not isinstance(source, (str, os.PathLike, Source, Stream)):
            raise not_a_source(source)
        source = source if isinstance(source, Stream) else as_store(source)
        self._plan = (
            Plan(source, None, _seed(seed), ())
            if isinstance(source, Store)
            else Plan(None, None, _seed(seed), (), source)
        )
        self._options = FlowOptions(
            steps.number_or_auto("workers", workers), executor, bytes_of(memory), on_bad_sample, max_bad, fast_decode
        )
        self._running = running_of(self._plan, self._options)

    # The plan

    def shuffle(self, window: int | None = None) -> Flow:
        """All samples in a new random order for each epoch. With `window`, whole shards in random order, and samples
        shuffled among so many of them: the order for slow disks."""
        return self._with(steps.Shuffle(window))

    def map(
        self,
        step: Any,
        *,
        field: str | None = None,
        batched: bool = False,
        workers: int | str = "auto",
    ) -> Flow:
        """An augmentation, or a function of a sample (of one `field` of it; `batched`: of a whole batch).

        A function that has a parameter `rng` is random. `workers=n` lets at most n calls run at once. A pipeline of
        albumentations gets the image with its boxes, masks and keypoints, and is seeded for each sample.
        """
        if isinstance(step, (Geometric, Pixelwise)):
            if isinstance(step, type):
                raise OptionError(f"{step.__name__} is a class: make one with its options, as in {step.__name__}(…).")
            if field is not None or batched:
                raise OptionError(
                    f"{type(step).__name__} knows its fields and works on samples: leave field and batched out."
                )
            return self._with(steps.Augment(step))
        if not batched:
            step = as_function(step, field)
        return self._with(steps.Map(step, field, batched, steps.number_or_auto("workers", workers)))

    def filter(self, function: Callable[[Sample], bool]) -> Flow:
        """The samples for which a function is true; found out once, by one pass over all of them."""
        return self._with(steps.Filter(function))

    def where(self, **columns: Any) -> Flow:
        """The samples whose stored columns have these values: one, several, or a function of the whole column."""
        return self._with(steps.Where(steps.conditions_of(columns)))

    def sample(self, weights: Any = "balanced", *, count: int | str = "auto") -> Flow:
        """Draw with replacement: "balanced" over classes, {class: weight}, a stored column, or a weight a sample."""
        if callable(weights):
            raise OptionError(
                "sample takes weights, not a function: a number for each sample, such as "
                "[weight(label) for label in source.column('label')], a stored column, or {class: weight}."
            )
        return self._with(steps.Sample(weights, steps.number_or_auto("count", count)))

    def interleave(self, cycle_length: int = 8, *, block_length: int = 1, by: str = "auto") -> Flow:
        """Samples of several files in turn: `cycle_length` files at a time, `block_length` samples of each.

        `by` is "file" (of records), "group", "shard" (of a pack), or another stored column whose equal values lie
        together; "auto" takes the first of these three that has several samples each.
        """
        return self._with(steps.Interleave(cycle_length, block_length, by))

    @refuses_urls()
    def cache(self, place: str | Path = "memory") -> Flow:
        """Make what comes before only once: kept in memory within the budget, or as a pack in a folder."""
        return self._with(steps.Cache(place))

    def batch(self, size: int, *, shapes: steps.Shapes = "fixed", fill: float = 0, drop_last: bool = False) -> Flow:
        """Batches of `size` samples over all ranks; fields whose sizes differ are "padded" with `fill`, or "ragged"."""
        return self._with(steps.Batch(size, shapes, fill, drop_last))

    def repeat(self, times: int | None = None) -> Flow:
        """Several passes as one epoch; without a number, without end."""
        return self._with(steps.Repeat(times))

    def take(self, count: int) -> Flow:
        """Only the first `count` samples (after batch: batches) of each epoch."""
        return self._with(steps.Take(count))

    def skip(self, count: int) -> Flow:
        """All but the first `count` samples (after batch: batches) of each epoch."""
        return self._with(steps.Skip(count))

    def shard(self, rank: int, world_size: int, *, keep_all: bool = False) -> Flow:
        """This rank's share of every batch. `keep_all` leaves nothing out, for evaluation: a share may be empty."""
        return self._with(steps.Shard(rank, world_size, keep_all))

    def clips(
        self,
        frames: int = 11,
        stride: int = 1,
        *,
        step: int = 1,
        label: steps.Labelled = "middle",
        edge: steps.Edge = "repeat",
    ) -> Flow:
        """Runs of frames of one video as samples; `label` says which frame's labels a clip has."""
        return self._with(steps.Clips(frames, stride, step, label, edge))

    def prefetch(self, batches: int | str = "auto") -> Flow:
        """Make so many batches ahead."""
        return self._with(steps.Prefetch(steps.number_or_auto("prefetch", batches)))

    def _with(self, step: steps.Step) -> Flow:
        from penstock.flow.steps import check_next

        check = check_on_items if gives_batches(self._plan.source) else check_next
        check(self._plan.steps, step)
        for kinds in kinds_in(self._plan):
            check_moves(kinds, self._plan.steps, step)
        if self._plan.stream is not None:
            from penstock.flow.streams.stream_running import check_on_stream

            check_on_stream(self._plan.steps, step)
        return _flow(replace(self._plan, steps=(*self._plan.steps, step)), self._options)

    # The batches

    def epoch(self, number: int | None = None) -> Iterator[Batch]:
        """The batches of one epoch. Without a number: what `restore` says comes next, else the epoch after the last."""
        return self._running.epoch(number)

    def __iter__(self) -> Iterator[Batch]:
        return self._running.epoch(None)

    def __repr__(self) -> str:
        """The plan as it is written."""
        from penstock.flow.explaining.plan_words import plan_words

        return plan_words(self._plan)

    def __len__(self) -> int:
        """Batches in an epoch."""
        return self._running.count()

    def __getitem__(self, position: int) -> Sample:
        """Sample number `position` of the plan in its present epoch, made the plain way."""
        return self._running.sample(checked_index(position, self._running.samples()))

    # The batches, as frameworks take them

    def to_torch(self, device: Any = None, *, pin_memory: bool | Literal["auto"] = "auto") -> TorchLoader:
        """An iterable of dicts of tensors, without a copy on the CPU; Lightning saves and restores its state.

        With a CUDA device batches are copied ahead on a side stream, from memory that is pinned.
        """
        from penstock.flow.adapters.torch_loader import torch_loader

        return torch_loader(self, device, pin_memory)

    def to_keras(
        self,
        x: str | Sequence[str] | Mapping[str, str] = "image",
        y: str | Sequence[str] | Mapping[str, str] | None = "label",
        *,
        weight: str | Sequence[str] | Mapping[str, str] | None = None,
    ) -> Any:
        """A `keras.utils.PyDataset` for fit, evaluate and predict, whose batches and order are those of the flow.

        Several names give several inputs in their order; a dict gives them by name: {input or output of the model:
        field}. `y=None` is for predict. It is also the endless generator of older code.
        """
        from penstock.flow.adapters.keras_dataset import keras_dataset

        return keras_dataset(self, x, y, weight)

    def to_tf(self) -> Any:
        """A `tf.data.Dataset` of dicts of tensors; each iteration over it is the next epoch."""
        from penstock.flow.adapters.tf_dataset import tf_dataset

        return tf_dataset(self)

    def to_jax(self, sharding: Any = None) -> JaxBatches:
        """An iterable of dicts of arrays on devices; the next batch is on its way while one is used."""
        from penstock.flow.adapters.jax_batches import jax_batches

        return jax_batches(self, sharding)

    # Where it is

    def state(self) -> dict[str, Any]:
        """Where the flow is: what `restore` needs to go on with exactly the next batch. Survives json."""
        return self._running.state()

    def restore(self, state: dict[str, Any], *, allow_other: bool = False) -> None:
        """Go on where a state was taken. `allow_other` accepts one of another decoder: pixels may differ a little."""
        self._running.restore(checked_state(state), allow_other=allow_other)

    @property
    def bad_samples(self) -> tuple[Any, ...]:
        """The samples that were replaced so far, with the reasons."""
        return tuple(self._running.bad)

    def metrics(self) -> dict[str, Any]:
        """What was delivered so far, what each hop cost, how many batches were ready, and the settings with reasons."""
        return self._running.tuner.report(self._running.metrics)

    def metrics_text(self, name: str | None = None) -> str:
        """The same as text that Prometheus reads; `name` tells several flows apart."""
        from penstock.flow.measuring.metrics import metrics_text

        return metrics_text(self.metrics(), name)

    @refuses_urls()
    def log_metrics(self, path: str | Path, every_seconds: float = 10.0) -> None:
        """From now on append the metrics to a file, a line of JSON every so many seconds and at the end of an epoch."""
        from penstock.flow.measuring.metrics import MetricsLog

        self._running.metrics.log = MetricsLog(path, every_seconds)

    def explain(self) -> str:
        """The plan as written and as run, and after some batches what each hop costs."""
        from penstock.flow.explaining.explanation import explained

        return explained(self._plan, self._options, self._running)

    def close(self) -> None:
        """End epochs that are under way, whose iterators then say so, and the workers that are kept between epochs."""
        self._running.close()

    # The inward face: for the parts of Penstock that adapt, diagnose and train. It may change in any version.

    @property
    def plan(self) -> Plan:
        """Inward: the source, the seed and the steps, as they were written."""
        return self._plan

    @property
    def options(self) -> FlowOptions:
        """Inward: how the flow was told to run."""
        return self._options

    @property
    def running(self) -> Running:
        """Inward: the plan at work: its program, its settings, and what was measured."""
        return self._running

    def rewrite(self, plan: Plan | None = None, **options: Any) -> Flow:
        """Inward: a new flow of another plan, or that runs with other options; it begins at the first epoch."""
        return _flow(self._plan if plan is None else plan, replace(self._options, **options))


def _flow(plan: Plan, options: FlowOptions) -> Flow:
    flow = Flow.__new__(Flow)
    flow._plan, flow._options = plan, options
    flow._running = running_of(plan, options)
    return flow


def cache_source(flow: Flow, place: str | Path) -> Flow:
    """A flow whose samples are kept as their source gives them, before all steps; its batches stay the same."""
    return flow.rewrite(replace(flow.plan, steps=(steps.Cache(place), *flow.plan.steps)))


def kinds_in(plan: Plan) -> list[Mapping[str, Kind]]:
    """The kinds of the fields of each source of a plan, where they are known before a sample comes."""
    if plan.mixture is not None:
        return [kinds for member in plan.mixture.plans for kinds in kinds_in(member)]
    schema = plan.source.schema if plan.source is not None else plan.stream.schema if plan.stream is not None else None
    return [] if schema is None or gives_batches(plan.source) else [kinds_of(schema)]


def running_of(plan: Plan, options: FlowOptions) -> Running:
    """A plan at work, by the kind of its source."""
    if plan.stream is not None:
        from penstock.flow.streams.stream_running import StreamRunning

        return StreamRunning(plan, options)
    return Running(plan_of_items(plan) if gives_batches(plan.source) else plan, options)


def mix(
    flows: Sequence[Flow], weights: Sequence[float] | None = None, *, seed: int = 0, until: steps.Until = "first"
) -> Flow:
    """Several flows as one, in proportion to the weights. It ends with the `first` that has nothing left, or when
    `all` were seen (the shorter ones then begin again). It runs as the first flow does."""
    if not isinstance(flows, Sequence) or not all(isinstance(flow, Flow) for flow in flows):
        raise OptionError("mix takes several flows in a list: mix([first, second], weights=[3, 1]).")
    if not flows:
        raise OptionError("mix needs at least one flow.")
    one_of("until", until, get_args(steps.Until))
    for number, flow in enumerate(flows):
        if flow.plan.batch is not None or gives_batches(flow.plan.source):
            raise OptionError(f"mix: flow {number} is batched already. Mix samples, then call batch once.")
        if flow.plan.stream is not None:
            raise OptionError(f"mix: flow {number} is a stream. Mix in the generator, or pack its samples first.")
    shares = checked_shares(weights, len(flows))
    mixture = Mixture(tuple(flow.plan for flow in flows), shares, until)
    return _flow(Plan(None, mixture, _seed(seed), ()), flows[0].options)


def _seed(seed: Any) -> int:
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        raise OptionError(f"seed={seed!r} must be a whole number.")
    if not -(2**63) <= int(seed) < 2**64:  # more bits would be cut off: two seeds would be one
        raise OptionError(f"seed={seed} must be a number of 64 bits.")
    return int(seed)


if not TYPE_CHECKING:  # type checkers know the options by themselves
    knows_its_options(Flow)
    mix = checked(mix, "mix")
