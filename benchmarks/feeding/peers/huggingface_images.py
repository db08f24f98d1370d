"""Hugging Face datasets: encoded images in Arrow, a transform with simplejpeg, torch's DataLoader around it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datasets
import torch
from torch.utils.data import DataLoader

from benchmarks.feeding import decoding
from benchmarks.feeding.protocol import Batches, Epoch, Settings, serve


def stored(settings: Settings) -> Path:
    return Path(settings["home"]) / "images.huggingface"


def prepare(settings: Settings) -> None:
    if stored(settings).exists():
        return
    files = decoding.listed(settings["folder"])

    def rows() -> Any:
        for path, label in files:
            yield {"image": Path(path).read_bytes(), "label": label}

    features = datasets.Features({"image": datasets.Value("large_binary"), "label": datasets.Value("int64")})
    cache = str(Path(settings["home"]) / "huggingface-cache")
    data = datasets.Dataset.from_generator(rows, features=features, cache_dir=cache)
    data.save_to_disk(str(stored(settings)))


def build(settings: Settings) -> Epoch:
    torch.set_num_threads(1)
    normalise = settings["layout"] == "float32"

    def transform(rows: dict[str, list[Any]]) -> dict[str, list[Any]]:
        pixels = [decoding.augmented(data) for data in rows["image"]]
        images = [torch.from_numpy(decoding.normalised(each) if normalise else each) for each in pixels]
        return {"image": images, "label": rows["label"]}

    data = datasets.load_from_disk(str(stored(settings))).with_transform(transform)
    loader = DataLoader(
        data,
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
    serve(["datasets", "torch", "simplejpeg", "opencv-python-headless"], build, prepare)
