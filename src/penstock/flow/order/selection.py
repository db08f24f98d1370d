"""Which samples, by what is stored of them: conditions, weights, runs of one file, blocks on the disk."""

from __future__ import annotations

import contextlib
import heapq
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError, nearest
from penstock.flow.order.orders import Everything, Numbers, Order, Picked, Sliced
from penstock.flow.order.sampling import Mixed, balanced_weights
from penstock.samples import Store
from penstock.wording import counted

BLOCK_SAMPLES = 4096  # blocks of a source that has no shards
RUN_COLUMNS = ("file", "group")


def stored(source: Store, name: str) -> NDArray[Any]:
    """A stored column, or an error that says what a source needs for it."""
    try:
        return source.column(name)
    except KeyError as error:
        raise OptionError(f"there is no stored column {name!r}: {error.args[0]} Use filter with a function.") from error


def chosen(source: Store, indices: Numbers, conditions: tuple[tuple[str, Any], ...]) -> NDArray[np.bool_]:
    """Which of these samples meet every condition."""
    keep = np.ones(len(indices), np.bool_)
    for name, wanted in conditions:
        keep &= _meets(stored(source, name)[indices], name, wanted, source)
    return keep


def _meets(values: NDArray[Any], name: str, wanted: Any, source: Store) -> NDArray[np.bool_]:
    if callable(wanted):
        answer = np.asarray(wanted(values))
        if answer.shape != values.shape[:1] or answer.dtype != np.bool_:
            raise OptionError(
                f"where({name}=function): it gets the whole column ({counted(len(values), 'value')}) and "
                f"must give as many "
                f"True or False; it gave {answer.dtype} of shape {answer.shape}."
            )
        return answer
    options = [_number(name, one, source) for one in (wanted if isinstance(wanted, tuple) else (wanted,))]
    return np.isin(values, options)


def _number(name: str, value: Any, source: Store) -> Any:
    """The number of a class that is called by its name."""
    label = source.schema.label
    if label is None or name != label.name or not isinstance(value, str):
        return value
    classes = source.schema.classes
    if value not in classes:
        raise OptionError(f"there is no class {value!r}; there are {', '.join(classes)}.{nearest(value, classes)}")
    return classes.index(value)


def weights_of(source: Store, indices: Numbers, weights: Any) -> NDArray[np.float64]:
    """The weight of each of these samples: "balanced", by class, a stored column, or a number for each."""
    if isinstance(weights, str) and weights == "balanced":
        return balanced_weights(_labels(source)[indices])
    if isinstance(weights, dict):
        labels = _labels(source)[indices]
        by_number = {_number(_label_name(source), name, source): weight for name, weight in weights.items()}
        return np.array([by_number.get(label, 0.0) for label in labels.tolist()], np.float64)
    if isinstance(weights, str):
        return np.asarray(stored(source, weights)[indices], np.float64)
    return np.asarray(weights, np.float64)


def _label_name(source: Store) -> str:
    label = source.schema.label
    if label is None:
        raise OptionError("sample by class needs a source whose samples have a class. Give a weight for each sample.")
    return label.name


def _labels(source: Store) -> NDArray[Any]:
    return stored(source, _label_name(source))


def runs_to_interleave(source: Store, indices: Numbers, by: str) -> tuple[Numbers, Numbers]:
    """The runs of samples that take turns; an error if they could not: one run alone, or one sample in each.

    One run of a column that the user named is no mistake: a split or a subset may have one group.
    """
    fewest = 2 if by == "auto" else 1
    found = {name: runs(values) for name, values in _run_columns(source, indices, by).items()}
    for starts, lengths in found.values():
        if len(indices) < 2 or fewest <= len(starts) < len(indices):
            return starts, lengths
    words = " and ".join(f"one {name}" if len(starts) == 1 else f"a {name} each" for name, (starts, _) in found.items())
    raise OptionError(
        f"interleave({'' if by == 'auto' else f'by={by!r}'}) would change nothing: these "
        f"{counted(len(indices), 'sample')} have "
        f"{words or 'neither files, groups nor shards'}. Use shuffle() for another order, or "
        "name a stored column whose equal values lie together: interleave(by=…)."
    )


