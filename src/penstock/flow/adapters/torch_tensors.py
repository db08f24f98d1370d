"""Arrays of a batch as tensors that share their memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.flow.making.collating import Ragged


def tensors_of(batch: dict[str, Any], torch: Any) -> dict[str, Any]:
    """Every array of a batch as a tensor; ragged fields as lists of tensors, texts as the lists they are.

    A tensor keeps the memory of its batch alive, as an array does.
    """
    return {name: _tensors(value, torch) for name, value in batch.items()}


def _tensors(value: Any, torch: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _tensor(value, torch) if value.dtype.kind in "biufc" else value.tolist()
    if isinstance(value, Ragged):
        return [_tensors(piece, torch) for piece in value]
    return value


def _tensor(array: np.ndarray[Any, Any], torch: Any) -> Any:
    shares = array.flags.writeable and array.dtype.isnative and all(stride >= 0 for stride in array.strides)
    return torch.from_numpy(array if shares else np.array(array, array.dtype.newbyteorder("="), order="C"))
