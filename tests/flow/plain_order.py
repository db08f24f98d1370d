"""The order of a plan, the plain way: lists of what stands at each position of an epoch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, groupby, islice
from typing import Any

import numpy as np
from tests.flow.plain_samples import Drawn, Order, Part, Sample, made, numbered

from penstock.flow import steps
from penstock.flow.order.orders import permuted
from penstock.flow.order.sampling import integer_weights
from penstock.flow.plans import Plan
from penstock.seeds import mixed, sample_bits, sample_uniforms

BLOCK = 4096  # samples of a block, in a source without shards


def part_of(plan: Plan, first_member: int = 0) -> Part:
    """The steps before batch, one after the other."""
    part = _start(plan, first_member)
    for number, step in numbered(plan):
        if isinstance(step, steps.Batch):
            break
        _add(part, step, plan.seed, number, first_member)
    return part


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
            kept = {draw.number for draw in order(0) if function(made(part, draw))}
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
            part.order = lambda epoch: repeated(order, times, epoch)
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
    shards = source.shard_numbers(np.arange(len(source)))
    return None if shards is None else shards.tolist()


def _chosen(draws: list[Drawn], source: Any, conditions: Any) -> list[Drawn]:
    for name, wanted in conditions:
        column = source.column(name)
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
        return [float(source.column(weights)[draw.number]) for draw in draws]
    if not isinstance(weights, (str, dict)):
        return [float(weight) for weight in weights]
    labels = [int(source.column("label")[draw.number]) for draw in draws]
    if isinstance(weights, dict):
        names = source.schema.classes
        return [float(weights.get(label, weights.get(names[label], 0.0))) for label in labels]
    return [1 / labels.count(label) for label in labels]


def _interleaved(draws: list[Drawn], source: Any, step: steps.Interleave) -> list[Drawn]:
    """Some files are open and give a block each in turn; one that gave less than a block is closed."""
    column = source.column(step.by)
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


def repeated(order: Order, times: int | None, epoch: int) -> Iterator[Drawn]:
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
        column = self.source.column("group")
        return [list(video) for _, video in groupby(range(len(self.source)), lambda frame: column[frame])]

    def column(self, name: str) -> Any:
        return self.source.column(name)[self.anchors]

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
