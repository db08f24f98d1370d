"""torch's DataLoader, in processes, with a user's function that holds the GIL."""

from __future__ import annotations

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from benchmarks.feeding.protocol import Batches, Epoch, Settings, serve
from benchmarks.feeding.python_work import Work

CLASSES = 10


class Samples(Dataset[dict[str, object]]):
    def __init__(self, settings: Settings) -> None:
        self.pixels, self.work = np.load(settings["array"])[: settings["count"]], Work(settings["rounds"])

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, index: int) -> dict[str, object]:
        return self.work({"image": torch.from_numpy(self.pixels[index]), "label": index % CLASSES})


def build(settings: Settings) -> Epoch:
    torch.set_num_threads(1)
    loader = DataLoader(
        Samples(settings),
        batch_size=settings["batch"],
        shuffle=True,
        num_workers=settings["workers"],
        persistent_workers=True,
        prefetch_factor=4,
    )

    def epoch_of(epoch: int) -> Batches:
        for batch in loader:
            yield batch["image"].numpy(), batch["label"].numpy()

    return epoch_of


if __name__ == "__main__":
    serve(["torch", "numpy"], build)
