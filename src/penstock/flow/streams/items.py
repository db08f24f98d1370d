"""What Keras hands around: a batch as an array, as (x, y, weight), or as a dict; here always a dict of arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import HopError, OptionError

NAMES = ("x", "y", "weight")
Item = dict[str, NDArray[Any]]


def named_item(item: Any, names: tuple[str, ...] | None, number: int) -> Item:
    """A batch as a dict of arrays, by the names that it has, or by `names`."""
    return {name: _array(name, value, number) for name, value in named_parts(item, names, f"item {number}").items()}


def named_parts(item: Any, names: tuple[str, ...] | None, where: str) -> dict[str, Any]:
    """What stands in a tuple or a dict, each with its name."""
    if isinstance(item, dict):
        if names is not None:
            raise OptionError(f"{where} is a dict and has names of its own ({', '.join(item)}): leave names out.")
        return {str(name): value for name, value in item.items()}
    names = NAMES if names is None else names
    parts = item if isinstance(item, (tuple, list)) else (item,)
    if len(parts) > len(names):
        raise OptionError(f"{where} has {len(parts)} parts, and there are names for {len(names)}: {names}.")
    found: dict[str, Any] = {}
    for name, part in zip(names, parts, strict=False):
        for inner, value in _parts(name, part):
            if inner in found:
                raise OptionError(f"{where} has two parts called {inner!r}; say names=(…) or rename one.")
            found[inner] = value
    return found


def _parts(name: str, part: Any) -> Iterable[tuple[str, Any]]:
    """One part of an item: an array, several (a model with several inputs), named ones, or none."""
    if part is None:
        return []
    if isinstance(part, dict):
        return part.items()
    if isinstance(part, (tuple, list)):
        return [(f"{name}_{number}", value) for number, value in enumerate(part)]
    return [(name, part)]


def _array(name: str, value: Any, number: int) -> NDArray[Any]:
    try:
        return np.asarray(value)
    except ValueError as error:  # lists of different lengths
        remedy = "Fill them up to one size, or give an array of objects."
        raise HopError("decode", f"item {number}", f"the rows of {name} have different sizes", remedy) from error


def item_size(item: Item, number: int) -> int:
    """How many samples a batch has; all its parts must agree."""
    sizes = {name: len(values) if values.ndim else None for name, values in item.items()}
    if len(set(sizes.values())) != 1 or None in sizes.values():
        raise HopError("decode", f"item {number}", *_uneven(sizes))
    return int(next(iter(item.values())).shape[0])


def check_item(item: Item, number: int) -> Item:
    """A batch that is delivered as it is: its arrays agree in their number of samples, and there are some."""
    sizes = {name: len(values) for name, values in item.items() if values.ndim}
    if not sizes:
        remedy = "A batch is an array, (x, y), (x, y, weight) or a dict of arrays."
        raise HopError("decode", f"item {number}", "there is no array in it", remedy)
    if len(set(sizes.values())) != 1:
        raise HopError("decode", f"item {number}", *_uneven(sizes))
    if not next(iter(sizes.values())):
        remedy = "Does its length count one batch too many?"
        raise HopError("decode", f"item {number}", "there are no samples in it", remedy)
    return item


def _uneven(sizes: dict[str, Any]) -> tuple[str, str]:
    found = ", ".join(f"{name} {size}" for name, size in sizes.items())
    reason = f"its parts have different numbers of samples: {found or 'there are none'}"
    return reason, "A list stands for several inputs; a batch of rows is one array."


def row_of(item: Item, row: int) -> dict[str, Any]:
    """One sample of a batch, which shares nothing with it: what is kept is then as large as it looks."""
    return {name: _own(values[row]) for name, values in item.items()}


def _own(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value
