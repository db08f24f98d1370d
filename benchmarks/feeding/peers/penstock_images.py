"""Penstock: the flow that its page shows, on a pack that keeps the JPEGs as they are, or smaller ones."""

from __future__ import annotations

import numpy  # noqa: F401 - as peers import theirs before the clock starts
import pyarrow  # noqa: F401

import penstock as ps
from benchmarks.feeding.protocol import Batches, Epoch, Settings, serve


def flow_of(settings: Settings) -> ps.Flow:
    flow = ps.Flow(ps.open(settings["pack"]), seed=7, workers=settings["workers"])
    flow = flow.shuffle().map(ps.augment.RandomResizedCrop(224)).map(ps.augment.HorizontalFlip())
    if settings["layout"] == "float32":
        flow = flow.map(ps.augment.Normalize())
    return flow.batch(settings["batch"])


def build(settings: Settings) -> Epoch:
    flow = flow_of(settings)

    def epoch_of(epoch: int) -> Batches:
        for batch in flow.epoch(epoch):
            yield batch["image"], batch["label"]

    return epoch_of


if __name__ == "__main__":
    serve(["penstock"], build)
