"""Where a worker writes: some rows of a batch, fixed fields into arrays, loose ones into lists."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import RecipeError
from penstock.flow.making.layout import Layout
from penstock.samples import Sample

NUMBERS = ("index", "draw", "member", "epoch")  # which sample it is; written for all rows at once


class Rows:
    """Rows of a batch. `arrays` are slices of the slot; `loose` has one list for each field without a fixed size."""

    def __init__(self, layout: Layout, arrays: dict[str, NDArray[Any]], count: int) -> None:
        self.layout, self.arrays, self.count = layout, arrays, count
        self.loose: dict[str, list[Any]] = {name: [None] * count for name in layout.loose}

    @classmethod
    def fresh(cls, layout: Layout, count: int) -> Rows:
        """Rows with memory of their own."""
        arrays = {name: np.empty((count, *place.shape), place.dtype) for name, place in layout.fixed.items()}
        return cls(layout, arrays, count)

    def part(self, start: int, stop: int) -> Rows:
        """Some of these rows; what is put there is put here."""
        part = Rows.__new__(Rows)
        part.layout, part.count = self.layout, stop - start
        part.arrays = {name: array[start:stop] for name, array in self.arrays.items()}
        part.loose = {name: _ListPart(values, start) for name, values in self.loose.items()}  # type: ignore[misc]
        return part

    def put(self, row: int, sample: Sample) -> None:
        """Write one sample; every field must be there and be like those of the other samples."""
        for name, place in self.layout.fixed.items():
            if name in NUMBERS:
                continue
            if name not in sample:
                raise RecipeError(f"a sample without {name!r}: it has {', '.join(sample)}; other samples have it")
            value = _array(name, sample[name])
            if value.shape != place.shape or not (value.dtype == place.dtype or _fits(value, place.dtype)):
                raise RecipeError(_unlike(name, value, place.shape, place.dtype))
            self.arrays[name][row] = value
        for name in self.layout.loose:
            if name not in sample:
                raise RecipeError(f"a sample without {name!r}: it has {', '.join(sample)}; other samples have it")
            value = sample[name]
            # A view would keep more alive than the sample, such as the memory that it was decoded into.
            self.loose[name][row] = value.copy() if isinstance(value, np.ndarray) and value.base is not None else value

    def scatter(self, places: NDArray[Any], made: Rows) -> None:
        """Put rows that were made elsewhere at these places."""
        for name, array in made.arrays.items():
            self.arrays[name][places] = array
        for name, values in made.loose.items():
            for place, value in zip(places.tolist(), values, strict=True):
                self.loose[name][place] = value


class _ListPart:
    """A stretch of a list, for writing."""

    def __init__(self, values: Any, start: int) -> None:
        self._values, self._start = values, start

    def __setitem__(self, position: int, value: Any) -> None:
        self._values[self._start + position] = value


def _array(name: str, value: Any) -> NDArray[Any]:
    try:
        return np.asarray(value)
    except ValueError as error:  # lists of different lengths
        raise RecipeError(f"{name!r} cannot become an array: {error}") from error


def _fits(value: NDArray[Any], dtype: np.dtype[Any]) -> bool:
    """Whether a value of another type can stand among these; a number never turns into another one."""
    if np.can_cast(value.dtype, dtype, "safe"):
        return True
    if not np.can_cast(value.dtype, dtype, "same_kind"):
        return False
    with np.errstate(over="ignore"):
        cast = value.astype(dtype)
    if dtype.kind in "fc":  # rounded, but not to infinity
        return bool((np.isfinite(cast) == np.isfinite(value)).all())
    return bool((cast == value).all())


def _unlike(name: str, value: NDArray[Any], shape: tuple[int, ...], dtype: Any) -> str:
    return (
        f"{name!r} is {_words(value.shape)} {value.dtype} here and {_words(shape)} {dtype} in other samples. Make them "
        'equal (augment.Resize, augment.CenterCrop), or use batch(…, shapes="padded") or shapes="ragged"'
    )


def _words(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "one"
