"""WebDataset: tar shards read in order, a shuffle buffer, decoded with simplejpeg in processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import webdataset

from benchmarks.feeding import decoding
from benchmarks.feeding.protocol import Batches, Epoch, Settings, serve

SHARDS, BUFFER = 8, 1000


def stored(settings: Settings) -> Path:
    return Path(settings["home"]) / "images.webdataset"


def prepare(settings: Settings) -> None:
    if stored(settings).exists():
        return
    unfinished = stored(settings).with_suffix(".unfinished")
    unfinished.mkdir(exist_ok=True)
    files = decoding.listed(settings["folder"])
    for shard in range(SHARDS):
        with webdataset.TarWriter(str(unfinished / f"{shard:03d}.tar")) as writer:
            for path, label in files[shard::SHARDS]:
                writer.write({"__key__": Path(path).stem, "jpg": Path(path).read_bytes(), "cls": str(label)})
    unfinished.rename(stored(settings))


def build(settings: Settings) -> Epoch:
    torch.set_num_threads(1)
    normalise = settings["layout"] == "float32"

    def loaded(sample: dict[str, Any]) -> tuple[Any, int]:
        pixels = decoding.augmented(sample["jpg"])
        return torch.from_numpy(decoding.normalised(pixels) if normalise else pixels), int(sample["cls"])

    shards = [str(path) for path in sorted(stored(settings).glob("*.tar"))]
    data = webdataset.WebDataset(shards, shardshuffle=SHARDS).shuffle(BUFFER).map(loaded)
    loader = webdataset.WebLoader(
        data,
        batch_size=settings["batch"],
        num_workers=settings["workers"],
        persistent_workers=True,
        prefetch_factor=4,
    )

    def epoch_of(epoch: int) -> Batches:
        for images, labels in loader:
            yield images.numpy(), labels.numpy()

    return epoch_of


if __name__ == "__main__":
    serve(["webdataset", "torch", "simplejpeg", "opencv-python-headless"], build, prepare)
