"""Prepared ailments: flows and models with a known fault each, and the same with the fault cured."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps
from benchmarks.pictures import picture
from benchmarks.videos import write as write_videos
from penstock.codecs.images import encode_image

Step = Callable[[dict[str, Any]], Any]
Case = tuple[ps.Flow, Step | None]
SIZE = 224
LOOPS = 150_000  # of the slow function: some milliseconds
DISK_BYTES = 4e6  # a second: about 100 of the packed photographs
STEP_SECONDS = 0.01


@dataclass(frozen=True)
class Ailment:
    """A fault: what the doctor must name, which remedy it must have, and the patient before and after each remedy."""

    name: str
    resource: str
    hop: str
    remedy: str
    sick: Callable[[], Case]
    cures: dict[str, Callable[[], Case]]  # by the name of the remedy: all that are compared where they are proposed


def usual(source: Any, batch: int = 16, **options: Any) -> ps.Flow:
    """What most trainings on images do."""
    flow = ps.Flow(source, seed=1, **options).shuffle().map(ps.augment.RandomResizedCrop(SIZE))
    return flow.map(ps.augment.HorizontalFlip()).batch(batch)


def cached(source: Any) -> ps.Flow:
    """The same with decoded images in memory."""
    flow = ps.Flow(source, seed=1).shuffle().cache().map(ps.augment.RandomResizedCrop(SIZE))
    return flow.map(ps.augment.HorizontalFlip()).batch(16)


def slow_function(image: Any) -> Any:
    """Python that holds the GIL."""
    total = 0
    for number in range(LOOPS):
        total += number
    return image


def mapped(source: Any, **options: Any) -> ps.Flow:
    """A flow with the slow function in it."""
    flow = ps.Flow(source, seed=1, **options).shuffle().map(ps.augment.RandomResizedCrop(SIZE))
    return flow.map(slow_function, field="image").batch(16)


def fixed_cost(batch: dict[str, Any]) -> None:
    """A model whose time does not depend on the samples of a batch."""
    time.sleep(STEP_SECONDS)


def slow_model(batch: dict[str, Any]) -> None:
    """A model that takes its time for every sample."""
    time.sleep(STEP_SECONDS * len(batch["index"]))


def no_model(batch: dict[str, Any]) -> None:
    """A model that is always faster than the feed."""


class Throttled:
    """A source whose bytes come at the rate of a slow disk, however many ask for them."""

    encoded_images = True

    def __init__(self, source: Any, bytes_per_second: float) -> None:
        self.source, self.bytes_per_second = source, bytes_per_second
        self.schema = source.schema
        self._disk = threading.Lock()

    def __len__(self) -> int:
        return len(self.source)

    def read(self, index: int) -> ps.Raw:
        raw = self.source.read(index)
        if math.isfinite(self.bytes_per_second):
            with self._disk:
                time.sleep(len(raw.data) / self.bytes_per_second)
        return ps.Raw(index, bytes(raw.data))

    def decode(self, raw: ps.Raw) -> dict[str, Any]:
        return dict(self.source.decode(raw))

    def annotations(self, index: int) -> dict[str, Any]:
        return dict(self.source.annotations(index))


class Ward:
    """The data of all ailments, made once in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def photographs(self, width: int = 2000, height: int = 1500, count: int = 160) -> Path:
        """Class folders of large photographs."""
        home = self.folder / f"photographs-{width}"
        for number in range(count):
            file = home / "ab"[number % 2] / f"{number:04d}.jpg"
            if not file.exists():
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(encode_image(picture(number, width, height), "jpeg"))
        return home

    def pack(self) -> ps.Pack:
        """The same photographs as one stores them for training."""
        return self.packed(ps.Images(self.photographs()), "photographs.pack", shortest_side=256)

    def packed(self, source: Any, name: str, **options: Any) -> ps.Pack:
        path = self.folder / name
        return ps.Pack(path) if path.exists() else ps.pack(source, path, split="train", progress=False, **options)

    def hdf5(self, side: int = 512, count: int = 160) -> Path:
        """Compressed pixels, an image a chunk."""
        import h5py

        path = self.folder / "images.h5"
        if not path.exists():
            unfinished = path.with_suffix(".unfinished")
            with h5py.File(unfinished, "w") as file:
                shape = (count, side, side, 3)
                images = file.create_dataset("image", shape, "uint8", chunks=(1, *shape[1:]), compression="gzip")
                for number in range(count):
                    images[number] = picture(number, side, side)
                file.create_dataset("label", data=np.arange(count) % 2)
            unfinished.rename(path)
        return path

    def videos(self) -> ps.Videos:
        """Half a minute in six files of long groups of pictures."""
        folder = self.folder / "videos"
        write_videos(folder, 1)
        return ps.Videos(folder)


def ailments(ward: Ward) -> list[Ailment]:
    """All of them; data are made when a patient is asked for."""
    images = lambda: ps.Images(ward.photographs())  # noqa: E731 - as short as the table that it stands in
    disk = lambda bytes_per_second=DISK_BYTES: Throttled(ward.pack(), bytes_per_second)  # noqa: E731
    return [
        Ailment(
            "oversized JPEGs",
            "cores",
            "decode",
            "pack",
            lambda: (usual(images()), None),
            {"pack": lambda: (usual(ward.pack()), None), "cache": lambda: (cached(images()), None)},
        ),
        Ailment(
            "slow Python function in threads",
            "gil",
            "transform",
            "executor",
            lambda: (mapped(ward.pack(), executor="thread"), None),
            {"executor": lambda: (mapped(ward.pack(), executor="process"), None)},
        ),
        Ailment(
            "long-GOP video",
            "cores",
            "read",
            "pack",
            lambda: (usual(ward.videos(), 8), None),
            {"pack": lambda: (usual(ward.packed(ward.videos(), "videos.pack"), 8), None)},
        ),
        Ailment(
            "HDF5's lock",
            "lock",
            "read",
            "executor",
            lambda: (usual(ps.open(ward.hdf5())), None),
            {
                "executor": lambda: (usual(ps.open(ward.hdf5()), executor="process"), None),
                "pack": lambda: (usual(ward.packed(ps.open(ward.hdf5()), "hdf5.pack", shortest_side=256)), None),
                "cache": lambda: (cached(ps.open(ward.hdf5())), None),
            },
        ),
        Ailment(
            "tiny batches",
            "model",
            "model",
            "batch",
            lambda: (usual(ward.pack(), 2), fixed_cost),
            {
                "batch": lambda: (usual(ward.pack(), 8), fixed_cost),
                "model": lambda: (usual(ward.pack(), 2), no_model),
            },
        ),
        Ailment(
            "slow disk",
            "disk",
            "read",
            "cache",
            lambda: (usual(disk()), None),
            {"cache": lambda: (cached(disk()), None), "disk": lambda: (usual(disk(math.inf)), None)},
        ),
        Ailment(
            "slow model",
            "model",
            "model",
            "model",
            lambda: (usual(ward.pack()), slow_model),
            {"model": lambda: (usual(ward.pack()), no_model)},
        ),
        Ailment(
            "one worker",
            "workers",
            "decode",
            "workers",
            lambda: (usual(ward.pack(), workers=1), None),
            {"workers": lambda: (usual(ward.pack()), None)},
        ),
        Ailment(
            "no workers beside a model",
            "calling thread",
            "decode",
            "workers",
            lambda: (usual(ward.pack(), workers=0), fixed_cost),
            {"workers": lambda: (usual(ward.pack()), fixed_cost)},
        ),
    ]
