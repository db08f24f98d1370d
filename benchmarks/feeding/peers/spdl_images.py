"""SPDL: a pipeline of threads that decode whole batches with simplejpeg."""

from __future__ import annotations

import random
from collections.abc import Iterator

import spdl.pipeline

from benchmarks.feeding import decoding
from benchmarks.feeding.protocol import Batches, Epoch, Settings, serve


def build(settings: Settings) -> Epoch:
    files = decoding.listed(settings["folder"])
    batch, layout, workers = settings["batch"], settings["layout"], settings["workers"]

    def orders(epoch: int) -> Iterator[list[tuple[str, int]]]:
        order = random.Random(epoch).sample(files, len(files))
        for start in range(0, len(order), batch):
            yield order[start : start + batch]

    def epoch_of(epoch: int) -> Batches:
        builder = spdl.pipeline.PipelineBuilder().add_source(orders(epoch))
        builder.pipe(lambda part: decoding.batch_of(part, layout), concurrency=workers, output_order="input")
        pipeline = builder.add_sink(2 * workers).build(num_threads=workers)
        with pipeline.auto_stop():
            yield from pipeline.get_iterator()

    return epoch_of


if __name__ == "__main__":
    serve(["spdl", "simplejpeg", "opencv-python-headless"], build)
