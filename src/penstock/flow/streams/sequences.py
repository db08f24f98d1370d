"""Keras-style sequences as sources: `__len__`, `__getitem__(i)` and perhaps `on_epoch_end`; an item is a batch.

    items are batches     the batches of the flow are the items, whole, in the flow's order
    unbatch=True          the samples inside the items, dealt anew by the flow
    items are samples     as in a Dataset of torch: the flow deals them like those of any source

Items are asked for by number, so order, shuffle, ranks, resume and all executors work as with any source. A sequence
that changes itself in `on_epoch_end` changes what a number stands for: then only the present epoch can be resumed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from penstock.errors import HopError, OptionError, one_of
from penstock.flow.steps import Batch, Cache, Map, Prefetch, Repeat, Shard, Shuffle, Skip, Step, Take, check_next
from penstock.flow.streams.items import Item, check_item, item_size, named_item, named_parts, row_of
from penstock.flow.streams.streams import guessed_schema
from penstock.flow.user_errors import reason_in_function
from penstock.samples import Raw, Sample, Schema, Store
from penstock.wording import counted

if TYPE_CHECKING:
    from penstock.flow.plans import Plan

KEPT_ITEMS = 4  # of each thread, for samples that follow one another
Unbatch = bool | Literal["measured"]
Items = Literal["batches", "samples"]


def from_sequence(
    sequence: Any, *, items: Items = "batches", unbatch: Unbatch = False, names: Sequence[str] | None = None
) -> SequenceItems | SequenceSamples | DatasetSamples:
    """A source for `Flow` from an object with `len` and `[i]` whose items are batches, as Keras has them.

    The flow's batches are the items, so it needs no `.batch()`; `.map(function, batched=True)` works on them, and
    `index` is the number of the item. With `unbatch=True` the flow sees the samples inside and deals them anew; items
    must then have one size but for the last, unless `unbatch="measured"` reads each of them once to see. Items that
    are dicts keep their names; tuples are named `names`, by default x, y, weight. `on_epoch_end` is called when an
    epoch was delivered. With `items="samples"` an item is one sample, as in a map-style Dataset of torch.
    """
    if not hasattr(sequence, "__getitem__") or not hasattr(sequence, "__len__"):
        raise OptionError(
            f"from_sequence takes an object with len and [i], not {type(sequence).__name__}. Use from_generator "
            "for what can only be gone through in order."
        )
    if unbatch not in (True, False, "measured"):
        raise OptionError(f'unbatch={unbatch!r} must be True, False or "measured".')
    if isinstance(names, str):
        raise OptionError(f'names={names!r} must be several names, such as ("x", "y").')
    named = None if names is None else tuple(names)
    if one_of("items", items, get_args(Items)) == "samples":
        if unbatch:
            raise OptionError('items="samples" are samples already: leave unbatch out.')
        return DatasetSamples(sequence, named)
    return SequenceSamples(sequence, named, unbatch == "measured") if unbatch else SequenceItems(sequence, named)


class _Counted:
    """An object with `len` and `[i]` of the user, held to the length that it had when it was first asked."""

    def __init__(self, sequence: Any) -> None:
        self.sequence = sequence
        self._count: int | None = None

    def __len__(self) -> int:
        if self._count is None:
            self._count = _length(self.sequence)
        return self._count

    def __getitem__(self, number: int) -> Any:
        """An item; what it raises is told with its number, and a length that changed is an error."""
        count = _length(self.sequence)
        if count != len(self):
            raise OptionError(
                f"{type(self.sequence).__name__} had {len(self):,} items when this flow began, and has {count:,} now. "
                "The order of an epoch rests on their number: make a new flow when it changes."
            )
        try:
            return self.sequence[number]
        except Exception as error:
            where = f"item {number} of {type(self.sequence).__name__}"
            raise HopError("read", where, reason_in_function(error)) from error

    def on_epoch_end(self) -> bool:
        """Tell the user's object, if it wants to know; whether it may have changed."""
        on_epoch_end = getattr(self.sequence, "on_epoch_end", None)
        if on_epoch_end is not None:
            on_epoch_end()
        return on_epoch_end is not None


