"""Scores on one of several ranks, for a test that starts this file: prints what every rank must agree on."""

from __future__ import annotations

import json
import sys

import torch

from penstock.tasks.class_scores import ClassScores

CLASSES = ("a", "b", "c")


def scores_of(rows: range) -> ClassScores:
    """Scores of some samples of a set that is the same everywhere."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 3, (50,), generator=generator)
    logits = torch.randn(50, 3, generator=generator) + torch.nn.functional.one_hot(labels, 3)
    losses = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
    scores = ClassScores(CLASSES)
    if len(rows):
        kept = slice(rows.start, rows.stop)
        answers = {"probabilities": logits.softmax(1)[kept], "loss": losses[kept]}
        scores.update(answers, {"label": labels[kept], "index": torch.arange(50)[kept]})
    return scores


def told(scores: ClassScores) -> str:
    found = scores.compute()
    return json.dumps([found, scores.details(), scores.worst()])


def main() -> None:
    store, rank = sys.argv[1], int(sys.argv[2])
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    for cut in (31, 50):  # the second time one rank has no sample at all
        print(told(scores_of(range(cut) if rank == 0 else range(cut, 50))))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
