"""FFCV on raw pixels, as in its CIFAR-10 example: RandomTranslate is the crop with padding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from ffcv.fields import IntField, RGBImageField
from ffcv.fields.basics import IntDecoder
from ffcv.fields.rgb_image import SimpleRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import RandomHorizontalFlip, RandomTranslate, Squeeze, ToTensor
from ffcv.writer import DatasetWriter

from benchmarks.feeding.protocol import Batches, Epoch, Settings, serve

PADDING, CLASSES = 4, 10


class Pixels:
    def __init__(self, path: str) -> None:
        self.pixels = np.load(path, mmap_mode="r")

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return np.ascontiguousarray(self.pixels[index]), index % CLASSES


def written(settings: Settings) -> Path:
    return Path(settings["home"]) / "thumbnails.beton"


def prepare(settings: Settings) -> None:
    target = written(settings)
    if target.exists():
        return
    unfinished = target.with_suffix(".unfinished")
    writer = DatasetWriter(str(unfinished), {"image": RGBImageField("raw"), "label": IntField()}, num_workers=2)
    writer.from_indexed_dataset(Pixels(settings["array"]))
    unfinished.rename(target)


def build(settings: Settings) -> Epoch:
    steps = [SimpleRGBImageDecoder(), RandomHorizontalFlip(), RandomTranslate(PADDING), ToTensor()]
    loader = Loader(
        str(written(settings)),
        batch_size=settings["batch"],
        num_workers=settings["workers"],
        os_cache=True,
        order=OrderOption.RANDOM,
        drop_last=False,
        pipelines={"image": steps, "label": [IntDecoder(), ToTensor(), Squeeze()]},
    )

    def epoch_of(epoch: int) -> Batches:
        for images, labels in loader:
            yield images.numpy(), labels.numpy()

    return epoch_of


if __name__ == "__main__":
    serve(["ffcv", "numba", "torch"], build, prepare)
