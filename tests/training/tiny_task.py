"""A task of a few numbers, so that tests of training depend on no real one: is a sample bright or dark?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

import penstock as ps
from penstock.tasks.task import Answers, Batch, Goal, Judged

SIDE = 8
SCHEMA = ps.Schema((ps.Field("image", "image"), ps.Field("label", "class")), ("dark", "bright"))


class Shades:
    """Grey pictures of 8×8, dark or bright; sample `nan_at` has a label that no loss can take."""

    schema = SCHEMA

    def __init__(self, count: int = 64, seed: int = 0, nan_at: int | None = None) -> None:
        self.count, self.seed, self.nan_at = count, seed, nan_at

    def __len__(self) -> int:
        return self.count

    def read(self, index: int) -> ps.Raw:
        return ps.Raw(index, None)

    def decode(self, raw: ps.Raw) -> dict[str, Any]:
        rng = np.random.default_rng([self.seed, raw.index])
        label = raw.index % 2
        image = np.clip(rng.normal(90 + 80 * label, 45, (SIDE, SIDE, 3)), 0, 255).astype(np.uint8)
        return {"image": image, "label": np.int64(label), "key": f"shade_{raw.index}"}

    def annotations(self, index: int) -> dict[str, Any]:
        return {"label": np.int64(index % 2), "key": f"shade_{index}"}

    def column(self, name: str) -> np.ndarray[Any, Any]:
        if name == "label":
            return np.arange(self.count) % 2
        raise KeyError(name)

    def fingerprint(self) -> str:
        return f"shades {self.count} {self.seed}"


class TinyScores:
    """Accuracy and the number of samples, over all ranks."""

    def __init__(self) -> None:
        self.right, self.count = 0, 0

    def update(self, answers: Answers, batch: Batch) -> None:
        self.right += int((answers["probability"].round() == batch["label"]).sum())
        self.count += len(batch["label"])

    def compute(self) -> dict[str, float]:
        counts = torch.tensor([self.right, self.count])
        if torch.distributed.is_initialized():
            torch.distributed.all_reduce(counts)
        right, count = counts.tolist()
        return {"accuracy": right / count if count else math.nan, "seen": float(count)}

    def details(self) -> dict[str, Any]:
        return {"kind": "tiny", "right": self.right, "count": self.count}

    def worst(self) -> list[dict[str, Any]]:
        return [{"index": 0, "truth": "dark", "answer": "bright", "loss": 1.0}]

    def reset(self) -> None:
        self.right, self.count = 0, 0


class TinyNetwork(torch.nn.Module):
    """Two layers with dropout and a normalisation, which are where resuming goes wrong if it does.

    More than `most_rows` at a time are too much for it, as for a small device.
    """

    def __init__(self, dropout: float, most_rows: int) -> None:
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(3 * SIDE * SIDE, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU())
        self.head = torch.nn.Sequential(torch.nn.Dropout(dropout), torch.nn.Linear(8, 1))
        self.most_rows = most_rows

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if len(images) > self.most_rows:
            raise torch.OutOfMemoryError(f"CUDA out of memory. Tried to allocate {len(images)} rows.")
        answers: torch.Tensor = self.head(self.body(images.flatten(1).float() / 255)).squeeze(1)
        return answers


@dataclass(frozen=True)
class Tiny:
    """Bright or dark."""

    kind: ClassVar[str] = "tiny"
    dropout: float = 0.2
    noise: float = 0.1
    most_rows: int = 10**9
    nan_from: int | None = None  # labels of samples from here on are taken as no number
    record: str = ""  # the indices of every batch are appended to this file

    @property
    def classes(self) -> tuple[str, ...]:
        return SCHEMA.classes

    @property
    def goal(self) -> Goal:
        return Goal("accuracy")

    def settings(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "record"}

    def check(self, source: ps.Source, purpose: str) -> None:
        if not len(source):
            raise ps.OptionError(f"there are no samples for {purpose}.")

    def training_flow(self, source: ps.Source, *, seed: int, transform: Any = None, **options: Any) -> ps.Flow:
        flow = ps.Flow(source, seed, **options).shuffle()
        return flow if transform is None else flow.map(transform)

    def evaluation_flow(self, source: ps.Source, **options: Any) -> ps.Flow:
        return ps.Flow(source, **options)

    def augment(self, batch: Batch, *, seed: int, epoch: int) -> Batch:
        if self.record:
            rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
            with Path(f"{self.record}.{rank}").open("a") as file:
                file.write(f"{epoch}: {' '.join(map(str, batch['index'].tolist()))}\n")
        return batch

    def network(self) -> torch.nn.Module:
        return TinyNetwork(self.dropout, self.most_rows)

    def load_backbone(self, network: torch.nn.Module, weights: Mapping[str, torch.Tensor]) -> None:
        network.load_state_dict(weights)

    def stages(self, network: torch.nn.Module) -> Sequence[tuple[str, torch.nn.Module]]:
        return [(name, stage) for name, stage in network.named_children()]

    def loss(self, network: torch.nn.Module, batch: Batch) -> Mapping[str, torch.Tensor]:
        labels = batch["label"].float()
        if self.nan_from is not None:
            labels = torch.where(batch["index"] >= self.nan_from, torch.nan, labels)
        logits = network(batch["image"])
        loss = (logits.relu() - logits * labels + (1 + (-logits.abs()).exp()).log()).mean()
        return {"loss": loss}

    def judge(self, network: torch.nn.Module, batch: Batch) -> Judged:
        answers = self.answer(network, batch)
        probability, labels = answers["probability"].clamp(1e-6, 1 - 1e-6), batch["label"].float()
        return Judged({"loss": torch.nn.functional.binary_cross_entropy(probability, labels)}, answers)

    def answer(self, network: torch.nn.Module, batch: Batch) -> Answers:
        return {"probability": network(batch["image"]).sigmoid()}

    def scores(self) -> TinyScores:
        return TinyScores()

    def rows(self, answers: Answers, batch: Batch) -> list[dict[str, Any]]:
        return [{"score": float(score)} for score in answers["probability"]]


def recorded(record: str | Path, rank: int = 0) -> list[str]:
    """The lines that a task wrote of the batches it saw."""
    return Path(f"{record}.{rank}").read_text().splitlines()
