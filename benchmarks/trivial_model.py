"""A model that does nothing, for Penstock and for plain Lightning; and the loaders that people write by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import lightning.pytorch as lightning
import numpy as np
import simplejpeg
import torch
from torch.utils.data import DataLoader, Dataset

import penstock as ps

CLASSES = 10
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def trivial_loss(
    head: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor, channels_first: bool
) -> torch.Tensor:
    """From one pixel: next to nothing is computed."""
    pixel = images[:, :, 0, 0] if channels_first else images[:, 0, 0]
    return torch.nn.functional.cross_entropy(head(pixel.float()), labels)


@dataclass(frozen=True)
class Trivial(ps.Classification):
    """The crops and flips of Classification, and a network that looks at one pixel."""

    colour: float = 0.0

    def network(self) -> torch.nn.Module:
        return torch.nn.Linear(3, CLASSES)

    def augment(self, batch: dict[str, Any], *, seed: int, epoch: int) -> dict[str, Any]:
        return batch

    def loss(self, network: torch.nn.Module, batch: dict[str, Any]) -> Mapping[str, torch.Tensor]:
        return {"loss": trivial_loss(network, batch["image"], batch["label"], channels_first=False)}


class PlainModule(lightning.LightningModule):
    """The same for batches of (images, labels)."""

    def __init__(self, *, channels_first: bool) -> None:
        super().__init__()
        self.head, self.channels_first = torch.nn.Linear(3, CLASSES), channels_first

    def training_step(self, batch: Any, batch_number: int) -> torch.Tensor:
        loss = trivial_loss(self.head, *batch, self.channels_first)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters())


def _loader(dataset: Any, batch_size: int, workers: int) -> Any:
    return DataLoader(
        dataset, batch_size, shuffle=True, num_workers=workers, persistent_workers=True, prefetch_factor=4
    )


def torchvision_loader(folder: Path, batch_size: int, workers: int, side: int) -> Any:
    """As in torchvision's own examples."""
    from torchvision import datasets, transforms

    steps = [
        transforms.RandomResizedCrop(side, scale=(0.35, 1.0)),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(MEAN, STD),
    ]
    return _loader(datasets.ImageFolder(str(folder), transforms.Compose(steps)), batch_size, workers)


class HandWritten(Dataset):  # type: ignore[type-arg]
    """The fastest that is written by hand: simplejpeg, a crop of the array, OpenCV, uint8 for the device."""

    def __init__(self, folder: Path, side: int) -> None:
        self.paths = sorted(folder.rglob("*.jpg"))
        self.labels = [int(path.parent.name.split("_")[1]) for path in self.paths]
        self.side = side

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        data = self.paths[index].read_bytes()
        image = simplejpeg.decode_jpeg(data, fastdct=True, fastupsample=True)
        height, width = image.shape[:2]
        area = height * width * np.random.uniform(0.35, 1.0)
        ratio = np.exp(np.random.uniform(np.log(3 / 4), np.log(4 / 3)))
        crop_width = min(width, round((area * ratio) ** 0.5))
        crop_height = min(height, round((area / ratio) ** 0.5))
        x, y = np.random.randint(0, width - crop_width + 1), np.random.randint(0, height - crop_height + 1)
        crop = image[y : y + crop_height, x : x + crop_width]
        small = cv2.resize(crop, (self.side, self.side), interpolation=cv2.INTER_LINEAR)
        if np.random.random() < 0.5:
            small = cv2.flip(small, 1)
        return torch.from_numpy(small), self.labels[index]


def hand_written_loader(folder: Path, batch_size: int, workers: int, side: int) -> Any:
    """OpenCV with one thread in each worker."""
    cv2.setNumThreads(1)
    return _loader(HandWritten(folder, side), batch_size, workers)
