"""Penstock on a pack of raw pixels."""

from __future__ import annotations

import penstock as ps
from benchmarks.feeding.protocol import Batches, Epoch, Settings, serve


def build(settings: Settings) -> Epoch:
    flow = ps.Flow(ps.open(settings["pack"]), seed=7).shuffle().map(ps.augment.RandomCrop(32, padding=4))
    flow = flow.map(ps.augment.HorizontalFlip()).batch(settings["batch"])

    def epoch_of(epoch: int) -> Batches:
        for batch in flow.epoch(epoch):
            yield batch["image"], batch["label"]

    return epoch_of


if __name__ == "__main__":
    serve(["penstock"], build)
