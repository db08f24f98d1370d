"""Rows to batches: what has no fixed size is padded to the largest, or kept as pieces of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import RecipeError
from penstock.flow.steps import Batch


class Ragged(Sequence[Any]):
    """Arrays of different lengths, one for each sample of a batch, as one array and where each begins.

    `values` are all of them one after another, sample i is `values[offsets[i]:offsets[i + 1]]`. Arrays that differ in
    more than their length (images of different sizes) have no `values` and are a plain sequence.
    """

    def __init__(self, pieces: Sequence[NDArray[Any]]) -> None:
        self._pieces = [np.asarray(piece) for piece in pieces]

    def __len__(self) -> int:
        return len(self._pieces)

    def __getitem__(self, position: Any) -> Any:
        return self._pieces[position]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pieces)

    def __repr__(self) -> str:
        return f"<Ragged: {len(self)} arrays>"

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.array([len(piece) for piece in self._pieces], np.int64)

    @property
    def offsets(self) -> NDArray[np.int64]:
        offsets: NDArray[np.int64] = np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)
        return offsets

    @property
    def values(self) -> NDArray[Any]:
        if len({(piece.shape[1:], piece.dtype) for piece in self._pieces}) > 1:
            raise RecipeError("these arrays differ in more than their length; use them one by one.")
        return np.concatenate(self._pieces)


def collated(arrays: dict[str, NDArray[Any]], loose: dict[str, list[Any]], batch: Batch) -> dict[str, Any]:
    """The batch as users get it; texts are lists."""
    finished: dict[str, Any] = dict(arrays)
    for name, values in loose.items():
        if any(not isinstance(value, np.ndarray) and not np.isscalar(value) for value in values) or _is_text(values):
            finished[name] = values
        elif batch.shapes == "padded":
            pieces = [np.asarray(value) for value in values]
            _check_fill(name, pieces, batch.fill)
            finished[name], finished[f"{name}_size"] = padded(pieces, batch.fill)
        else:
            finished[name] = Ragged([np.asarray(value) for value in values])
    return finished


def _is_text(values: list[Any]) -> bool:
    return any(isinstance(value, (str, bytes)) for value in values)


def _check_fill(name: str, pieces: list[NDArray[Any]], fill: float) -> None:
    """Padding must be told from nothing else, so it is never turned into another number."""
    if len({piece.shape for piece in pieces}) < 2:
        return
    dtype = np.result_type(*pieces)
    with np.errstate(invalid="ignore"):
        is_kept = dtype.kind in "fc" or np.asarray(fill).astype(dtype) == fill
    if not is_kept:
        raise RecipeError(
            f"batch(fill={fill}): {name!r} is {dtype}, which cannot hold {fill}. Use a fill that all padded fields "
            "can hold, or change the type of the field in a map."
        )


def padded(pieces: Sequence[NDArray[Any]], fill: float) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """All pieces in the size of the largest, at its beginning; and what size each has."""
    if not pieces:
        return np.zeros(0), np.zeros((0, 1), np.int64)
    sizes = np.array([piece.shape for piece in pieces], np.int64).reshape(len(pieces), -1)
    out = np.full((len(pieces), *sizes.max(axis=0).tolist()), fill, np.result_type(*pieces))
    for row, piece in enumerate(pieces):
        out[row][tuple(slice(0, size) for size in piece.shape)] = piece
    return out, sizes
