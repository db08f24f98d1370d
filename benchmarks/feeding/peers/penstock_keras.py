"""Penstock, a folder of JPEGs or a pack through to_keras, asked as `fit` asks: every number once, permuted."""

from __future__ import annotations

import os
import random
from typing import Any

os.environ["KERAS_BACKEND"] = "torch"  # any will do: batches are numpy arrays until the network gets them

import keras  # noqa: F401 - as peers import theirs before the clock starts
import numpy as np
import pyarrow  # noqa: F401

import penstock as ps
from benchmarks.feeding.protocol import Batches, Epoch, Settings, serve


def as_float(batch: dict[str, Any]) -> dict[str, Any]:
    return {**batch, "image": batch["image"].astype(np.float32)}


def build(settings: Settings) -> Epoch:
    source = ps.open(settings["pack"]) if "pack" in settings else ps.Images(settings["folder"])
    flow = ps.Flow(source, seed=7, workers=settings["workers"], fast_decode=settings.get("fast", "auto"))
    flow = flow.shuffle().map(ps.augment.Resize(224)).batch(settings["batch"])
    if settings["dtype"] == "float32":
        flow = flow.map(as_float, batched=True)
    dataset = flow.to_keras()

    def epoch_of(epoch: int) -> Batches:
        dataset.on_epoch_begin()
        for number in random.sample(range(dataset.num_batches), dataset.num_batches):
            yield dataset[number]
        dataset.on_epoch_end()

    return epoch_of


if __name__ == "__main__":
    serve(["penstock", "keras"], build)
