"""DALI on the CPU: its decoder draws the crop and decodes that part."""

from __future__ import annotations

from typing import Any

import numpy as np
import nvidia.dali.fn as fn
import nvidia.dali.types as types
from nvidia.dali import pipeline_def

from benchmarks.feeding.protocol import Batches, Epoch, Settings, serve

SIDE = 224
MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]


@pipeline_def
def images(folder: str, layout: str) -> Any:
    data, labels = fn.readers.file(file_root=folder, random_shuffle=True, initial_fill=1024, name="files")
    # Smooth chroma and plain bilinear, as everybody else here.
    pixels = fn.decoders.image_random_crop(
        data,
        device="cpu",
        random_area=[0.08, 1.0],
        random_aspect_ratio=[3 / 4, 4 / 3],
        num_attempts=10,
        jpeg_fancy_upsampling=True,
    )
    pixels = fn.resize(pixels, size=[SIDE, SIDE], interp_type=types.INTERP_LINEAR, antialias=False)
    mirror = fn.random.coin_flip(probability=0.5)
    if layout == "uint8":
        return fn.flip(pixels, horizontal=mirror), labels
    normalised = fn.crop_mirror_normalize(
        pixels, dtype=types.FLOAT, output_layout="CHW", mean=MEAN, std=STD, mirror=mirror
    )
    return normalised, labels


def build(settings: Settings) -> Epoch:
    pipeline = images(
        settings["folder"],
        settings["layout"],
        batch_size=settings["batch"],
        num_threads=settings["workers"],
        device_id=None,
        prefetch_queue_depth=2,
    )
    pipeline.build()
    passes = pipeline.epoch_size("files") // settings["batch"]

    def epoch_of(epoch: int) -> Batches:
        for _ in range(passes):
            pixels, labels = pipeline.run()
            yield np.asarray(pixels.as_tensor()), np.asarray(labels.as_tensor())

    return epoch_of


if __name__ == "__main__":
    serve(["nvidia-dali-cuda120"], build)
