"""torch's DataLoader with torchvision's own transforms on Pillow images, as in its ImageNet example."""

from __future__ import annotations

import torch
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.transforms import InterpolationMode, v2

from benchmarks.feeding.protocol import Batches, Epoch, Settings, serve

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def transforms(layout: str) -> v2.Compose:
    # Pillow's bilinear filter always averages what it shrinks; it has no other.
    steps = [v2.RandomResizedCrop(224, interpolation=InterpolationMode.BILINEAR), v2.RandomHorizontalFlip()]
    if layout == "float32":
        return v2.Compose([*steps, v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)])
    return v2.Compose([*steps, v2.ToImage()])


def build(settings: Settings) -> Epoch:
    torch.set_num_threads(1)
    loader = DataLoader(
        ImageFolder(settings["folder"], transforms(settings["layout"])),
        batch_size=settings["batch"],
        shuffle=True,
        num_workers=settings["workers"],
        persistent_workers=True,
        prefetch_factor=4,
    )
    last_channel = settings["layout"] == "uint8"

    def epoch_of(epoch: int) -> Batches:
        for images, labels in loader:
            array = images.numpy()
            yield (array.transpose(0, 2, 3, 1) if last_channel else array), labels.numpy()

    return epoch_of


if __name__ == "__main__":
    serve(["torch", "torchvision", "pillow"], build)
