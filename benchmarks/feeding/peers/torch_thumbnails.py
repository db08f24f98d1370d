"""torch's DataLoader on raw pixels: whole batches at a time with vectorised numpy, or sample by sample."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

from benchmarks.feeding import thumbnailing
from benchmarks.feeding.protocol import Batches, Epoch, Settings, serve

SIDE, PADDING = thumbnailing.SIDE, thumbnailing.PADDING


class WholeBatches(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    def __init__(self, pixels: Any) -> None:
        self.pixels, self.rng = pixels, np.random.default_rng()

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, indices: Any) -> tuple[torch.Tensor, torch.Tensor]:
        chosen = np.array(indices)
        images = thumbnailing.batch_of(self.pixels, chosen, self.rng)
        return torch.from_numpy(images), torch.from_numpy(chosen % thumbnailing.CLASSES)


class Samples(Dataset[tuple[torch.Tensor, int]]):
    def __init__(self, pixels: Any) -> None:
        self.pixels = np.pad(pixels, ((0, 0), (PADDING, PADDING), (PADDING, PADDING), (0, 0)))

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        x, y = random.randint(0, 2 * PADDING), random.randint(0, 2 * PADDING)
        image = self.pixels[index, y : y + SIDE, x : x + SIDE]
        if random.random() < 0.5:
            image = np.ascontiguousarray(image[:, ::-1])
        return torch.from_numpy(image), index % thumbnailing.CLASSES


def build(settings: Settings) -> Epoch:
    torch.set_num_threads(1)
    pixels, batch = np.load(settings["array"]), settings["batch"]
    shared: dict[str, Any] = {"num_workers": settings["workers"], "persistent_workers": True, "prefetch_factor": 4}
    if settings["whole_batches"]:
        data = WholeBatches(pixels)
        loader = DataLoader(data, sampler=BatchSampler(RandomSampler(data), batch, False), batch_size=None, **shared)
    else:
        loader = DataLoader(Samples(pixels), batch_size=batch, shuffle=True, **shared)

    def epoch_of(epoch: int) -> Batches:
        for images, labels in loader:
            yield images.numpy(), labels.numpy()

    return epoch_of


if __name__ == "__main__":
    serve(["torch", "numpy"], build)
