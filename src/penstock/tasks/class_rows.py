"""Answers of classification as rows of the table that users see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from penstock.tasks.task import Answers, Batch

OWN_COLUMNS = ("image_path", "key", "index", "label", "score", "truth", "loss")
JOINED_BY = ";"


def class_columns(classes: Sequence[str]) -> list[str]:
    """The column of each class: its name, unless another column is called so."""
    return [f"{name} (class)" if name in OWN_COLUMNS else name for name in classes]


def class_rows(classes: Sequence[str], answers: Answers, batch: Batch, threshold: float | None) -> list[dict[str, Any]]:
    """One row for each sample; with a threshold every label that reaches it, and the score of the best one."""
    probabilities = answers["probabilities"].detach().float().cpu()
    scores = probabilities.max(dim=1).values.tolist() if len(probabilities) else []
    columns = class_columns(classes)
    rows = [
        {"label": label, "score": score, **dict(zip(columns, each, strict=True))}
        for label, score, each in zip(
            _labels(classes, probabilities, threshold), scores, probabilities.tolist(), strict=True
        )
    ]
    return rows if "loss" not in answers else _judged(rows, classes, answers, batch)


def _labels(classes: Sequence[str], probabilities: torch.Tensor, threshold: float | None) -> list[str]:
    if not len(probabilities):
        return []
    if threshold is None:
        return [classes[number] for number in probabilities.argmax(dim=1).tolist()]
    return _joined(classes, probabilities >= threshold)


def _joined(classes: Sequence[str], present: torch.Tensor) -> list[str]:
    return [
        JOINED_BY.join(name for name, is_there in zip(classes, row, strict=True) if is_there)
        for row in present.tolist()
    ]


def _judged(rows: list[dict[str, Any]], classes: Sequence[str], answers: Answers, batch: Batch) -> list[dict[str, Any]]:
    """Rows with what is true and how wrong the answer is; truth is empty where there is no label."""
    labels = batch["label"].cpu()
    if labels.ndim == 2:
        truths = _joined(classes, labels > 0)
    else:
        truths = [classes[number] if number >= 0 else "" for number in labels.tolist()]
    losses = answers["loss"].detach().float().cpu().tolist()
    return [
        {"label": row.pop("label"), "score": row.pop("score"), "truth": truth, "loss": loss, **row}
        for row, truth, loss in zip(rows, truths, losses, strict=True)
    ]
