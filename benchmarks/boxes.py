"""Scoring predicted boxes beside DeepForest, and suppression of a million boxes.

python -m benchmarks.feed --setup deepforest   install DeepForest, in an environment of its own
python -m benchmarks.boxes --plots neon_eval   a folder with xml/*.xml and deepforest_pred/*.csv
python -m benchmarks.boxes                     without: made plots of the same number and size

Both sides have their tables in memory: DeepForest as GeoDataFrames with geometry, Penstock as plain DataFrames.
Both must give the same precision and recall, and Penstock gives average precision and scores by class as well.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import penstock as ps
from benchmarks.feeding.environments import DEFAULT_HOME, Environments
from benchmarks.rounds import alternate, seconds
from benchmarks.tables import OURS, Bar, Row, Table, Value, compare, within
from penstock.geometry.suppression import suppress

DEEPFOREST, LEAST_OF_DEEPFOREST = "DeepForest", 20.0
MOST_SECONDS = 10.0
BOXES = 1_000_000
# Memory is linear: some arrays as long as the boxes, and the pairs in conflict.
MOST_BYTES_PER_BOX = 1000
PEER = Path(__file__).with_name("boxes_peer.py")
NAMES = ["xmin", "ymin", "xmax", "ymax"]


def made_plots(count: int = 125) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Crowns as dense as in the plots of the tree benchmark, and predictions near most of them."""
    rng = np.random.default_rng(0)
    found, truth = [], []
    for number in range(count):
        corners = rng.random((31, 2)) * 370
        crowns = np.hstack([corners, corners + 15 + rng.random((31, 2)) * 40])
        near = crowns + rng.normal(0, 4, crowns.shape)
        near[:, 2:] = np.maximum(near[:, 2:], near[:, :2] + 2)
        truth.append(_table(crowns, f"plot_{number}.tif"))
        found.append(_table(near, f"plot_{number}.tif").assign(score=rng.random(31)))
    return pd.concat(found, ignore_index=True), pd.concat(truth, ignore_index=True)


def _table(boxes: np.ndarray, name: str) -> pd.DataFrame:
    return pd.DataFrame(boxes, columns=NAMES).assign(label="Tree", image_path=name)


def real_plots(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Predictions with the names of their images, and the truth."""
    tables = sorted((folder / "deepforest_pred").glob("*.csv"))
    found = [pd.read_csv(path, index_col=0).assign(image_path=f"{path.stem}.tif") for path in tables]
    return pd.concat(found, ignore_index=True), ps.read_pascal_voc(f"{folder}/xml/*.xml")


@contextmanager
def deepforest(python: Path, found: pd.DataFrame, truth: pd.DataFrame) -> Iterator[Callable[[], dict[str, float]]]:
    """A process that has the tables in memory and evaluates them when asked."""
    with tempfile.TemporaryDirectory() as home:
        paths = [str(Path(home, name)) for name in ("found.csv", "truth.csv")]
        found.to_csv(paths[0], index=False)
        truth.to_csv(paths[1], index=False)
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with subprocess.Popen([str(python), str(PEER), *paths], text=True, **pipes) as process:
            assert process.stdin is not None and process.stdout is not None
            asked, answers = process.stdin, process.stdout

            def evaluate() -> dict[str, float]:
                asked.write("\n")
                asked.flush()
                line = answers.readline()
                if not line:
                    raise RuntimeError("DeepForest's process ended; run benchmarks/boxes_peer.py by hand to see why")
                scores: dict[str, float] = json.loads(line)
                return scores

            answers.readline()
            yield evaluate
            asked.close()


def evaluation(environments: Environments, plots: Path | None, rounds: int) -> Row:
    """How many times as fast as DeepForest, the scores being the same."""
    found, truth = real_plots(plots) if plots else made_plots()
    title, missing = f"evaluating {truth['image_path'].nunique()} plots", environments.missing("deepforest")
    if missing:
        return compare(title, "ms", [Value(DEEPFOREST, 0.0, absent=missing)])
    with deepforest(environments.python("deepforest"), found, truth) as theirs:
        expected, own = theirs(), ps.evaluate(found, truth=truth).scores
        for name, value in expected.items():
            if abs(own[name] - value) > 1e-6:
                raise RuntimeError(f"{name} is {own[name]} here and {value} there")
        our_seconds, their_seconds = alternate(lambda: ps.evaluate(found, truth=truth), theirs, rounds)
    values = [Value(OURS, our_seconds * 1e3, "penstock"), Value(DEEPFOREST, their_seconds * 1e3)]
    return compare(title, "ms", values, [Bar(OURS, DEEPFOREST, LEAST_OF_DEEPFOREST)], smaller_is_better=True)


def suppression() -> list[Row]:
    """A million boxes of crowns over a mosaic of 30,000 px."""
    rng = np.random.default_rng(1)
    centres = rng.random((BOXES, 2)) * 30_000
    half = np.exp(rng.normal(2.8, 0.4, (BOXES, 1)) + rng.normal(0, 0.1, (BOXES, 2)))
    boxes, scores = np.hstack([centres - half, centres + half]).astype(np.float32), rng.random(BOXES)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    taken = seconds(lambda: suppress(boxes, scores, iou=0.15))
    each = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / BOXES
    return [
        within(f"suppression of {BOXES:,} boxes", taken, "s", MOST_SECONDS),
        within(f"suppression of {BOXES:,} boxes: memory", each, "bytes a box", MOST_BYTES_PER_BOX),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plots", type=Path, default=None, help="folder with xml/*.xml and deepforest_pred/*.csv")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers-home", type=Path, default=DEFAULT_HOME, help="where the environments are")
    parser.add_argument("--json", type=Path, default=None, help="also write the table here")
    options = parser.parse_args()
    table = Table("boxes", options.json)
    for row in [*suppression(), evaluation(Environments(options.peers_home), options.plots, options.rounds)]:
        table.add(row)


if __name__ == "__main__":
    main()
