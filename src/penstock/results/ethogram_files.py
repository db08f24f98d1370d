"""Files of ethograms; each appears only when it is complete.

| ending, layout            | what it is                                                                              |
|---------------------------|-----------------------------------------------------------------------------------------|
| .csv deepethogram         | frame numbers without a name, then 0 or 1 for each behaviour, background first          |
| .csv .parquet tidy        | video, frame, time_s, 0 or 1 for each behaviour, <behaviour>_probability for each       |
| .csv .parquet bouts       | video, behaviour, start and stop (exclusive) in frames and seconds, duration            |
| .csv .tsv boris           | tabular events of BORIS: a START and a STOP for each bout                               |
| .csv .parquet summary     | time in each behaviour, number and mean length of bouts                                 |
| .h5                       | DeepEthogram's groups, see below                                                        |

    /sequence      P frames × behaviours, thresholds, class_names, logits        also as /tgmj, its usual name there
                   predictions, times_s, min_bout_frames, changed_frames         of our own
    /<features>    spatial_features, flow_features, logits, P, thresholds, class_names … as far as they were gathered
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError, nearest, one_of, require
from penstock.results.ethogram_tables import boris_table, label_table
from penstock.storage.whole_files import whole_file
from penstock.wording import counted

if TYPE_CHECKING:
    import pandas as pd

    from penstock.results.ethograms import Ethogram
    from penstock.results.feature_files import FeatureFile

LAYOUTS = ("deepethogram", "tidy", "bouts", "boris", "summary")
HDF5_ENDINGS = (".h5", ".hdf5")
_LAYOUTS_OF = {
    ".csv": LAYOUTS,
    ".tsv": ("boris", "tidy", "bouts", "summary", "deepethogram"),
    ".parquet": ("tidy", "bouts", "summary"),
}
ENDINGS = (*_LAYOUTS_OF, *HDF5_ENDINGS)
SEQUENCE_GROUP, USUAL_GROUP = "sequence", "tgmj"
# Rows that are copied at once: 16 MB of 1,024 features.
_COPIED_ROWS = 4096
# Rows of a table that are written at once: as text each takes some 500 bytes.
_WRITTEN_ROWS = 4096


def check_ethogram_output(path: str | os.PathLike[str], layout: str | None = None) -> tuple[Path, str]:
    """Refuse, before hours are spent, a name or layout that cannot be written; gives the layout that is meant."""
    target = Path(path)
    ending = target.suffix.lower()
    if ending not in ENDINGS:
        known = f"{', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}"
        raise OptionError(f"{str(path)!r} must end in {known}.{nearest(ending, ENDINGS)}")
    if not target.absolute().parent.is_dir():
        raise OptionError(f"{str(path)!r}: there is no folder {target.parent}. Make it first.")
    if ending in HDF5_ENDINGS:
        if layout is not None:
            raise OptionError(f"layout={layout!r} is for tables, and {target.name} is HDF5. Leave it out.")
        return target, ""
    return target, one_of("layout", layout or _LAYOUTS_OF[ending][0], _LAYOUTS_OF[ending])


def save_ethogram(
    ethogram: Ethogram,
    path: str | os.PathLike[str],
    layout: str | None,
    logits: NDArray[Any] | None,
    features: FeatureFile | None,
    features_group: str,
) -> Path:
    """Write an ethogram, in the format that the ending of the name and the layout say."""
    target, chosen = check_ethogram_output(path, layout)
    if target.suffix.lower() in HDF5_ENDINGS:
        with whole_file(target) as partial:
            _write_hdf5(partial, ethogram, logits, features, features_group)
        return target
    if logits is not None or features is not None:
        raise OptionError(f"logits and features go into .h5, and {target.name} is a table. Leave them out.")
    if chosen == "tidy" and target.suffix.lower() != ".parquet":
        _write_rows(ethogram, target)
    else:
        _write_table(_table(ethogram, chosen), target, numbered=chosen == "deepethogram")
    return target


def _write_rows(ethogram: Ethogram, target: Path) -> None:
    """The table of frames, some at a time: hours of them need no more memory than minutes."""
    separator = "\t" if target.suffix.lower() == ".tsv" else ","
    with whole_file(target) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        for start in range(0, max(1, len(ethogram)), _WRITTEN_ROWS):
            rows = _to_the_microsecond(ethogram.rows(slice(start, start + _WRITTEN_ROWS)))
            rows.to_csv(file, sep=separator, index=False, header=start == 0, lineterminator="\n")


def _table(ethogram: Ethogram, layout: str) -> pd.DataFrame:
    if layout == "deepethogram":
        return label_table(ethogram)
    if layout == "boris":
        return boris_table(ethogram)
    tables = {"tidy": ethogram.table, "bouts": ethogram.bouts, "summary": ethogram.summary}
    return tables[layout]()


def _write_table(table: pd.DataFrame, target: Path, *, numbered: bool) -> None:
    with whole_file(target) as partial:
        if target.suffix.lower() == ".parquet":
            table.to_parquet(partial, index=False)
        else:
            separator = "\t" if target.suffix.lower() == ".tsv" else ","
            rounded = _to_the_microsecond(table)
            rounded.to_csv(partial, sep=separator, index=numbered, lineterminator="\n", chunksize=_WRITTEN_ROWS)


def _to_the_microsecond(table: pd.DataFrame) -> pd.DataFrame:
    """Times without the noise of their last digits; probabilities are float32 and stay as they are."""
    times = table.select_dtypes("float64").columns
    return table.assign(**{name: table[name].round(6) for name in times})


# HDF5


def _write_hdf5(
    path: Path,
    ethogram: Ethogram,
    logits: NDArray[Any] | None,
    features: FeatureFile | None,
    features_group: str,
) -> None:
    h5py = require("h5py", "formats", "Writing ethograms as HDF5")
    _check_matrix(ethogram, logits)
    with h5py.File(path, "w") as file:
        file.attrs["video"] = ethogram.name
        group = file.create_group(SEQUENCE_GROUP)
        _write_probabilities(group, ethogram, ethogram.probabilities, logits)
        group["predictions"] = ethogram.predictions
        group["times_s"] = ethogram.times_s
        group["min_bout_frames"] = ethogram.min_bout_frames
        group["changed_frames"] = ethogram.changed_frames
        file[USUAL_GROUP] = h5py.SoftLink(f"/{SEQUENCE_GROUP}")
        if features is not None:
            _write_features(file.create_group(features_group), ethogram, features)


def _check_matrix(ethogram: Ethogram, logits: NDArray[Any] | None) -> None:
    if logits is not None and logits.shape != ethogram.probabilities.shape:
        expected = ethogram.probabilities.shape
        raise OptionError(f"logits of {ethogram.name} have the shape {logits.shape}, expected {expected}.")


def _write_probabilities(
    group: Any, ethogram: Ethogram, probabilities: NDArray[Any], logits: NDArray[Any] | None
) -> None:
    group["P"] = probabilities
    if logits is not None:
        group["logits"] = np.asarray(logits, np.float32)
    _write_names(group, ethogram)


def _write_names(group: Any, ethogram: Ethogram) -> None:
    group["thresholds"] = ethogram.thresholds
    group["class_names"] = np.array([name.encode() for name in ethogram.behaviours], "S")


def _write_features(group: Any, ethogram: Ethogram, features: FeatureFile) -> None:
    """Block by block, so that hours of features need no memory; probabilities are those of the logits."""
    if features.frames != len(ethogram):
        counts = f"{counted(features.frames, 'frame')} for the {len(ethogram):,} of the ethogram"
        raise OptionError(f"features of {ethogram.name} are there of {counts}. Gather all of them first.")
    for name in features.columns:
        rows = features.column(name)
        written = group.create_dataset(name, rows.shape, rows.dtype)
        for start in range(0, len(rows), _COPIED_ROWS):
            written[start : start + _COPIED_ROWS] = rows[start : start + _COPIED_ROWS]
    if "logits" in features.columns and "P" not in features.columns:
        rows = features.column("logits")
        written = group.create_dataset("P", rows.shape, np.float32)
        for start in range(0, len(rows), _COPIED_ROWS):
            written[start : start + _COPIED_ROWS] = _likely(
                rows[start : start + _COPIED_ROWS], exclusive=ethogram.exclusive
            )
    _write_names(group, ethogram)


def _likely(logits: NDArray[Any], *, exclusive: bool) -> NDArray[np.float32]:
    """Probabilities of logits: one by one, or shared among the behaviours where only one can be."""
    values = np.asarray(logits, np.float64)
    if not exclusive:
        return (0.5 * (1 + np.tanh(values / 2))).astype(np.float32)
    raised: NDArray[np.float64] = np.exp(values - values.max(axis=1, keepdims=True))
    shares: NDArray[np.float32] = (raised / raised.sum(axis=1, keepdims=True)).astype(np.float32)
    return shares
