"""The function that holds the GIL in a plain loop on one core: twice that is what two cores can do."""

from __future__ import annotations

import numpy as np

from benchmarks.feeding.protocol import Batches, Epoch, Settings, serve
from benchmarks.feeding.python_work import Work

CLASSES = 10


def build(settings: Settings) -> Epoch:
    pixels, work, batch = np.load(settings["array"])[: settings["count"]], Work(settings["rounds"]), settings["batch"]

    def epoch_of(epoch: int) -> Batches:
        for start in range(0, len(pixels), batch):
            images = [work({"image": image})["image"] for image in pixels[start : start + batch]]
            yield np.stack(images), np.arange(start, start + len(images)) % CLASSES

    return epoch_of


if __name__ == "__main__":
    serve(["numpy"], build)
