"""Scores of behaviours over a whole set: `results.behaviour_scores` over what all batches and ranks have seen.

Each behaviour is judged at the threshold that is best on this set: which threshold to use is decided there too.
"""

from __future__ import annotations

from typing import Any

import torch
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat

from penstock.results.behaviour_scores import BehaviourScores, best_thresholds, score_behaviours
from penstock.tasks.task import Answers, Batch

PROBABILITIES = "probabilities"


class BehaviourSetScores(Metric):
    """Probabilities and labels of all frames; torchmetrics puts those of ranks together."""

    full_state_update = False
    labels: list[torch.Tensor]

    def __init__(self, behaviours: tuple[str, ...], streams: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.behaviours, self.streams = behaviours, streams
        self._details: dict[str, Any] = {}
        self._names = [PROBABILITIES, *(f"{stream}_{PROBABILITIES}" for stream in streams)]
        for name in (*self._names, "labels"):
            self.add_state(name, [], dist_reduce_fx="cat")
        self._begin()

    def _begin(self) -> None:
        """Nothing yet, in the shape of something: what ranks put together must have the same dimensions on all."""
        count = len(self.behaviours)
        for name in self._names:
            setattr(self, name, [torch.zeros(0, count, device=self.device)])
        self.labels = [torch.zeros(0, count, dtype=torch.int8, device=self.device)]

    def reset(self) -> None:
        super().reset()
        self._begin()

    def update(self, answers: Answers, batch: Batch) -> None:
        """Add a batch of frames, or of windows of frames."""
        count = len(self.behaviours)
        self.labels.append(batch["label"].reshape(-1, count).to(torch.int8))
        for name in self._names:
            getattr(self, name).append(answers[name].detach().float().reshape(-1, count))

    def compute(self) -> dict[str, float]:
        """f1, f1_without_background, precision, recall, accuracy, auroc, average_precision, F1 of each behaviour."""
        labels = dim_zero_cat(self.labels).cpu().numpy()
        found = {name: self._scored(name, labels) for name in self._names}
        self._details = {"kind": "behaviour", **found[PROBABILITIES].details()}
        scores = found[PROBABILITIES].scores()
        scores.pop("bout_f1", None)  # clips from here and there have no bouts
        return scores | {f"{stream}_f1": _mean(found[f"{stream}_{PROBABILITIES}"]) for stream in self.streams}

    def _scored(self, name: str, labels: Any) -> BehaviourScores:
        probabilities = dim_zero_cat(getattr(self, name)).cpu().numpy()
        thresholds = best_thresholds(probabilities, labels)
        return score_behaviours(probabilities, labels, self.behaviours, thresholds=thresholds)

    def details(self) -> dict[str, Any]:
        """Scores by behaviour, and what was taken for what; of the last `compute`."""
        return self._details


def _mean(scores: BehaviourScores) -> float:
    return scores.mean("f1", background=False)


class NoScores:
    """For what is trained without labels: its losses say it all."""

    def update(self, answers: Answers, batch: Batch) -> None:
        """Nothing to add."""

    def compute(self) -> dict[str, float]:
        return {}

    def details(self) -> dict[str, Any]:
        return {}

    def reset(self) -> None:
        """Nothing to forget."""