def _because(error: Exception) -> str:
    return f" ({error})" if str(error) else ""


def _length(sequence: Any) -> int:
    try:
        return len(sequence)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise OptionError(
            f"{type(sequence).__name__} has no length{_because(error)}, so its items have no order to shuffle or to "
            "resume in. Use penstock.from_generator(lambda: …) for it."
        ) from error


class SequenceItems(Store):
    """The items of a sequence; a sample of this source is a whole batch."""

    def __init__(self, sequence: Any, names: tuple[str, ...] | None) -> None:
        self.sequence, self._names = _Counted(sequence), names
        self._schema = Schema(())

    @property
    def gives_batches(self) -> bool:
        return True

    def __len__(self) -> int:
        return len(self.sequence)

    def read(self, index: int) -> Raw:
        return Raw(index, self.sequence[index])

    def decode(self, raw: Raw) -> Sample:
        return {"item": check_item(named_item(raw.data, self._names, raw.index), raw.index)}

    def on_epoch_end(self) -> bool:
        return self.sequence.on_epoch_end()


class DatasetSamples(Store):
    """An object whose items are samples, as a map-style Dataset of torch has them."""

    def __init__(self, sequence: Any, names: tuple[str, ...] | None) -> None:
        self.sequence, self._names = _Counted(sequence), names

    @property
    def schema(self) -> Schema:
        return self._guessed_schema

    @cached_property
    def _guessed_schema(self) -> Schema:
        """The fields that augmentations know, by what they look like in the first sample."""
        return guessed_schema(self.decode(self.read(0))) if len(self) else Schema(())

    def __len__(self) -> int:
        return len(self.sequence)

    def read(self, index: int) -> Raw:
        return Raw(index, self.sequence[index])

    def decode(self, raw: Raw) -> Sample:
        parts = named_parts(raw.data, self._names, f"sample {raw.index}")
        if not parts:
            remedy = "A sample is an array, a tuple or a dict."
            raise HopError("decode", f"sample {raw.index}", "there is nothing in it", remedy)
        return {name: _plain(value) for name, value in parts.items()}

    def on_epoch_end(self) -> bool:
        return self.sequence.on_epoch_end()


def _plain(value: Any) -> Any:
    """Images of Pillow and tensors as arrays; numbers and texts as they are. A copy: a step may change it in place."""
    return value if isinstance(value, (str, bytes, int, float)) else np.asarray(value).copy()


