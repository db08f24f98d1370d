"""How well a few minutes of training do on real photos: `python -m benchmarks.accuracy PHOTOS --weights FILE`.

PHOTOS is a folder with one folder for each class. Three quarters are trained on and the rest is scored, for several
split seeds; the mean accuracy must reach the bar, and all of it together may take five minutes. Measured with the 160
photos of cats and dogs of the Oxford-IIIT Pet dataset and MobileNetV2 with ImageNet features.

`python -m benchmarks.accuracy trees …` is the long trial of tree crowns: see tree_accuracy.py.
`python -m benchmarks.accuracy ucf …` is the trial of short clips: see clip_accuracy.py.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import penstock as ps

BAR = 0.95
MOST_SECONDS = 300.0


def main() -> int:
    arguments = _arguments()
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        found = [_accuracy(arguments, seed, Path(folder)) for seed in range(arguments.seeds)]
    seconds = time.perf_counter() - started
    mean = statistics.mean(found)
    print(json.dumps({"accuracies": found, "mean": mean, "bar": BAR, "seconds": round(seconds, 1)}))
    return 0 if mean >= BAR and seconds <= MOST_SECONDS else 1


def _accuracy(arguments: argparse.Namespace, seed: int, folder: Path) -> float:
    """Pack the photos, train on one part, score the other."""
    started = time.perf_counter()
    path = folder / f"photos-{seed}.pack"
    pack = ps.pack(ps.Images(arguments.photos), path, split="train=0.75,val=0.25", seed=seed, progress=False)
    task = ps.Classification(classes=pack.classes, backbone=arguments.backbone, weights=str(arguments.weights))
    run = ps.train(
        task,
        pack,
        epochs=arguments.epochs,
        folder=folder / f"run-{seed}",
        freeze="backbone",  # a hundred photos say nothing that features of a million do not know
        batch_size=24,
        learning_rate=3e-3,
        seed=seed,
        progress=False,
        logger=False,
    )
    # The last weights, not the best: choosing by the photos that are scored would flatter us.
    scores = ps.evaluate(ps.load(run, which="last"), pack.split("val")).scores
    print(f"seed {seed}: {scores['accuracy']:.4f} in {time.perf_counter() - started:.0f} s", file=sys.stderr)
    return float(scores["accuracy"])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("photos", type=Path)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--backbone", default="mobilenet_v2")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    from benchmarks import clip_accuracy, tree_accuracy

    trials = {"trees": tree_accuracy.main, "ucf": clip_accuracy.main}
    trial = trials.get(sys.argv[1]) if len(sys.argv) > 1 else None
    sys.exit(main() if trial is None else trial(sys.argv[2:]))
