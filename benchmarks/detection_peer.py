"""DeepForest in an environment that has it: a line of JSON says what to do, another one how many seconds it took.

    {"do": "load", "weights": …}                                a network of its own with these weights
    {"do": "predict", "image": …}                               predict_tile in windows of 400 px
    {"do": "feed", "strategy": "window" | "single", "image": …} the windows alone, through its own loader
    {"do": "train_feed", "table": …, "folder": …, …}            batches of its own dataset for training

Run by benchmarks.detection, never by hand.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from typing import Any

import torch
import torchvision  # type: ignore[import-not-found,unused-ignore]
from deepforest import main as deepforest  # type: ignore[import-not-found,unused-ignore]
from deepforest.datasets import prediction, training  # type: ignore[import-not-found,unused-ignore]
from deepforest.models.retinanet import RetinaNetHub  # type: ignore[import-not-found,unused-ignore]

warnings.filterwarnings("ignore")
PATCH, OVERLAP = 400, 0.05


def loaded(weights: str) -> Any:
    """DeepForest as it is made for a model from the hub, its first weights random instead of downloaded."""
    torchvision.models.ResNet50_Weights.IMAGENET1K_V1.__class__.get_state_dict = lambda *_, **__: (
        torchvision.models.resnet50(weights=None).state_dict()
    )
    network = RetinaNetHub(num_classes=1, nms_thresh=0.05, score_thresh=0.1, label_dict={"Tree": 0})
    network.load_state_dict(torch.load(weights, weights_only=True))
    model = deepforest.deepforest(
        model=network, config_args={"num_classes": 1, "label_dict": {"Tree": 0}, "workers": 0, "accelerator": "cpu"}
    )
    model.set_labels({"Tree": 0})
    model.create_trainer(logger=False, enable_progress_bar=False, enable_model_summary=False)
    return model


def predicted(model: Any, image: str) -> int:
    found = model.predict_tile(path=image, patch_size=PATCH, patch_overlap=OVERLAP, iou_threshold=0.15)
    return 0 if found is None else len(found)


def fed(strategy: str, image: str) -> int:
    """All windows, each as the tensor that the network would get."""
    made = prediction.TiledRaster if strategy == "window" else prediction.SingleImage
    windows = made(path=image, patch_size=PATCH, patch_overlap=OVERLAP)
    loader = torch.utils.data.DataLoader(windows, batch_size=1, collate_fn=windows.collate_fn)
    return sum(len(batch) for batch in loader)


def train_fed(loaders: dict[str, Any], asked: dict[str, Any]) -> int:
    """One epoch of its training data; the table is read and checked when it is first asked for, untimed."""
    loader = loaders[asked["table"]]
    return sum(len(images) for images, _, _ in loader)


def train_loader(asked: dict[str, Any]) -> Any:
    data = training.BoxDataset(asked["table"], asked["folder"], augmentations=[{"HorizontalFlip": {"p": 0.5}}])
    return torch.utils.data.DataLoader(
        data,
        batch_size=asked["batch_size"],
        shuffle=True,
        collate_fn=data.collate_fn,
        num_workers=asked["workers"],
        persistent_workers=asked["workers"] > 0,
    )


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    model: Any = None
    loaders: dict[str, Any] = {}
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["do"] == "load":
            model = loaded(asked["weights"])
        if asked["do"] == "train_feed" and asked["table"] not in loaders:
            loaders[asked["table"]] = train_loader(asked)
        start, count = time.perf_counter(), 0
        if asked["do"] == "predict":
            count = predicted(model, asked["image"])
        elif asked["do"] == "feed":
            count = fed(asked["strategy"], asked["image"])
        elif asked["do"] == "train_feed":
            count = train_fed(loaders, asked)
        answers.write(json.dumps({"seconds": time.perf_counter() - start, "count": count}) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
