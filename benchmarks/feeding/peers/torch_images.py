"""torch's DataLoader: processes that decode with simplejpeg or OpenCV."""

from __future__ import annotations

from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset

from benchmarks.feeding import decoding
from benchmarks.feeding.protocol import Batches, Epoch, Settings, serve


class Images(Dataset[tuple[torch.Tensor, int]]):
    def __init__(self, settings: Settings) -> None:
        self.files = decoding.listed(settings["folder"])
        self.decode = decoding.DECODERS[settings["decoder"]]
        self.normalise = settings["layout"] == "float32"

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        path, label = self.files[index]
        pixels = decoding.augmented(Path(path).read_bytes(), self.decode)
        return torch.from_numpy(decoding.normalised(pixels) if self.normalise else pixels), label


def build(settings: Settings) -> Epoch:
    torch.set_num_threads(1)
    loader = DataLoader(
        Images(settings),
        batch_size=settings["batch"],
        shuffle=True,
        num_workers=settings["workers"],
        persistent_workers=True,
        prefetch_factor=4,
    )

    def epoch_of(epoch: int) -> Batches:
        for images, labels in loader:
            yield images.numpy(), labels.numpy()

    return epoch_of


if __name__ == "__main__":
    serve(["torch", "simplejpeg", "opencv-python-headless"], build)
