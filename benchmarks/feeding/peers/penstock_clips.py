"""Penstock: clips out of a pack of frames."""

from __future__ import annotations

import penstock as ps
from benchmarks.feeding.protocol import Batches, Epoch, Settings, serve


def build(settings: Settings) -> Epoch:
    flow = ps.Flow(ps.open(settings["pack"]), seed=7).clips(frames=settings["frames"], edge="drop").shuffle()
    flow = flow.take(settings["count"]).batch(settings["batch"])

    def epoch_of(epoch: int) -> Batches:
        for batch in flow.epoch(epoch):
            yield batch["image"], batch["index"]

    return epoch_of


if __name__ == "__main__":
    serve(["penstock"], build)