class SequenceSamples(Store):
    """The samples inside the items of a sequence."""

    def __init__(self, sequence: Any, names: tuple[str, ...] | None, measures: bool) -> None:
        self.sequence, self._names, self._measures = _Counted(sequence), names, measures
        self._generation = 0
        self._kept = threading.local()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_kept"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _kept=threading.local())

    @property
    def schema(self) -> Schema:
        return self._guessed_schema

    @cached_property
    def _guessed_schema(self) -> Schema:
        """The fields that augmentations know, by what they look like in the first sample."""
        return guessed_schema(self.decode(self.read(0))) if len(self) else Schema(())

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where the samples of each item begin, and the end."""
        sizes: NDArray[np.int64] = np.concatenate([[0], np.cumsum(self._sizes())]).astype(np.int64)
        return sizes

    def _sizes(self) -> NDArray[np.int64]:
        count = len(self.sequence)
        if count < 3 or self._measures:
            return self._measured(range(count))
        first, second, last = self._measured([0, 1, count - 1])
        if first != second or last > first:
            return self._measured(range(count))
        sizes = np.full(count, first, np.int64)
        sizes[-1] = last
        return sizes

    def _measured(self, numbers: Iterable[int]) -> NDArray[np.int64]:
        return np.array([item_size(self._named(number), number) for number in numbers], np.int64)

    def _named(self, number: int) -> Item:
        return named_item(self.sequence[number], self._names, number)

    def __len__(self) -> int:
        return int(self.starts[-1])

    def shard_numbers(self, indices: NDArray[np.int64]) -> NDArray[Any]:
        """The item of each of these samples: `shuffle(window=n)` mixes n items at a time."""
        numbers: NDArray[Any] = np.searchsorted(self.starts, indices, side="right") - 1
        return numbers

    def read(self, index: int) -> Raw:
        number = int(np.searchsorted(self.starts, index, side="right")) - 1
        return Raw(index, (self._item(number), index - int(self.starts[number])))

    def _item(self, number: int) -> Item:
        """An item; the last ones of this thread are kept."""
        kept: OrderedDict[tuple[int, int], Item] = self._kept.__dict__.setdefault("items", OrderedDict())
        key = (self._generation, number)
        if key not in kept:
            item = self._named(number)
            self._check_size(item, number)
            kept[key] = item
            while len(kept) > KEPT_ITEMS:
                kept.popitem(last=False)
        kept.move_to_end(key)
        return kept[key]

    def _check_size(self, item: Item, number: int) -> None:
        size, expected = item_size(item, number), int(self.starts[number + 1] - self.starts[number])
        if size != expected:
            raise OptionError(
                f"item {number} has {counted(size, 'sample')}, and {expected} were expected from the "
                f"items at the ends. "
                'Say from_sequence(…, unbatch="measured"), which reads every item once to see how many it has.'
            )

    def decode(self, raw: Raw) -> Sample:
        item, place = raw.data
        return row_of(item, place)

    def on_epoch_end(self) -> bool:
        self._generation += 1  # an item may be another one now
        return self.sequence.on_epoch_end()


def tell_epoch_end(sources: Iterable[Store]) -> bool:
    """An epoch was delivered: sequences below these sources are told, each once; whether any may have changed."""
    found: dict[int, SequenceItems | SequenceSamples | DatasetSamples] = {}
    waiting = list(sources)
    while waiting:
        source = waiting.pop(0)
        if isinstance(source, (SequenceItems, SequenceSamples, DatasetSamples)):
            found[id(source.sequence.sequence)] = source
        waiting += source.below
    changed = [one.on_epoch_end() for one in found.values()]  # all of them are told
    return any(changed)


# A plan whose source gives batches


def gives_batches(source: Store | None) -> bool:
    return source is not None and source.gives_batches


_ON_ITEMS = (Shuffle, Take, Skip, Repeat, Cache, Shard, Prefetch)


def check_on_items(before: Sequence[Step], step: Step) -> None:
    """Whether a step works on items, which are batches already."""
    if isinstance(step, Map) and step.batched:
        return
    if isinstance(step, Batch):
        raise OptionError(
            "the items of this sequence are batches already: leave batch out, or use from_sequence(…, unbatch=True)."
        )
    if not isinstance(step, _ON_ITEMS):
        raise OptionError(
            f"{step.name} works on samples, and the items of this sequence are batches: use "
            "map(function, batched=True), or from_sequence(…, unbatch=True)."
        )
    if isinstance(step, Shard) and step.keep_all:
        raise OptionError("keep_all deals single samples: use from_sequence(…, unbatch=True) for it.")
    check_next(before, step)


def plan_of_items(plan: Plan) -> Plan:
    """The same plan in the words of the engine: batches of one item for each rank, taken out of their wrapping."""
    ranks = next((step.world_size for step in plan.steps if isinstance(step, Shard)), 1)
    functions = [step for step in plan.steps if isinstance(step, Map)]
    others = [step for step in plan.steps if not isinstance(step, Map)]
    steps = (*others, Batch(ranks, "fixed", 0, False), TAKEN_OUT, *functions)
    return replace(plan, steps=steps)


def item_of_sequence(batch: dict[str, Any]) -> dict[str, Any]:
    """The item that a batch of one consists of."""
    return {**batch["item"][0], "index": int(batch["index"][0])}


TAKEN_OUT = Map(item_of_sequence, batched=True)
