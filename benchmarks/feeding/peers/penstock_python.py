"""Penstock with a user's function that holds the GIL; which executor it takes is its own decision."""

from __future__ import annotations

import penstock as ps
from benchmarks.feeding.protocol import Batches, Epoch, Settings, serve
from benchmarks.feeding.python_work import Work


def build(settings: Settings) -> Epoch:
    samples = ps.Subset(ps.open(settings["pack"]), range(settings["count"]))
    flow = ps.Flow(samples, seed=7).shuffle().map(Work(settings["rounds"])).batch(settings["batch"])

    def epoch_of(epoch: int) -> Batches:
        for batch in flow.epoch(epoch):
            yield batch["image"], batch["label"]

    return epoch_of


if __name__ == "__main__":
    serve(["penstock"], build)