def _run_columns(source: Store, indices: Numbers, by: str) -> dict[str, NDArray[Any]]:
    """What samples can be told apart by: files, groups and shards where there are any, or the column that is asked."""
    if by not in ("auto", "shard"):
        return {by: stored(source, by)[indices]}
    found = {}
    for name in RUN_COLUMNS if by == "auto" else ():
        with contextlib.suppress(KeyError):
            found[name] = source.column(name)[indices]
    base, numbers, frames = source.images_at(indices)
    shards = base.shard_numbers(numbers[::frames])
    if shards is not None:
        found["shard"] = shards
    elif by == "shard":
        raise OptionError(f"interleave(by='shard'): {base.kind.__name__} has no shards; packs have them.")
    return found


def runs(values: NDArray[Any]) -> tuple[Numbers, Numbers]:
    """Where each run of one value (a file, a group) begins, and how long it is."""
    starts = np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1]).astype(np.int64)
    starts = starts[: len(values)]
    return starts, np.diff(np.append(starts, len(values))).astype(np.int64)


def block_starts(source: Store, indices: Numbers) -> Numbers:
    """Where the samples of each shard begin among these, so that a window reads whole shards."""
    base, numbers, frames = source.images_at(indices)
    of_sample = base.shard_numbers(numbers[::frames])
    if of_sample is None:
        return np.arange(0, max(len(indices), 1), BLOCK_SAMPLES, dtype=np.int64)
    changes = np.flatnonzero(of_sample[1:] != of_sample[:-1]) + 1
    return np.concatenate([[0], changes]).astype(np.int64)


# The order in which tf.data's `interleave` reads files: a few are open, and give a block each in turn.


def interleaved(starts: Numbers, lengths: Numbers, *, cycle_length: int, block_length: int = 1) -> Numbers:
    """Every sample of every file once, as tf.data's interleave orders them; a file has its samples from its start on.

    `cycle_length` files are open at once and give `block_length` samples each in turn. A file that ends leaves its
    turn, and at the next turn of its place the next file is opened there.
    """
    for name, value in (("cycle_length", cycle_length), ("block_length", block_length)):
        if value < 1:
            raise OptionError(f"interleave({name}={value}): expected 1 or more.")
    files = np.repeat(np.arange(len(lengths)), lengths)
    inside = np.arange(len(files)) - (np.cumsum(lengths) - lengths)[files]
    # A file that ends with a full block is found to be at its end one turn later, and that turn is lost.
    rounds, places = _openings(lengths // block_length + 1, cycle_length)
    turns = (rounds[files] + inside // block_length) * cycle_length + places[files]
    order = np.argsort(turns, kind="stable")
    return (starts[files] + inside)[order].astype(np.int64)


def _openings(turns: Numbers, cycle_length: int) -> tuple[Numbers, Numbers]:
    """In which round and at which place each file is opened, when it stays for so many turns."""
    free = [(0, place) for place in range(cycle_length)]
    opened = np.empty((len(turns), 2), np.int64)
    for file, stay in enumerate(turns.tolist()):
        opened[file] = free[0]
        heapq.heapreplace(free, (free[0][0] + stay, free[0][1]))
    return opened[:, 0], opened[:, 1]


# Which samples of each source an order may ever ask for, so that a cache on disk holds these and no others.


def reachable(order: Order) -> dict[int, Numbers]:
    """For each member, the numbers of the samples that some epoch may show, ascending."""
    found: dict[int, list[Numbers]] = {}
    for part in _fixed_parts(order):
        length = part.length or 0
        draws = part.draws(np.zeros(length, np.int64), np.arange(length, dtype=np.int64))
        if length:
            found.setdefault(int(draws.member[0]), []).append(draws.index)
    return {member: np.unique(np.concatenate(indices)) for member, indices in found.items()}


def _fixed_parts(order: Order) -> Iterator[Order]:
    """The orders below chance and repetition: those that show the same samples in every epoch."""
    if _is_fixed(order):
        yield order
    elif isinstance(order, Mixed):
        for part in order.orders:
            yield from _fixed_parts(part)
    else:
        yield from _fixed_parts(order.inner)  # type: ignore[attr-defined]


def _is_fixed(order: Order) -> bool:
    return isinstance(order, Everything) or (isinstance(order, (Picked, Sliced)) and _is_fixed(order.inner))
