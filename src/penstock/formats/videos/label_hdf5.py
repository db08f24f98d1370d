"""Ethograms in HDF5 as labels: a group of frames × behaviours with the names of the behaviours.

| in the group                | labels are                                                                        |
|-----------------------------|-----------------------------------------------------------------------------------|
| predictions, class_names    | those, as they are; 0 and 1 may have been corrected, −1 is not labelled           |
| P, thresholds, class_names  | 1 where P reaches the threshold, as DeepEthogram leaves it; background is derived |
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import DataError, Problem
from penstock.formats.hdf5.hdf5_doors import DAMAGE, open_hdf5_file
from penstock.formats.tables import Table
from penstock.formats.videos.frame_labels import BACKGROUND

# The group that a sequence model wrote is what a video was said to show; others are steps on the way.
_PREFERRED = ("sequence", "tgmj")
_NEEDED = ({"predictions", "class_names"}, {"P", "thresholds", "class_names"})


def read_label_hdf5(path: Path) -> Table:
    """The behaviours of every frame as a table of one column each."""
    try:
        with open_hdf5_file(path, "Reading labels in HDF5") as file:
            found = _columns(path, _group(path, file))
    except DAMAGE as error:
        raise _wrong(path, f"cannot be opened as HDF5 ({error or type(error).__name__})") from error
    lengths = {len(values) for values in found.values()}
    return Table(path.as_posix(), path.parent, found, np.arange(max(lengths, default=0), dtype=np.int64))


def _group(path: Path, file: Any) -> Any:
    # A link may lead nowhere, and a dataset has no names inside.
    groups = {name: group for name in file if hasattr(group := file.get(name), "keys")}
    usable = [name for name, group in groups.items() if any(needed <= set(group) for needed in _NEEDED)]
    if not usable:
        there = ", ".join(file) or "nothing"
        raise _wrong(
            path, f"has no group with predictions and class_names, or P, thresholds and class_names, but {there}"
        )
    return groups[next((name for name in _PREFERRED if name in usable), usable[0])]


def _columns(path: Path, group: Any) -> dict[str, NDArray[Any]]:
    """The labels, in front of them what says when each frame is shown, and behind them the probabilities."""
    names = [_text(name) for name in np.ravel(group["class_names"][()])]
    likely = None if "P" not in group else _matrix(path, group["P"][()], names)
    labels = _labels(path, group, names, likely)
    frames = len(next(iter(labels.values()), ()))
    times = np.asarray(group["times_s"][()]) if "times_s" in group else None
    columns: dict[str, NDArray[Any]] = {}
    if times is not None and times.shape == (frames,) and times.dtype.kind == "f":
        columns = {"frame": np.arange(frames, dtype=np.float64), "time_s": times}
    if likely is not None and len(likely) == frames:
        labels |= {f"{name}_probability": likely[:, at] for at, name in enumerate(names)}
    return columns | labels


def _labels(path: Path, group: Any, names: list[str], likely: NDArray[np.float64] | None) -> dict[str, NDArray[Any]]:
    if likely is None or "predictions" in group:
        values = _matrix(path, group["predictions"][()], names)
        return {name: values[:, at] for at, name in enumerate(names)}
    limits = _matrix(path, np.reshape(group["thresholds"][()], (1, -1)), names)
    present = (likely >= limits).astype(np.float64)
    return {name: present[:, at] for at, name in enumerate(names) if name != BACKGROUND}


def _text(name: Any) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)


def _matrix(path: Path, given: Any, names: list[str]) -> NDArray[np.float64]:
    """Numbers with a column for each behaviour."""
    values = np.asarray(given)
    fits = values.dtype.kind in "biuf" and values.ndim == 2 and values.shape[1] == len(names) == len(set(names))
    if not fits:
        raise _wrong(path, f"has {values.dtype} of shape {values.shape} for the behaviours {', '.join(names)}")
    return values.astype(np.float64)


def _wrong(path: Path, what: str) -> DataError:
    return DataError([Problem(path.as_posix(), None, what, "Save the ethogram again, best as CSV")])
