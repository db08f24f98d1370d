"""Predicted ethograms from files, compared with labels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from penstock.errors import DataError, Problem
from penstock.formats.paths import expand, files_below
from penstock.formats.tables import COLUMN_NAMES, TABLE_ENDINGS, Table, plain, read_table
from penstock.formats.text_tables import SEPARATORS
from penstock.formats.videos.frame_hdf5 import HDF5_ENDINGS
from penstock.formats.videos.frame_labels import BACKGROUND, FrameLabels, NoLabels
from penstock.formats.videos.label_hdf5 import read_label_hdf5
from penstock.formats.videos.label_matching import match_labels
from penstock.formats.videos.label_options import LabelOptions
from penstock.formats.videos.label_rows import read_label_rows
from penstock.formats.videos.video_lists import NamedVideo
from penstock.results.behaviour_scores import BehaviourScores, score_behaviours
from penstock.results.bouts import stop_times
from penstock.storage.plain_files import refuse_special

if TYPE_CHECKING:
    import pandas as pd


# Predicted ethograms from files, to be compared with labels: tables with a row for each frame, or HDF5.


# Of the files that a prediction leaves for one video, the first that is there says most.
ENDINGS = ("_ethogram", "_outputs", "_predictions")
# Columns that make a box, any of these together; behaviours may be called left, right or x.
_BOXES = (("x1", "y1", "x2", "y2"), ("x", "y"), ("geometry",))
_FIRST_COLUMNS = ("", "index", "unnamed0", "frame", "video")


class Predicted(NamedTuple):
    """What one file says of one video; probabilities are None where it holds 0 and 1 alone."""

    name: str
    file: str
    behaviours: tuple[str, ...]
    present: NDArray[np.bool_]
    probabilities: NDArray[np.float32] | None
    times_s: NDArray[np.float64]


def is_ethograms(given: Any) -> TypeGuard[str | os.PathLike[str]]:
    """Whether a path, pattern or folder holds behaviours of frames, and not boxes."""
    if not isinstance(given, str | os.PathLike):
        return False
    paths = expand(given)
    files = [file for path in paths for file in _files_meant(path)]
    return bool(files) and all(_holds_frames(file) for file in files)


def _files_meant(path: Path) -> list[Path]:
    """A file as it is; of a folder, the files that predictions of videos leave there."""
    if not path.is_dir():
        return [path]
    return [file for file in files_below(path, {*TABLE_ENDINGS, *HDF5_ENDINGS}) if file.stem.endswith(ENDINGS)]


def _holds_frames(path: Path) -> bool:
    """By its columns: enough of them to be boxes are none of behaviours, unless background is among them."""
    ending = path.suffix.lower()
    if ending in HDF5_ENDINGS:
        return True
    if ending not in TABLE_ENDINGS:
        return False
    names = [plain(name) for name in _header(path)]
    is_one_of_boxes = BACKGROUND not in names and any(_are_there(roles, names) for roles in _BOXES)
    return len(names) > 1 and names[0] in _FIRST_COLUMNS and not is_one_of_boxes


def _are_there(roles: Sequence[str], names: Sequence[str]) -> bool:
    """Whether there is a column for each of some roles."""
    return all(not set(COLUMN_NAMES[role]).isdisjoint(names) for role in roles)


def _header(path: Path) -> list[str]:
    if path.suffix.lower() in (".parquet", ".pq"):
        return _parquet_header(path)
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        line = file.readline().rstrip("\n")
    return line.split(max(SEPARATORS, key=line.count))


def _parquet_header(path: Path) -> list[str]:
    """No names where it cannot be read; whoever reads it as boxes says why."""
    import pyarrow.parquet

    try:
        refuse_special(path)
        names: list[str] = pyarrow.parquet.read_schema(path).names
    except (OSError, ValueError):
        return []
    return names


def read_predictions(given: str | os.PathLike[str]) -> list[Predicted]:
    """Every video that is meant, each from one file; all problems at once."""
    found: list[Predicted] = []
    problems: list[Problem] = []
    for name, file in _chosen(expand(given)).items():
        try:
            found.append(_read(name, file))
        except DataError as error:
            problems += error.problems
    problems += [problem for one in found[1:] for problem in _other_behaviours(one, found[0])]
    if problems:
        raise DataError(problems)
    if not found:
        raise DataError([Problem(os.fspath(given), None, "there is no ethogram in it", "Run penstock predict first")])
    return found


def _chosen(paths: Sequence[Path]) -> dict[str, Path]:
    """One file for each video: in a folder the one that says most, else as it is named."""
    chosen: dict[str, tuple[int, Path]] = {}
    for path in paths:
        for file in _files_meant(path):
            rank = next((rank for rank, ending in enumerate(ENDINGS) if file.stem.endswith(ending)), len(ENDINGS))
            stem = file.stem.removesuffix((*ENDINGS, "")[rank])
            name = (file.parent.relative_to(path) / stem).as_posix() if path.is_dir() else stem
            chosen[name] = min(chosen.get(name, (rank, file)), (rank, file))
    return {name: file for name, (_, file) in chosen.items()}


def _read(name: str, file: Path) -> Predicted:
    table = read_label_hdf5(file) if file.suffix.lower() in HDF5_ENDINGS else read_table(file)
    rows = read_label_rows(table)
    wrong = [problem for problem in rows.problems if not problem.warning]
    if wrong:
        raise DataError(wrong)
    return Predicted(
        name, table.name, rows.behaviours, rows.values == 1, _probabilities(table, rows.behaviours), _times(table)
    )


def _probabilities(table: Table, behaviours: Sequence[str]) -> NDArray[np.float32] | None:
    names = [f"{name}_probability" for name in behaviours]
    if not set(names) <= set(table.columns):
        return None
    values = np.stack([table.numbers(name).values for name in names], axis=1).astype(np.float32)
    bad = np.flatnonzero(~((values >= 0) & (values <= 1)).all(axis=1))
    if len(bad):
        line = int(table.lines[bad[0]])
        raise DataError([Problem(table.name, line, "a probability is not from 0 to 1", "Save the ethogram again")])
    return values


def _times(table: Table) -> NDArray[np.float64]:
    """Seconds by frame, NaN where the file has none."""
    if "time_s" not in table.columns:
        return np.full(len(table), np.nan)
    return table.numbers("time_s").values


def _other_behaviours(one: Predicted, first: Predicted) -> list[Problem]:
    if one.behaviours == first.behaviours:
        return []
    what = f"has the behaviours {', '.join(one.behaviours)}, and {first.file} has {', '.join(first.behaviours)}"
    return [Problem(one.file, None, what, "Compare predictions of one model at a time")]


# Scores of ethograms made by anything, from files: what `penstock evaluate FOLDER --truth LABELS` does.


@dataclass(frozen=True, eq=False)
class ComparedEthograms:
    """Videos with predictions and labels of the same frames, and predictions that no labels are there for."""

    predicted: tuple[Predicted, ...]
    labels: tuple[NDArray[np.int8], ...]
    not_in_truth: tuple[str, ...]

    def scores(self) -> BehaviourScores:
        return _scores(self.predicted, self.labels)

    def table(self) -> pd.DataFrame:
        """One row for each video."""
        import pandas as pd

        rows = [_row(one, labels) for one, labels in zip(self.predicted, self.labels, strict=True)]
        return pd.DataFrame(rows)


def compare_ethograms(predictions: str | os.PathLike[str], truth: Any, options: LabelOptions) -> ComparedEthograms:
    """Read predictions and labels in any format that `Videos` reads; every problem is raised at once."""
    found = read_predictions(predictions)
    # Labels are found by the name of the video; which file it was is not known any more.
    videos = [NamedVideo(one.name, Path(one.file).with_name(f"{Path(one.name).name}.video")) for one in found]
    known = match_labels(truth, videos, replace(options, classes=found[0].behaviours))
    problems = [problem for problem in known.problems if not problem.warning]
    matched = [
        (one, labels) for one, labels in zip(found, known.per_video, strict=True) if not isinstance(labels, NoLabels)
    ]
    problems += [problem for one, labels in matched for problem in _misfits(one, labels)]
    if problems:
        raise DataError(problems)
    alone = tuple(one.name for one, labels in zip(found, known.per_video, strict=True) if isinstance(labels, NoLabels))
    arranged = [_in_order(one, known.classes) for one, _ in matched]
    return ComparedEthograms(tuple(arranged), tuple(labels.over(one.times_s) for one, labels in matched), alone)


def _misfits(one: Predicted, labels: FrameLabels) -> list[Problem]:
    end_s = float(stop_times(one.times_s)[-1]) if len(one.times_s) else float("nan")
    return labels.misfits(one.name, len(one.times_s), end_s)


def _in_order(one: Predicted, classes: Sequence[str]) -> Predicted:
    """With columns as the labels have them."""
    order = [one.behaviours.index(name) for name in classes]
    likely = None if one.probabilities is None else one.probabilities[:, order]
    return one._replace(behaviours=tuple(classes), present=one.present[:, order], probabilities=likely)


def _scores(predicted: Sequence[Predicted], labels: Sequence[NDArray[np.int8]]) -> BehaviourScores:
    """Without probabilities there is no order to go by, and no AUROC or average precision."""
    likely = [one.probabilities for one in predicted if one.probabilities is not None]
    has_order = len(likely) == len(predicted)
    present = np.concatenate([one.present for one in predicted])
    found = score_behaviours(
        np.concatenate(likely) if has_order else present.astype(np.float32),
        np.concatenate(labels),
        predicted[0].behaviours,
        thresholds=np.nan,
        predictions=present,
        frame_counts=[len(one.present) for one in predicted],
    )
    if has_order:
        return found
    unknown = np.full(len(found.behaviours), np.nan)
    return replace(found, auroc=unknown, average_precision=unknown)


def _row(one: Predicted, labels: NDArray[np.int8]) -> dict[str, Any]:
    scores = _scores([one], [labels])
    means = {name: scores.mean(name) for name in ("f1", "precision", "recall", "accuracy", "bout_f1")}
    labelled = int((labels >= 0).any(axis=1).sum())
    return {"video": one.name, "frames": len(labels), "labelled_frames": labelled, **means}
