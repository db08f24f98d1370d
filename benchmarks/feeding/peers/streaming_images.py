"""MosaicML Streaming: MDS shards of encoded images, decoded with simplejpeg in processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streaming
import torch
from torch.utils.data import DataLoader

from benchmarks.feeding import decoding
from benchmarks.feeding.protocol import Batches, Epoch, Settings, serve


def stored(settings: Settings) -> Path:
    return Path(settings["home"]) / "images.mds"


def prepare(settings: Settings) -> None:
    streaming.base.util.clean_stale_shared_memory()  # an interrupted run leaves names behind
    if (stored(settings) / "index.json").exists():
        return
    with streaming.MDSWriter(out=str(stored(settings)), columns={"image": "bytes", "label": "int"}) as writer:
        for path, label in decoding.listed(settings["folder"]):
            writer.write({"image": Path(path).read_bytes(), "label": label})


class Images(streaming.StreamingDataset):
    def __init__(self, settings: Settings) -> None:
        super().__init__(local=str(stored(settings)), shuffle=True, batch_size=settings["batch"])
        self.normalise = settings["layout"] == "float32"

    def __getitem__(self, index: Any) -> tuple[torch.Tensor, int]:
        sample = super().__getitem__(index)
        pixels = decoding.augmented(sample["image"])
        return torch.from_numpy(decoding.normalised(pixels) if self.normalise else pixels), sample["label"]


def build(settings: Settings) -> Epoch:
    torch.set_num_threads(1)
    loader = DataLoader(
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
    serve(["mosaicml-streaming", "torch", "simplejpeg", "opencv-python-headless"], build, prepare)
