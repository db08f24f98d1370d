"""FFCV: its own file of JPEGs, compiled loops. It resizes with OpenCV's area filter and offers no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
from ffcv.fields import IntField, RGBImageField
from ffcv.fields.basics import IntDecoder
from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, Squeeze, ToTensor, ToTorchImage
from ffcv.writer import DatasetWriter

from benchmarks.feeding.protocol import Batches, Epoch, Settings, serve

MEAN, STD = np.array([123.675, 116.28, 103.53]), np.array([58.395, 57.12, 57.375])
# How the pictures were written; FFCV encodes them again.
QUALITY = 93


class Files:
    def __init__(self, folder: str) -> None:
        self.paths = sorted(Path(folder).glob("class_*/*.jpg"))

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        path = self.paths[index]
        return cv2.imread(str(path), cv2.IMREAD_COLOR_RGB), int(path.parent.name.removeprefix("class_"))


def written(settings: Settings) -> Path:
    return Path(settings["home"]) / f"images-{settings['raw_share']}.beton"


def prepare(settings: Settings) -> None:
    target = written(settings)
    if target.exists():
        return
    unfinished = target.with_suffix(".unfinished")
    image = RGBImageField("proportion", jpeg_quality=QUALITY, compress_probability=1 - settings["raw_share"])
    DatasetWriter(str(unfinished), {"image": image, "label": IntField()}, num_workers=2).from_indexed_dataset(
        Files(settings["folder"])
    )
    unfinished.rename(target)


def build(settings: Settings) -> Epoch:
    steps = [RandomResizedCropRGBImageDecoder((224, 224)), RandomHorizontalFlip()]
    if settings["layout"] == "float32":
        steps += [NormalizeImage(MEAN, STD, np.float32), ToTensor(), ToTorchImage(channels_last=False)]
    else:
        steps += [ToTensor()]
    loader = Loader(
        str(written(settings)),
        batch_size=settings["batch"],
        num_workers=settings["workers"],
        os_cache=True,
        order=OrderOption.RANDOM,
        pipelines={"image": steps, "label": [IntDecoder(), ToTensor(), Squeeze()]},
    )

    def epoch_of(epoch: int) -> Batches:
        for images, labels in loader:
            yield images.numpy(), labels.numpy()

    return epoch_of


if __name__ == "__main__":
    serve(["ffcv", "numba", "torch"], build, prepare)
