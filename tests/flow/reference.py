"""What a plan must give, the plain way: one sample after the other, in one thread, without a queue.

Only three things are taken from Penstock, each with tests of its own: the keyed shuffle, the counter function that all
randomness follows from, and one step of an augmentation on one sample. An order is a function from the number of an
epoch to its draws (`plain_order`), a sample follows from its draw (`plain_samples`), and batches are cut here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import Any

import numpy as np
from tests.flow.plain_order import part_of, repeated
from tests.flow.plain_samples import Drawn, Part, Sample, generator, made, numbered

from penstock.flow import steps
from penstock.flow.flow import Flow
from penstock.flow.making.layout import Ragged
from penstock.flow.plans import Plan
from penstock.samples import RESERVED
from penstock.seeds import sample_bits

SUBSTITUTE = 2**32 - 1  # the step number of substitutes, which no plan has

Batch = dict[str, Any]


def batches(flow: Flow, epoch: int, rank: int = 0, world_size: int = 1, keep_all: bool = False) -> Iterator[Batch]:
    """The batches of an epoch that one rank must get."""
    plan = flow.plan
    part = part_of(plan)
    for passed, number, draws in _global_batches(plan, part, epoch, world_size, keep_all):
        size = len(draws)
        share = draws[rank * size // world_size : (rank + 1) * size // world_size]
        rows = [_made_or_other(flow, part, draw, passed) for draw in share]
        yield _batched_functions(plan, _collated(plan, part, rows), passed, number)


def places(flow: Flow, epoch: int, world_size: int = 1) -> list[tuple[int, int]]:
    """The pass and the number in it of each batch; more ranks leave a short one out that fewer ranks get."""
    part = part_of(flow.plan)
    return [(passed, number) for passed, number, _ in _global_batches(flow.plan, part, epoch, world_size, False)]


def order_of(flow: Flow, epoch: int) -> list[Drawn]:
    """What stands at each position of an epoch, before batches are cut."""
    return list(part_of(flow.plan).order(epoch))


def replaced(flow: Flow, epoch: int) -> list[tuple[int, int]]:
    """The bad samples of an epoch of one rank, each with the number of its substitute."""
    part = part_of(flow.plan)
    found = []
    for passed, _, draws in _global_batches(flow.plan, part, epoch, 1, False):
        for draw in draws:
            other, _ = _made_or_other(flow, part, draw, passed)
            if other != draw:
                found.append((draw.number, other.number))
    return found


# Batches


def _global_batches(
    plan: Plan, part: Part, epoch: int, world_size: int, keep_all: bool
) -> Iterator[tuple[int, int, list[Drawn]]]:
    """The batches of all ranks together: of which pass, which number in it, and what is in it."""
    batch = next(step for step in plan.steps if isinstance(step, steps.Batch))

    def of_pass(epoch: int) -> Iterator[tuple[int, int, list[Drawn]]]:
        draws = iter(part.order(epoch))
        for number in count():
            found = list(islice(draws, batch.size))
            is_short = len(found) < batch.size
            if not found or (is_short and (batch.drop_last or (len(found) < world_size and not keep_all))):
                return
            yield epoch, number, found

    stream: Callable[[int], Iterator[tuple[int, int, list[Drawn]]]] = of_pass
    for step in plan.steps[plan.steps.index(batch) + 1 :]:
        stream = _after(stream, step)
    return stream(epoch)


def _after(stream: Any, step: Any) -> Any:
    match step:
        case steps.Take(count=limit):
            return lambda epoch: islice(stream(epoch), limit)
        case steps.Skip(count=skipped):
            return lambda epoch: islice(stream(epoch), skipped, None)
        case steps.Repeat(times=times):
            return lambda epoch: repeated(stream, times, epoch)
    return stream


def _batched_functions(plan: Plan, batch: Batch, epoch: int, number: int) -> Batch:
    for place, step in numbered(plan):
        if isinstance(step, steps.Map) and step.batched:
            bits = sample_bits(plan.seed, place, np.array([epoch]), np.array([number]))
            batch = step.function(batch, **generator(step, int(bits[0])))
    return batch


def _has_passes(plan: Plan) -> bool:
    """Whether a sample may come again in another pass of the same epoch."""
    if any(isinstance(step, steps.Repeat) for step in plan.steps):
        return True
    mixture = plan.mixture
    return mixture is not None and (mixture.until == "all" or any(_has_passes(one) for one in mixture.plans))


def _collated(plan: Plan, part: Part, rows: list[tuple[Drawn, Sample]]) -> Batch:
    batch = next(step for step in plan.steps if isinstance(step, steps.Batch))
    made: Batch = {
        name: [sample[name] for _, sample in rows] for name in (rows[0][1] if rows else ()) if name not in RESERVED
    }
    made = {name: value for values in made.items() for name, value in _joined(*values, batch, _sizes(part)).items()}
    made["index"] = np.array([draw.number for draw, _ in rows], np.int64)
    if part.draws_again:
        made["draw"] = np.array([draw.key for draw, _ in rows], np.uint64)
    if len(part.sources) > 1:
        made["member"] = np.array([draw.member for draw, _ in rows], np.int64)
    if _has_passes(plan):
        made["epoch"] = np.array([draw.epoch for draw, _ in rows], np.int64)
    return made


def _sizes(part: Part) -> dict[str, Any]:
    """The fields whose size is part of the schema, with that size."""
    fields = [field for field in part.sources[0].schema.fields if field.kind in ("array", "labels") and field.shape]
    return {field.name: field.shape for field in fields}


def _joined(name: str, values: list[Any], batch: steps.Batch, sizes: dict[str, Any]) -> Batch:
    if isinstance(values[0], str):
        return {name: values}
    arrays = [np.asarray(value) for value in values]
    if batch.shapes == "fixed" or arrays[0].ndim == 0 or arrays[0].shape == sizes.get(name):
        return {name: np.stack(arrays)}
    if batch.shapes == "ragged":
        return {name: Ragged(arrays)}
    largest = [max(array.shape[axis] for array in arrays) for axis in range(arrays[0].ndim)]
    padded = []
    for array in arrays:
        missing = [(0, size - own) for size, own in zip(largest, array.shape, strict=True)]
        padded.append(np.pad(array, missing, constant_values=batch.fill))
    return {name: np.stack(padded), f"{name}_size": np.array([array.shape for array in arrays], np.int64)}


# Samples


def _made_or_other(flow: Flow, part: Part, draw: Drawn, epoch: int) -> tuple[Drawn, Sample]:
    """A sample; or, for one that cannot be made, the first of its substitutes that can."""
    try:
        return draw, made(part, draw)
    except Exception:
        if flow.options.on_bad_sample != "substitute":
            raise
    positions = 2**31 if part.is_endless else len(list(part.order(epoch)))
    for attempt in range(1, 101):
        bits = sample_bits(flow.plan.seed, SUBSTITUTE, np.array([draw.epoch]), np.array([draw.key], np.uint64), attempt)
        other = next(islice(part.order(epoch), int(bits[0]) % positions, None))
        try:
            return other, made(part, other)
        except Exception:  # noqa: BLE001 - the next substitute is tried
            continue
    raise AssertionError("all substitutes are bad")


# Comparing


def differences(found: Batch, expected: Batch) -> list[str]:
    """What differs between two batches, in words; nothing where every bit is the same."""
    if set(found) != set(expected):
        return [f"fields {sorted(found)} instead of {sorted(expected)}"]
    return [
        f"{name}: {_told(found[name])} instead of {_told(expected[name])}"
        for name in expected
        if not same(found[name], expected[name])
    ]


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, Ragged):
        pairs = isinstance(found, Ragged) and len(found) == len(expected)
        return pairs and all(same(one, other) for one, other in zip(found, expected, strict=True))
    if isinstance(expected, list):
        return list(found) == expected and type(found) is list
    return (
        isinstance(found, np.ndarray)
        and found.dtype == expected.dtype
        and found.shape == expected.shape
        and found.tobytes() == expected.tobytes()
    )


def _told(value: Any) -> str:
    return (
        f"{value.dtype}{list(value.shape)} {value.ravel()[:12]}…"
        if isinstance(value, np.ndarray)
        else repr(value)[:200]
    )
