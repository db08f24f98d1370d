"""Streams: samples that come in order and cannot be asked for by number. `from_generator` makes one.

A stream has `schema` (None: told by its first sample), `length` (None: not known), `parts` (how many run side by side)
and `open(part, epoch)`, which begins one of them anew.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from penstock.augment.applying import guessed_kinds
from penstock.errors import HopError, OptionError
from penstock.flow.making.chains import function_name
from penstock.flow.state import described_function, digest
from penstock.flow.streams.items import item_size, named_item, row_of
from penstock.flow.user_errors import reason_in_function
from penstock.samples import Field, Sample, Schema

Generate = Callable[..., Iterable[Any]]


@runtime_checkable
class Stream(Protocol):
    """Anything that samples come out of in order."""

    @property
    def schema(self) -> Schema | None: ...
    @property
    def length(self) -> float | None:
        """Samples of all parts together in one pass, where that is known; infinity for a stream without end."""
        ...

    @property
    def parts(self) -> int: ...
    def open(self, part: int, epoch: int) -> Iterator[Sample]:
        """Begin a part anew; the iterator is closed when it is left."""
        ...

    def fingerprint(self) -> str: ...


def from_generator(
    functions: Generate | Sequence[Generate],
    schema: Schema | None = None,
    *,
    names: Sequence[str] | None = None,
    length: float | None = None,
    unbatch: bool = False,
) -> GeneratorStream:
    """A stream for `Flow` from a function that gives an iterable of samples, or from several that are read in turn.

    A function is called once for each pass; one that has a parameter gets the number of the epoch. It runs in one
    place, whatever the workers are, so that no sample comes twice. A sample is a dict, a tuple with `names`, or an
    array (then it is called "image"). With `unbatch` the function gives batches, as Keras has them, (x, y) or dicts,
    and the flow deals the samples inside anew. `length` is the number of samples of one pass, where it is known, and
    `math.inf` for one that never ends: `take(n)` then gives epochs of a known length. What a stream cannot do (where,
    sample, clips, exact resume) is said when it is asked for; `penstock.pack` turns a source with random access into
    one that can.
    """
    several = tuple(functions) if isinstance(functions, Sequence) else (functions,)
    if not several:
        raise OptionError("from_generator needs a function that gives samples.")
    for function in several:
        _check_function(function)
    if length is not None and length != math.inf and not _is_whole(length):
        raise OptionError(f"from_generator(length={length!r}) must be a whole number from 0, or math.inf.")
    if isinstance(names, str):
        raise OptionError(f'names={names!r} must be several names, such as ("image", "label").')
    return GeneratorStream(several, schema, None if names is None else tuple(names), length, unbatch)


def _is_whole(length: Any) -> bool:
    return isinstance(length, int) and not isinstance(length, bool) and length >= 0


def _check_function(function: Any) -> None:
    if isinstance(function, Iterator):
        raise OptionError(
            f"from_generator takes the function, not the {type(function).__name__} that it gave: every epoch begins "
            "anew. Leave the parentheses out, or write from_generator(lambda: …)."
        )
    if not callable(function):
        raise OptionError(
            f"from_generator takes a function that gives samples, not {type(function).__name__}. "
            "For an iterable write from_generator(lambda: iterable)."
        )


class GeneratorStream:
    """Functions of the user as a stream."""

    def __init__(
        self,
        functions: tuple[Generate, ...],
        schema: Schema | None,
        names: tuple[str, ...] | None,
        length: float | None,
        unbatch: bool,
    ) -> None:
        self.functions, self.schema, self.names, self.length = functions, schema, names, length
        self._unbatches = unbatch

    @property
    def parts(self) -> int:
        return len(self.functions)

    def open(self, part: int, epoch: int) -> Iterator[Sample]:
        """The samples of one function; what it raises is told with its name and the number of the sample."""
        function = self.functions[part]
        where = f"stream {part} ({function_name(function)})"
        number = 0
        values: Any = None
        try:
            values = iter(function(epoch) if _takes_epoch(function) else function())
            for value in values:
                yield from self._samples(value, where, number)
                number += 1
        except (HopError, OptionError):
            raise
        except Exception as error:
            what = "batch" if self._unbatches else "sample"
            raise HopError("read", f"{where} {what} {number}", reason_in_function(error)) from error
        finally:
            close = getattr(values, "close", None)
            if close is not None:
                close()

    def _samples(self, value: Any, where: str, number: int) -> Iterator[Sample]:
        """The samples of what a function gave: itself, or the rows of a batch."""
        if not self._unbatches:
            yield self._sample(value, f"{where} sample {number}")
            return
        item = named_item(value, self.names, number)
        for row in range(item_size(item, number)):
            yield row_of(item, row)

    def _sample(self, value: Any, where: str) -> Sample:
        if isinstance(value, dict):
            return dict(value)
        if isinstance(value, np.ndarray):
            return {"image" if self.names is None else self.names[0]: value}
        if not isinstance(value, (tuple, list)):
            raise OptionError(
                f"{where} is {type(value).__name__}; a sample is a dict, an array, or a tuple with names=(…)."
            )
        if self.names is None or len(self.names) != len(value):
            given = "no names" if self.names is None else f"names={self.names}"
            raise OptionError(
                f"{where} is a tuple of {len(value)}, and there are {given}. "
                'Say what they are: from_generator(…, names=("image", "label")).'
            )
        return dict(zip(self.names, value, strict=True))

    def fingerprint(self) -> str:
        return digest(
            [
                [described_function(one) for one in self.functions],
                self.names,
                self.length,
                repr(self.schema),
                self._unbatches,
            ]
        )


def _takes_epoch(function: Generate) -> bool:
    """Whether a function wants the number of the epoch: it must have an argument, or has one called so."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # written in C, without a signature
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [one for one in parameters.values() if one.kind in positional and one.default is one.empty]
    first = next(iter(parameters), None)
    return bool(needed) or first == "epoch"


def guessed_schema(sample: Sample) -> Schema:
    """The fields of a stream that augmentations know, by what they look like in its first sample."""
    return Schema(tuple(Field(name, kind) for name, kind in guessed_kinds(sample).items()))
