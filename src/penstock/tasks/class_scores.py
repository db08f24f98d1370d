"""Answers of classification as scores over a whole set, and as rows of the table that users see.

accuracy            the share of right answers; with several labels a sample, of the answers for each label
balanced_accuracy   the mean over classes of the share that was found; with several labels, and of what was rightly left
f1                  the mean over classes of F1
auroc               the mean over classes of the area under the ROC curve of this class against the others

Classes that the set has no sample of are left out of means. Samples without a label count for nothing. A score that
cannot be told is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.functional import one_hot
from torchmetrics import Metric
from torchmetrics.functional.classification import binary_auroc
from torchmetrics.utilities import dim_zero_cat

from penstock.tasks.task import Answers, Batch

# Areas need every probability of every sample; with more classes than this that is too much memory, and NaN is given.
MOST_CLASSES_FOR_AUROC = 200
WORST_SAMPLES = 24


class ClassScores(Metric):
    """Counts of each class, and for the areas the probabilities; torchmetrics adds them up over ranks."""

    full_state_update = False
    counts: torch.Tensor  # class × (found, wrongly found, missed, rightly left)
    confusion: torch.Tensor  # true class × answered class, where a sample has one class
    probabilities: list[torch.Tensor]
    worst_rows: list[torch.Tensor]  # loss, index, probabilities and truths of the samples with the largest losses
    truths: list[torch.Tensor]  # 1 where a class is in a sample, 0 where it is not, −1 where nobody knows

    def __init__(self, classes: tuple[str, ...], *, multi_label: bool = False, threshold: float = 0.5) -> None:
        super().__init__()
        self.classes, self.multi_label, self.threshold = classes, multi_label, threshold
        self._details: dict[str, Any] = {}
        self._worst: list[dict[str, Any]] = []
        count = len(classes)
        self.add_state("counts", torch.zeros(count, 4, dtype=torch.int64), dist_reduce_fx="sum")
        self.add_state("confusion", torch.zeros(count, count, dtype=torch.int64), dist_reduce_fx="sum")
        self.add_state("probabilities", [], dist_reduce_fx="cat")
        self.add_state("truths", [], dist_reduce_fx="cat")
        self.add_state("worst_rows", [], dist_reduce_fx="cat")
        self._begin()

    def _begin(self) -> None:
        """Nothing yet, in the shape of something: what ranks put together must have the same dimensions on all."""
        count = len(self.classes)
        self.probabilities = [torch.zeros(0, count, device=self.device)]
        self.truths = [torch.zeros(0, count, dtype=torch.int8, device=self.device)]
        self.worst_rows = [torch.zeros(0, 2 + 2 * count, dtype=torch.float64, device=self.device)]

    def reset(self) -> None:
        super().reset()
        self._begin()

    def update(self, answers: Answers, batch: Batch) -> None:
        """Add a batch with labels."""
        probabilities, labels = answers["probabilities"].detach().float(), batch["label"]
        index, losses = batch["index"], answers["loss"].detach()
        if self.multi_label:
            answered = (probabilities >= self.threshold).long()
        else:
            known = labels >= 0
            probabilities, labels, index, losses = (one[known] for one in (probabilities, labels, index, losses))
            best = probabilities.argmax(dim=1)
            self.confusion += _confused(labels, best, len(self.classes))
            labels, answered = one_hot(labels, len(self.classes)), one_hot(best, len(self.classes))
        self.counts += _counted(labels, answered)
        if len(self.classes) <= MOST_CLASSES_FOR_AUROC:
            self.probabilities.append(probabilities)
            self.truths.append(labels.to(torch.int8))
        self._keep_worst(torch.cat([losses[:, None], index[:, None], probabilities, labels], dim=1).double())

    def _keep_worst(self, rows: torch.Tensor) -> None:
        self.worst_rows = [_largest(torch.cat([*self.worst_rows, rows]))]

    def compute(self) -> dict[str, float]:
        """accuracy, balanced_accuracy, f1 and auroc."""
        found, mistaken, missed, left = self.counts.double().unbind(dim=1)
        support, others = found + missed, mistaken + left
        recalls, areas = found / support, self._areas()
        f1 = 2 * found / (2 * found + mistaken + missed)
        self._details = self._described(support, found / (found + mistaken), recalls, f1, areas)
        self._worst = self._named(_largest(dim_zero_cat(self.worst_rows)))
        if not self.multi_label:
            accuracy, balanced = found.sum() / support.sum(), recalls
        else:
            accuracy, balanced = (found + left).sum() / self.counts.sum(), (recalls + left / others) / 2
        return {
            "accuracy": float(accuracy),
            "balanced_accuracy": _mean(balanced, support),
            "f1": _mean(f1, support),
            "auroc": _mean(areas, support),
        }

    def details(self) -> dict[str, Any]:
        """Numbers of each class, and the confusion matrix where a sample has one class; of the last `compute`."""
        return self._details

    def worst(self) -> list[dict[str, Any]]:
        """The samples that were answered most wrongly, over all ranks: index, truth, answer, its score, and loss."""
        return self._worst

    def _named(self, rows: torch.Tensor) -> list[dict[str, Any]]:
        found = []
        for loss, index, *numbers in (row.tolist() for row in rows):
            probabilities, truths = numbers[: len(self.classes)], numbers[len(self.classes) :]
            score = max(probabilities)
            least = self.threshold if self.multi_label else score
            answer = [name for name, one in zip(self.classes, probabilities, strict=True) if one >= least]
            truth = [name for name, one in zip(self.classes, truths, strict=True) if one > 0]
            words = {"truth": ", ".join(truth), "answer": ", ".join(answer)}
            found.append({"index": int(index), **words, "score": score, "loss": loss})
        return found

    def _described(self, support: torch.Tensor, *columns: torch.Tensor) -> dict[str, Any]:
        names = ("precision", "recall", "f1", "auroc")
        rows = [
            {"class": name, "support": int(support[number])}
            | {column: _number(values[number]) for column, values in zip(names, columns, strict=True)}
            for number, name in enumerate(self.classes)
        ]
        found: dict[str, Any] = {"kind": "classification", "classes": list(self.classes), "per_class": rows}
        return found if self.multi_label else {**found, "confusion": self.confusion.tolist()}

    def _areas(self) -> torch.Tensor:
        """The area of each class; NaN where the set has none of it, or nothing else."""
        areas = torch.full((len(self.classes),), torch.nan, dtype=torch.float64)
        probabilities, truths = dim_zero_cat(self.probabilities), dim_zero_cat(self.truths)
        for number in range(len(self.classes)):
            known = truths[:, number] >= 0
            present = truths[known, number].long()
            if 0 < int(present.sum()) < len(present):
                areas[number] = binary_auroc(probabilities[known, number], present).cpu().double()
        return areas


def _largest(rows: torch.Tensor) -> torch.Tensor:
    """The rows with the largest losses, the largest first; of equal ones, those of the smaller index."""
    order = rows[:, 1].argsort(stable=True)
    order = order[rows[order, 0].argsort(descending=True, stable=True)]
    return rows[order[:WORST_SAMPLES]]


def _confused(labels: torch.Tensor, answered: torch.Tensor, count: int) -> torch.Tensor:
    return torch.bincount(labels * count + answered, minlength=count * count).view(count, count)


def _counted(labels: torch.Tensor, answered: torch.Tensor) -> torch.Tensor:
    """Found, wrongly found, missed and rightly left of each class; labels of −1 are left out."""
    present, absent = labels == 1, labels == 0
    yes, no = answered == 1, answered == 0
    return torch.stack([(present & yes), (absent & yes), (present & no), (absent & no)], dim=2).sum(dim=0)


def _mean(values: torch.Tensor, support: torch.Tensor) -> float:
    """The mean over classes that are there, as far as it can be told."""
    kept = values.cpu()[(support.cpu() > 0) & ~values.cpu().isnan()]
    return float(kept.mean()) if len(kept) else math.nan


def _number(value: torch.Tensor) -> float | None:
    number = float(value)
    return None if math.isnan(number) else number


# Answers of classification as rows of the table that users see.


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
