"""Answers of detection as rows of the table that users see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.results.box_frames import CORNERS
from penstock.tasks.task import Answers

SAMPLE = "sample"


def box_rows(classes: Sequence[str], answers: Answers, least_score: float) -> list[dict[str, Any]]:
    """A row for each box that is an answer, image by image, best first."""
    rows = []
    for sample, (boxes, labels, scores) in enumerate(
        zip(answers["boxes"], answers["labels"], answers["scores"], strict=True)
    ):
        for box, label, score in zip(boxes.tolist(), labels.tolist(), scores.tolist(), strict=True):
            if score >= least_score:
                corners = dict(zip(CORNERS, box, strict=True))
                rows.append({SAMPLE: sample, **corners, "label": classes[label], "score": score})
    return rows
