"""How well short clips are told apart: `python -m benchmarks.accuracy ucf VIDEOS --weights FILE`.

VIDEOS has one folder for each class of UCF101, with v_CLASS_gNN_cNN.avi in it. Groups 8 to 20 are trained on and others
are scored, for several seeds; the answer for a video is the class of highest mean probability over its frames. The
mean accuracy must reach the bar. There are few videos, so one error counts much.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import penstock as ps
from penstock.tasks.behaviour.streaming import FeatureStream, sequence_logits

BAR = 0.85
TRAINED_GROUPS = range(8, 21)
FRAMES = 64  # at a time


def main(given: list[str]) -> int:
    arguments = _arguments(given)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        packs = _packed(arguments, Path(folder))
        found = [_accuracy(arguments, packs, seed, Path(folder)) for seed in arguments.seeds]
    mean = statistics.mean(found)
    seconds = round(time.perf_counter() - started, 1)
    print(json.dumps({"accuracies": found, "mean": mean, "bar": BAR, "seconds": seconds}))
    return 0 if mean >= BAR else 1


def _packed(arguments: argparse.Namespace, folder: Path) -> tuple[ps.Pack, ps.Pack]:
    """Two packs: the videos of the groups to train on, and the others."""
    videos = sorted(arguments.videos.glob("*/*.avi"))
    classes = sorted({path.parent.name for path in videos})
    labels = {path.stem: _label_file(path, classes, folder) for path in videos}
    parts = {
        True: [path for path in videos if _group(path) in TRAINED_GROUPS],
        False: [path for path in videos if _group(path) not in TRAINED_GROUPS],
    }
    made = [
        ps.pack(
            ps.Videos(some, labels={path.stem: labels[path.stem] for path in some}, size=arguments.size),
            folder / f"{name}.pack",
            split="train=1",
            progress=False,
        )
        for name, some in (("train", parts[True]), ("val", parts[False]))
    ]
    return made[0], made[1]


def _group(path: Path) -> int:
    found = re.search(r"_g(\d+)_", path.name)
    if found is None:
        raise SystemExit(f"{path} has no group such as _g08_ in its name.")
    return int(found[1])


def _label_file(path: Path, classes: list[str], folder: Path) -> Path:
    """Every frame of a video has the class of its folder."""
    target = folder / f"{path.stem}.csv"
    count = len(ps.Videos([path], size=None))
    with target.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["", "background", *classes])
        writer.writerows([frame, 0, *(int(name == path.parent.name) for name in classes)] for frame in range(count))
    return target


def _accuracy(arguments: argparse.Namespace, packs: tuple[ps.Pack, ps.Pack], seed: int, folder: Path) -> float:
    started = time.perf_counter()
    train, val = packs
    task = ps.Behaviour(
        size="tiny",
        weights=str(arguments.weights),
        normalize="imagenet",
        exclusive=True,
        clips_per_epoch=arguments.clips,
        flow_epochs=5,
        sequence_epochs=5,
        weight_exponent=1.0,  # classes have three to seven videos to learn from, and may be as many in others
    )
    # Without validation: choosing by the videos that are scored would flatter.
    run = ps.train(
        task,
        (train, None),
        epochs=arguments.epochs,
        folder=folder / f"run-{seed}",
        freeze=arguments.freeze,
        batch_size=16,
        learning_rate=arguments.learning_rate,
        seed=seed,
        progress=False,
        logger=False,
    )
    right = _right(ps.load(run), val)
    print(f"seed {seed}: {right} in {time.perf_counter() - started:.0f} s", file=sys.stderr)
    return float(np.mean(right))


def _right(model: Any, pack: ps.Pack) -> list[int]:
    """For each video whether its class was found."""
    groups = np.asarray(pack.column("group"))
    labels = np.asarray(pack.column("labels"))
    classes = [pack.classes.index(name) for name in model.classes]
    found = []
    for name in dict.fromkeys(groups.tolist()):
        frames = np.flatnonzero(groups == name)
        probabilities = model.task.probabilities(_logits(model, pack, frames))
        truth = int(labels[frames[0]][classes].argmax())
        found.append(int(probabilities.mean(axis=0).argmax() == truth))
    return found


def _logits(model: Any, pack: ps.Pack, frames: Any) -> Any:
    stream = FeatureStream(model.network, model.device)
    pieces = [
        stream.push(torch.from_numpy(batch["image"].copy())).features
        for batch in ps.Flow(ps.Subset(pack, frames)).batch(FRAMES)
    ]
    features = torch.cat([*pieces, stream.finish().features])
    return sequence_logits(model.network, features)


def _arguments(given: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("videos", type=Path)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--size", default="224x160")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--clips", type=int, default=400)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--freeze", default="none", help="backbone: the spatial stream stays as it began")
    parser.add_argument("--learning-rate", type=float, default=2e-4)
    return parser.parse_args(given)
