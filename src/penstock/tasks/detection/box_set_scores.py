"""Scores of detection over a whole set: `results.box_scores` over what all batches and ranks have seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat

from penstock.results.box_scores import BoxScores, ImageBoxes, score_boxes
from penstock.tasks.task import Answers, Batch
from penstock.wording import counted

WORST_SAMPLES = 24
MOST_DRAWN = 300  # boxes of one sample
# Columns of a row: the sample, x1 y1 x2 y2, class, score.
COLUMNS = 7


class BoxSetScores(Metric):
    """Boxes of all samples; torchmetrics puts those of ranks together."""

    full_state_update = False
    predicted: list[torch.Tensor]
    true: list[torch.Tensor]
    samples: list[torch.Tensor]  # index, loss, width and height of each

    def __init__(self, classes: tuple[str, ...], *, min_score: float) -> None:
        super().__init__()
        self.classes, self.min_score = classes, min_score
        self._details: dict[str, Any] = {}
        self._worst: list[dict[str, Any]] = []
        for name in ("predicted", "true", "samples"):
            self.add_state(name, [], dist_reduce_fx="cat")
        self._begin()

    def _begin(self) -> None:
        """Nothing yet, in the shape of something: what ranks put together must have the same dimensions on all."""
        self.predicted, self.true = ([torch.zeros(0, COLUMNS, dtype=torch.float64, device=self.device)] for _ in "ab")
        self.samples = [torch.zeros(0, 4, dtype=torch.float64, device=self.device)]

    def reset(self) -> None:
        super().reset()
        self._begin()

    def update(self, answers: Answers, batch: Batch) -> None:
        """Add a batch with boxes."""
        index = batch["index"].to(self.device).double()
        sizes = index.new_tensor([[image.shape[1], image.shape[0]] for image in batch["image"]]).reshape(-1, 2)
        self.samples.append(torch.cat([index[:, None], answers["loss"].detach().to(index)[:, None], sizes], dim=1))
        for row, number in enumerate(index.tolist()):
            self.predicted.append(_rows(number, answers["boxes"][row], answers["labels"][row], answers["scores"][row]))
            boxes, labels = batch["boxes"][row], batch["box_label"][row]
            self.true.append(_rows(number, boxes, labels, torch.ones(len(boxes), device=boxes.device)))

    def compute(self) -> dict[str, float]:
        """Precision and recall of boxes, F1, average precision, recall of each class, accuracy of empty frames."""
        samples = dim_zero_cat(self.samples).cpu().numpy()
        samples = samples[np.unique(samples[:, 0], return_index=True)[1]]
        predicted, true = (self._boxes(rows, samples[:, 0]) for rows in (self.predicted, self.true))
        options: dict[str, Any] = {"image_count": len(samples), "classes": self.classes}
        found = score_boxes(predicted, true, min_score=self.min_score, **options)
        everything = score_boxes(predicted, true, **options)
        answers = predicted.taken(found.kept)
        self._details = {"kind": "detection", **found.details(), "min_score": self.min_score}
        self._worst = [
            {**row, "boxes": {"found": _corners(answers, place), "true": _corners(true, place)}}
            for place, row in _worst(found, samples)
        ]
        return {**found.scores(), "ap50": everything.ap50, "ap": everything.ap}

    def _boxes(self, rows: list[torch.Tensor] | torch.Tensor, samples: np.ndarray[Any, Any]) -> ImageBoxes:
        values = dim_zero_cat(rows).cpu().numpy()  # a list, or one tensor where ranks were put together
        images = np.searchsorted(samples, values[:, 0])
        return ImageBoxes(images, values[:, 1:5], values[:, 5].astype(np.int64), values[:, 6])

    def details(self) -> dict[str, Any]:
        """Counts, scores by class, and what was found as what; of the last `compute`."""
        return self._details

    def worst(self) -> list[dict[str, Any]]:
        """The samples with the most mistakes: index, how many boxes are true and found, loss, size, and the boxes."""
        return self._worst


def _rows(number: float, boxes: torch.Tensor, labels: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    columns = [torch.full((len(boxes), 1), number, device=boxes.device), boxes, labels[:, None], scores[:, None]]
    return torch.cat([column.double() for column in columns], dim=1)


def _worst(found: BoxScores, samples: np.ndarray[Any, Any]) -> list[tuple[int, dict[str, Any]]]:
    mistakes = found.truth_counts + found.prediction_counts - 2 * found.match_counts
    order = np.argsort(-mistakes, kind="stable")[:WORST_SAMPLES]
    return [(place, _row(found, samples[place], place)) for place in order.tolist()]


def _row(found: BoxScores, sample: np.ndarray[Any, Any], place: int) -> dict[str, Any]:
    return {
        "index": int(sample[0]),
        "truth": counted(int(found.truth_counts[place]), "box"),
        "answer": f"{found.match_counts[place]} of them found, {_alone(found, place)} others",
        "score": float(found.recalls[place]) if found.truth_counts[place] else 0.0,
        "loss": float(sample[1]),
        "width": int(sample[2]),
        "height": int(sample[3]),
    }


def _corners(boxes: ImageBoxes, image: int) -> list[list[float]]:
    """The boxes of one image, for a picture."""
    found: list[list[float]] = boxes.boxes[boxes.images == image][:MOST_DRAWN].round(1).tolist()
    return found


def _alone(found: BoxScores, place: int) -> int:
    return int(found.prediction_counts[place] - found.match_counts[place])
