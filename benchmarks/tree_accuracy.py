"""How well tree crowns are found after some hours of training: `python -m benchmarks.accuracy trees --plots FOLDER …`.

Trained on the plots whose name begins with 2018_ and on `--more` rasters with boxes, from the features of `--weights`;
scored on the other plots, which nothing was chosen by. The score from which a box counts is chosen by plots that are
held out of training. Beside it stand predictions that the folder brings, by the same rule.

    FOLDER/rgb/*.tif, FOLDER/xml/*.xml, FOLDER/deepforest_pred/*.csv
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps

TRAINED_PREFIX = "2018_"
HELD_OUT_EVERY = 9
MIN_SCORES = tuple(round(float(score), 2) for score in np.arange(0.1, 0.71, 0.05))
BAR = 0.55


def main(given: list[str]) -> int:
    arguments = _arguments(given)
    started = time.perf_counter()
    run = _trained(arguments)
    seconds = time.perf_counter() - started
    model = ps.load(run, which="last").changed(score_threshold=min(MIN_SCORES))
    held_out = _scores_by_threshold(model, arguments, _held_out(arguments.plots))
    chosen = max(held_out, key=lambda score: held_out[score]["f1"])
    others = _scores_by_threshold(model, arguments, _scored(arguments.plots))
    result = {
        "min_score": chosen,
        **others[chosen],
        "by_min_score": others,
        "held_out": held_out[chosen],
        "deepforest": {score: _of_files(arguments, score) for score in (0.2, 0.3)},
        "bar": BAR,
        "seconds": round(seconds, 1),
    }
    print(json.dumps(result, indent=2))
    return 0 if others[chosen]["f1"] >= BAR else 1


def _trained(arguments: argparse.Namespace) -> Any:
    images = [path for path in _training_plots(arguments.plots) if path not in _held_out(arguments.plots)]
    sources = [_plots(arguments, images), *(_large(path) for path in arguments.more)]
    train: Any = ps.concat(sources) if len(sources) > 1 else sources[0]
    print(f"{len(train)} tiles for training", file=sys.stderr)
    task = ps.Detection(
        ["Tree"],
        backbone=arguments.backbone,
        weights=str(arguments.weights) if arguments.weights else None,
        input_scale=arguments.input_scale,
        size=arguments.size,
        zoom=(0.6, 1.4),  # crowns of the scored plots are smaller, and closer together
        colour=0.3,
        hue=0.05,
    )
    return ps.train(
        task,
        (train, _plots(arguments, _held_out(arguments.plots))),
        epochs=arguments.epochs,
        folder=arguments.folder,
        batch_size=arguments.batch_size,
        learning_rate=arguments.learning_rate,
        freeze=arguments.freeze,
        gradient_clip=5.0,
        warmup_epochs=min(1.0, arguments.epochs / 4),
        seed=arguments.seed,
        progress=False,
        logger=False,
        workers=1,
    )


def _training_plots(folder: Path) -> list[Path]:
    return [path for path in sorted((folder / "rgb").glob("*.tif")) if path.name.startswith(TRAINED_PREFIX)]


def _held_out(folder: Path) -> list[Path]:
    return _training_plots(folder)[::HELD_OUT_EVERY]


def _scored(folder: Path) -> list[Path]:
    return [path for path in sorted((folder / "rgb").glob("*.tif")) if not path.name.startswith(TRAINED_PREFIX)]


def _plots(arguments: argparse.Namespace, images: list[Path]) -> Any:
    """Plots with their boxes, each of them one tile."""
    return ps.Rasters(images, boxes=arguments.plots / "xml", ignore_other_images=True, clip_boxes=True)


def _large(path: Path) -> Any:
    """A larger raster with boxes beside it, cut into tiles."""
    return ps.Rasters(path, boxes=path.with_suffix(".xml"), overlap=0.25, clip_boxes=True)


def _scores_by_threshold(
    model: Any, arguments: argparse.Namespace, images: list[Path]
) -> dict[float, dict[str, float]]:
    table = ps.predict(model, images)
    return {score: _scored_boxes(table[table["score"] >= score], arguments, images) for score in MIN_SCORES}


def _scored_boxes(table: Any, arguments: argparse.Namespace, images: list[Path]) -> dict[str, float]:
    """Precision and recall as `penstock evaluate FILE --truth` gives them."""
    truth = [arguments.plots / "xml" / f"{path.stem}.xml" for path in images]
    target = Path(arguments.folder) / "boxes.csv"
    table.save(target)
    scores = ps.evaluate(target, truth=[str(path) for path in truth]).scores
    return {name: scores[f"box_{name}"] for name in ("precision", "recall", "f1")}


def _of_files(arguments: argparse.Namespace, min_score: float) -> dict[str, float]:
    """The same for the predictions that the folder brings."""
    scored = _scored(arguments.plots)
    files = [str(arguments.plots / "deepforest_pred" / f"{path.stem}.csv") for path in scored]
    truth = [str(arguments.plots / "xml" / f"{path.stem}.xml") for path in scored]
    scores = ps.evaluate(files, truth=truth, min_score=min_score).scores
    return {name: scores[f"box_{name}"] for name in ("precision", "recall", "f1")}


def _arguments(given: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.accuracy trees", description=__doc__)
    parser.add_argument("--plots", type=Path, required=True)
    parser.add_argument("--more", type=Path, nargs="*", default=[], help="rasters with boxes as .xml beside them")
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--backbone", default="mobilenet_v2")
    parser.add_argument("--folder", default="runs/tree-accuracy")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--size", type=int, default=400, help="side of the parts of tiles that are trained on, in px")
    parser.add_argument("--freeze", help="the last stage of the backbone that is not trained, such as body.6")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--learning-rate", type=float, default=5e-4)
    parser.add_argument("--input-scale", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args(given)
    scored = {path.stem for path in _scored(arguments.plots)}
    if known := sorted(path.name for path in arguments.more if path.stem in scored):
        parser.error(f"--more has plots that are scored: {', '.join(known)}")
    return arguments
