"""What a plan must give, the plain way: one sample after the other, in one thread, without a queue.

Only three things are taken from Penstock, each with tests of its own: the keyed shuffle, the counter function that all
randomness follows from, and one step of an augmentation on one sample. An order is a function from the number of an
epoch to its draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, groupby, islice
from typing import Any, NamedTuple

import numpy as np

from penstock import augment
from penstock.augment.pixelwise import Normalize
from penstock.flow import steps
from penstock.flow.collating import Ragged
from penstock.flow.flow import Flow
from penstock.flow.mixing import integer_weights
from penstock.flow.permuting import permuted
from penstock.flow.plans import Plan
from penstock.samples import RESERVED, column_of
from penstock.seeds import mixed, sample_bits, sample_uniforms

SUBSTITUTE = 2**32 - 1  # the step number of substitutes, which no plan has
BLOCK = 4096  # samples of a block, in a source without shards

Sample = dict[str, Any]
Batch = dict[str, Any]


class Drawn(NamedTuple):
    """One position of an epoch: which sample of which source, and what its randomness follows from."""

    member: int
    number: int
    key: int
    epoch: int


Order = Callable[[int], Iterable[Drawn]]


@dataclass
class Part:
    """A plan up to batch: its order, and for each source the steps on its samples with seed and number."""

    order: Order
    sources: list[Any]
    chains: list[list[tuple[Any, int, int]]]
    is_endless: bool = False
    draws_again: bool = False  # whether a sample may come twice in one pass

    def length(self) -> int:
        return len(list(self.order(0)))


def batches(flow: Flow, epoch: int, rank: int = 0, world_size: int = 1, keep_all: bool = False) -> Iterator[Batch]:
    """The batches of an epoch that one rank must get."""
    plan = flow._plan
    part = part_of(plan)
    for passed, number, draws in _global_batches(plan, part, epoch, world_size, keep_all):
        size = len(draws)
        share = draws[rank * size // world_size : (rank + 1) * size // world_size]
        rows = [_made_or_other(flow, part, draw, passed) for draw in share]
        yield _batched_functions(plan, _collated(plan, part, rows), passed, number)


def order_of(flow: Flow, epoch: int) -> list[Drawn]:
    """What stands at each position of an epoch, before batches are cut."""
    return list(part_of(flow._plan).order(epoch))


def replaced(flow: Flow, epoch: int) -> list[tuple[int, int]]:
    """The bad samples of an epoch of one rank, each with the number of its substitute."""
    part = part_of(flow._plan)
    found = []
    for passed, _, draws in _global_batches(flow._plan, part, epoch, 1, False):
        for draw in draws:
            other, _ = _made_or_other(flow, part, draw, passed)
            if other != draw:
                found.append((draw.number, other.number))
    return found


# The order


def part_of(plan: Plan, first_member: int = 0) -> Part:
    """The steps before batch, one after the other."""
    part = _start(plan, first_member)
    for number, step in steps.numbered(plan.steps):
        if isinstance(step, steps.Batch):
            break
        _add(part, step, plan.seed, number, first_member)
    return part


def _numbered(plan: Plan) -> list[tuple[int, Any]]:
    """The steps with their numbers; those that only say how to run are left out, and change no number."""
    counted = [step for step in plan.steps if not isinstance(step, (steps.Cache, steps.Shard, steps.Prefetch))]
    return list(enumerate(counted))


def _start(plan: Plan, first_member: int) -> Part:
    if plan.mixture is None:
        return Part(_everything(len(plan.source), first_member), [plan.source], [[]])
    members: list[Part] = []
    for inner in plan.mixture.plans:
        members.append(part_of(inner, first_member + sum(len(one.sources) for one in members)))
    return _mixed(members, integer_weights(plan.mixture.weights, len(members)), plan.mixture.until)


def _add(part: Part, step: Any, seed: int, number: int, first_member: int) -> None:
    order, source = part.order, part.sources[0]
    match step:
        case steps.Shuffle(window=None):
            part.order = lambda epoch: _shuffled(list(order(epoch)), seed, number, epoch)
        case steps.Shuffle(window=window):
            part.order = lambda epoch: _window_shuffled(list(order(epoch)), source, window, seed, number, epoch)
        case steps.Where(conditions=conditions):
            part.order = lambda epoch: _chosen(list(order(epoch)), source, conditions)
        case steps.Filter(function=function):
            kept = {draw.number for draw in order(0) if function(_made(part, draw))}
            part.order = lambda epoch: [draw for draw in order(epoch) if draw.number in kept]
        case steps.Sample():
            part.order = lambda epoch: _drawn_again(list(order(epoch)), source, step, seed, number, epoch)
            part.draws_again = True
        case steps.Interleave():
            part.order = lambda epoch: _interleaved(list(order(epoch)), source, step)
        case steps.Clips():
            clips = PlainClips(source, step)
            part.sources, part.order = [clips], _everything(len(clips), first_member)
        case steps.Take(count=limit):
            part.order = lambda epoch: islice(order(epoch), limit)
            part.is_endless = False
        case steps.Skip(count=skipped):
            part.order = lambda epoch: islice(order(epoch), skipped, None)
        case steps.Repeat(times=times):
            part.order = lambda epoch: _repeated(order, times, epoch)
            part.is_endless = part.is_endless or times is None
        case steps.Map() | steps.Augment():
            part.chains = [[*chain, (step, seed, number)] for chain in part.chains]


def _everything(length: int, member: int) -> Order:
    return lambda epoch: [Drawn(member, index, index ^ (member << 48), epoch) for index in range(length)]


def _key(seed: int, step: int, epoch: int, number: int = 0, counter: int = 0) -> int:
    return int(sample_bits(seed, step, np.array([epoch]), np.array([number]), counter)[0])


def _moved(items: Sequence[Any], key: int) -> list[Any]:
    return [items[place] for place in permuted(np.arange(len(items)), len(items), key).tolist()]


def _shuffled(draws: list[Drawn], seed: int, step: int, epoch: int) -> list[Drawn]:
    return _moved(draws, _key(seed, step, epoch))


def _window_shuffled(draws: list[Drawn], source: Any, window: int, seed: int, step: int, epoch: int) -> list[Drawn]:
    """Blocks in random order, as many windows as it takes, nearly equally many blocks in each."""
    blocks = _moved(_blocks(draws, source), _key(seed, step, epoch))
    windows = -(-len(blocks) // window)
    found = []
    for number in range(windows):
        own = blocks[number * len(blocks) // windows : (number + 1) * len(blocks) // windows]
        found += _moved([draw for block in own for draw in block], _key(seed, step, epoch, number, counter=1))
    return found


def _blocks(draws: list[Drawn], source: Any) -> list[list[Drawn]]:
    shards = _shards(source)
    if shards is None:
        return [draws[start : start + BLOCK] for start in range(0, len(draws), BLOCK)]
    return [list(block) for _, block in groupby(draws, lambda draw: shards[draw.number])]


def _shards(source: Any) -> list[int] | None:
    """The shard of each sample; a clip is where its first frame is."""
    if isinstance(source, PlainClips):
        shards = _shards(source.source)
        return None if shards is None else [shards[frames[0]] for frames in source.frames]
    if hasattr(source, "indices"):
        shards = _shards(source.source)
        return None if shards is None else [shards[index] for index in source.indices]
    return source.shard_numbers(np.arange(len(source))).tolist() if hasattr(source, "shard_numbers") else None


def _chosen(draws: list[Drawn], source: Any, conditions: Any) -> list[Drawn]:
    for name, wanted in conditions:
        column = column_of(source, name)
        if callable(wanted):
            answers = wanted(np.array([column[draw.number] for draw in draws]))
            draws = [draw for draw, answer in zip(draws, answers, strict=True) if answer]
        else:
            options = wanted if isinstance(wanted, tuple) else (wanted,)
            named = [
                source.schema.classes.index(one) if name == "label" and isinstance(one, str) else one for one in options
            ]
            draws = [draw for draw in draws if column[draw.number] in named]
    return draws


def _drawn_again(
    draws: list[Drawn], source: Any, step: steps.Sample, seed: int, number: int, epoch: int
) -> list[Drawn]:
    """For each position one number in [0, 1): the first draw whose share of all weights, summed up, is above it."""
    weights = _weights(draws, source, step.weights)
    sums = np.cumsum(weights)
    found = []
    for position in range(len(draws) if step.count is None else step.count):
        uniform = sample_uniforms(seed, number, np.array([epoch]), np.array([position]), 1)[0, 0]
        draw = next(draw for draw, total in zip(draws, sums, strict=True) if total / sums[-1] > uniform)
        key = mixed(mixed(np.array([position], np.uint64)) ^ np.uint64(draw.key))
        found.append(draw._replace(key=int(key[0])))
    return found


def _weights(draws: list[Drawn], source: Any, weights: Any) -> list[float]:
    if isinstance(weights, str) and weights != "balanced":
        return [float(column_of(source, weights)[draw.number]) for draw in draws]
    if not isinstance(weights, (str, dict)):
        return [float(weight) for weight in weights]
    labels = [int(column_of(source, "label")[draw.number]) for draw in draws]
    if isinstance(weights, dict):
        names = source.schema.classes
        return [float(weights.get(label, weights.get(names[label], 0.0))) for label in labels]
    return [1 / labels.count(label) for label in labels]


def _interleaved(draws: list[Drawn], source: Any, step: steps.Interleave) -> list[Drawn]:
    """Some files are open and give a block each in turn; one that gave less than a block is closed."""
    column = column_of(source, step.by)
    files = [iter(list(file)) for _, file in groupby(draws, lambda draw: column[draw.number])]
    places: list[Iterator[Drawn] | None] = [None] * step.cycle_length
    found: list[Drawn] = []
    while files or any(place is not None for place in places):
        for number in range(step.cycle_length):
            if places[number] is None and files:
                places[number] = files.pop(0)
            block = list(islice(places[number] or iter(()), step.block_length))
            found += block
            if len(block) < step.block_length:
                places[number] = None
    return found


def _repeated(order: Order, times: int | None, epoch: int) -> Iterator[Drawn]:
    for number in count() if times is None else range(times):
        yield from order(epoch * (times or 1) + number)


def _mixed(members: list[Part], shares: Sequence[int], until: str) -> Part:
    lengths = [None if member.is_endless else member.length() for member in members]
    taken = _schedule(shares, lengths, until)
    totals = [taken.count(number) for number in range(len(members))]

    def order(epoch: int) -> Iterator[Drawn]:
        streams = [
            _member_stream(member, length, total, epoch)
            for member, length, total in zip(members, lengths, totals, strict=True)
        ]
        return (next(streams[number]) for number in taken)

    sources = [source for member in members for source in member.sources]
    chains = [chain for member in members for chain in member.chains]
    again = until == "all" or any(member.draws_again for member in members)
    return Part(order, sources, chains, draws_again=again)


def _schedule(shares: Sequence[int], lengths: Sequence[int | None], until: str) -> list[int]:
    """Which member stands at each position of a mix."""
    found: list[int] = []
    for position in count():
        member = _member_at(position, shares)
        full = [
            number
            for number, (share, length) in enumerate(zip(shares, lengths, strict=True))
            if share and length is not None and found.count(number) >= length
        ]
        finite = [number for number, share in enumerate(shares) if share and lengths[number] is not None]
        if (member in full) if until == "first" else len(full) == len(finite):
            return found
        found.append(member)
    raise AssertionError("count() has no end")


def _member_at(position: int, shares: Sequence[int]) -> int:
    """The first member stands where its share of the positions grows by one; the rest is shared in the same way."""
    left = sum(shares)
    for member, share in enumerate(shares):
        before = position * share // left
        if (position + 1) * share // left > before:
            return member
        position, left = position - before, left - share
    raise AssertionError("some member stands at every position")


def _member_stream(member: Part, length: int | None, total: int, epoch: int) -> Iterator[Drawn]:
    """What a member gives in an epoch of a mix: passes of its own that no other epoch has."""
    if length is None:
        yield from islice(member.order(0), epoch * total, None)
        return
    passes = max(1, -(-total // length)) if length else 1
    for number in range(passes):
        yield from member.order(epoch * passes + number)


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
            return lambda epoch: _repeated(stream, times, epoch)
    return stream


def _batched_functions(plan: Plan, batch: Batch, epoch: int, number: int) -> Batch:
    for place, step in steps.numbered(plan.steps):
        if isinstance(step, steps.Map) and step.batched:
            bits = sample_bits(plan.seed, place, np.array([epoch]), np.array([number]))
            batch = step.function(batch, **_generator(step, int(bits[0])))
    return batch


def _collated(plan: Plan, part: Part, rows: list[tuple[Drawn, Sample]]) -> Batch:
    batch = next(step for step in plan.steps if isinstance(step, steps.Batch))
    made: Batch = {
        name: [sample[name] for _, sample in rows] for name in (rows[0][1] if rows else ()) if name not in RESERVED
    }
    made = {name: value for values in made.items() for name, value in _joined(*values, batch).items()}
    made["index"] = np.array([draw.number for draw, _ in rows], np.int64)
    if part.draws_again:
        made["draw"] = np.array([draw.key for draw, _ in rows], np.uint64)
    if len(part.sources) > 1:
        made["member"] = np.array([draw.member for draw, _ in rows], np.int64)
    return made


def _joined(name: str, values: list[Any], batch: steps.Batch) -> Batch:
    if isinstance(values[0], str):
        return {name: values}
    arrays = [np.asarray(value) for value in values]
    if batch.shapes == "fixed" or arrays[0].ndim == 0:
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
        return draw, _made(part, draw)
    except Exception:
        if flow._options.on_bad_sample != "substitute":
            raise
    positions = 2**31 if part.is_endless else len(list(part.order(epoch)))
    for attempt in range(1, 101):
        bits = sample_bits(
            flow._plan.seed, SUBSTITUTE, np.array([draw.epoch]), np.array([draw.key], np.uint64), attempt
        )
        other = next(islice(part.order(epoch), int(bits[0]) % positions, None))
        try:
            return other, _made(part, other)
        except Exception:  # noqa: BLE001 - the next substitute is tried
            continue
    raise AssertionError("all substitutes are bad")


def _made(part: Part, draw: Drawn) -> Sample:
    source = part.sources[draw.member - _first_member(part, draw)]
    sample = source.decode(source.read(draw.number))
    for step, seed, number in part.chains[draw.member - _first_member(part, draw)]:
        sample = (
            _augmented(step, sample, source, seed, number, draw)
            if isinstance(step, steps.Augment)
            else _called(step, sample, seed, number, draw)
        )
    return sample


def _first_member(part: Part, draw: Drawn) -> int:
    """Members of a plan inside a mix are numbered on; a filter there sees its own source alone."""
    return draw.member if len(part.sources) == 1 else 0


def _augmented(step: steps.Augment, sample: Sample, source: Any, seed: int, number: int, draw: Drawn) -> Sample:
    own = step.step.resolved(source) if isinstance(step.step, Normalize) else step.step
    uniforms = sample_uniforms(seed, number, np.array([draw.epoch]), np.array([draw.key], np.uint64), own.uniform_count)
    return augment.apply(own, sample, _Given(uniforms), schema=source.schema)  # type: ignore[arg-type]


class _Given:
    """Stands where a generator does, and gives numbers that are known already."""

    def __init__(self, uniforms: Any) -> None:
        self._uniforms = uniforms

    def random(self, shape: tuple[int, ...]) -> Any:
        assert self._uniforms.shape == shape
        return self._uniforms


def _called(step: steps.Map, sample: Sample, seed: int, number: int, draw: Drawn) -> Sample:
    bits = sample_bits(seed, number, np.array([draw.epoch]), np.array([draw.key], np.uint64))
    more = _generator(step, int(bits[0]))
    if step.field is not None:
        return {**sample, step.field: step.function(sample[step.field], **more)}
    return step.function(dict(sample), **more)


def _generator(step: steps.Map, bits: int) -> dict[str, Any]:
    return {"rng": np.random.Generator(np.random.Philox(key=bits))} if step.is_random else {}


class PlainClips:
    """Runs of frames of one video as samples."""

    def __init__(self, source: Any, step: steps.Clips) -> None:
        self.source, self.step, self.schema = source, step, source.schema
        whole = (step.frames - 1) * step.stride
        before = {"first": 0, "all": 0, "middle": step.frames // 2 * step.stride, "last": whole}[step.label]
        self.anchors: list[int] = []
        self.frames: list[list[int]] = []
        for video in self._videos():
            last = video[-1] - whole + before
            anchors = [frame for frame in video if step.edge == "repeat" or video[0] + before <= frame <= last]
            for anchor in anchors[:: step.step]:
                wanted = [anchor - before + number * step.stride for number in range(step.frames)]
                self.anchors.append(anchor)
                self.frames.append([min(max(frame, video[0]), video[-1]) for frame in wanted])

    def _videos(self) -> list[list[int]]:
        column = column_of(self.source, "group")
        return [list(video) for _, video in groupby(range(len(self.source)), lambda frame: column[frame])]

    def column(self, name: str) -> Any:
        return column_of(self.source, name)[self.anchors]

    def __len__(self) -> int:
        return len(self.anchors)

    def read(self, index: int) -> int:
        return index

    def decode(self, index: int) -> Sample:
        samples = [self.source.decode(self.source.read(frame)) for frame in self.frames[index]]
        sample = self.source.decode(self.source.read(self.anchors[index]))
        if self.step.label == "all":
            for field in self.schema.fields:
                if field.kind in ("labels", "class", "number"):
                    sample[field.name] = np.stack([np.asarray(one[field.name]) for one in samples])
        return {**sample, self.schema.image.name: np.stack([one[self.schema.image.name] for one in samples])}


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
