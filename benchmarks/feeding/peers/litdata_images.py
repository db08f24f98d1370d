"""LitData: optimised chunks of encoded images, decoded with simplejpeg in processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import litdata
import torch

from benchmarks.feeding import decoding
from benchmarks.feeding.protocol import Batches, Epoch, Settings, serve


def stored(settings: Settings) -> Path:
    return Path(settings["home"]) / "images.litdata"


def row(file: tuple[str, int]) -> dict[str, Any]:
    return {"image": Path(file[0]).read_bytes(), "label": file[1]}


def prepare(settings: Settings) -> None:
    if (stored(settings) / "index.json").exists():
        return
    files = decoding.listed(settings["folder"])
    litdata.optimize(row, files, str(stored(settings)), chunk_bytes="64MB", num_workers=2, mode="overwrite")


class Images(litdata.StreamingDataset):
    def __init__(self, settings: Settings) -> None:
        super().__init__(str(stored(settings)), shuffle=True)
        self.normalise = settings["layout"] == "float32"

    def __getitem__(self, index: Any) -> tuple[torch.Tensor, int]:
        sample = super().__getitem__(index)
        pixels = decoding.augmented(sample["image"])
        return torch.from_numpy(decoding.normalised(pixels) if self.normalise else pixels), sample["label"]


def build(settings: Settings) -> Epoch:
    torch.set_num_threads(1)
    loader = litdata.StreamingDataLoader(
        Images(settings),
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
    serve(["litdata", "torch", "simplejpeg", "opencv-python-headless"], build, prepare)
