"""DeepForest's evaluate_boxes in an environment that has it: waits for a line, evaluates, answers with the scores.

Both tables are GeoDataFrames in memory before it begins. Run by benchmarks.boxes, never by hand.
"""

from __future__ import annotations

import json
import sys

import pandas as pd
from deepforest.evaluate import evaluate_boxes  # type: ignore[import-not-found,unused-ignore]
from deepforest.utilities import read_file  # type: ignore[import-not-found,unused-ignore]


def main() -> None:
    found, truth = (read_file(pd.read_csv(path), root_dir=".") for path in sys.argv[1:3])
    print("ready", flush=True)
    for _ in sys.stdin:
        scores = evaluate_boxes(found, truth, iou_threshold=0.4)
        print(json.dumps({name: float(scores[name]) for name in ("box_precision", "box_recall")}), flush=True)


if __name__ == "__main__":
    main()
