"""Scores, against those of torchmetrics."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchmetrics")

from torchmetrics.functional import classification as reference  # noqa: E402

from penstock.tasks.class_scores import WORST_SAMPLES, ClassScores  # noqa: E402

CLASSES = ("a", "b", "c")


def single(count: int = 90, seed: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 3, (count,), generator=generator)
    logits = torch.randn(count, 3, generator=generator) + 1.5 * torch.nn.functional.one_hot(labels, 3)
    losses = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
    batch = {"label": labels, "index": torch.arange(count)}
    return {"probabilities": logits.softmax(1), "loss": losses}, batch


def part(values: dict[str, Any], rows: slice) -> dict[str, Any]:
    return {name: value[rows] for name, value in values.items()}


def scored(answers: dict[str, Any], batch: dict[str, Any], size: int = 1000, **options: Any) -> ClassScores:
    scores = ClassScores(CLASSES, **options)
    for start in range(0, len(batch["index"]), size):
        rows = slice(start, start + size)
        scores.update(part(answers, rows), part(batch, rows))
    return scores


def test_scores_are_those_of_torchmetrics() -> None:
    answers, batch = single()
    found = scored(answers, batch).compute()
    given = (answers["probabilities"], batch["label"])
    assert found["accuracy"] == pytest.approx(float(reference.multiclass_accuracy(*given, 3, average="micro")))
    assert found["balanced_accuracy"] == pytest.approx(float(reference.multiclass_accuracy(*given, 3, average="macro")))
    assert found["f1"] == pytest.approx(float(reference.multiclass_f1_score(*given, 3, average="macro")))
    assert found["auroc"] == pytest.approx(float(reference.multiclass_auroc(*given, 3, average="macro")))


def test_the_confusion_matrix_has_truth_in_rows() -> None:
    answers, batch = single()
    scores = scored(answers, batch)
    scores.compute()
    expected = reference.multiclass_confusion_matrix(answers["probabilities"], batch["label"], 3)
    assert scores.details()["confusion"] == expected.tolist()
    json.dumps(scores.details(), allow_nan=False)


@pytest.mark.parametrize("size", [1, 7, 90])
def test_scores_do_not_depend_on_how_the_set_was_cut(size: int) -> None:
    whole, cut = scored(*single()), scored(*single(), size=size)
    assert whole.compute() == cut.compute()
    assert whole.details() == cut.details()
    assert whole.worst() == cut.worst()


def test_samples_without_a_label_count_for_nothing() -> None:
    answers, batch = single()
    expected = scored(part(answers, slice(60)), part(batch, slice(60))).compute()
    batch["label"][60:] = -1
    assert scored(answers, batch).compute() == expected


def test_a_class_that_the_set_has_no_sample_of_is_left_out_of_means() -> None:
    answers, batch = single()
    batch["label"] = batch["label"].clamp(max=1)
    scores = scored(answers, batch)
    found = scores.compute()
    rows = scores.details()["per_class"]
    assert rows[2]["support"] == 0
    assert rows[2]["recall"] is None
    assert found["balanced_accuracy"] == pytest.approx((rows[0]["recall"] + rows[1]["recall"]) / 2)


def test_nothing_at_all_is_not_a_number() -> None:
    answers, batch = single()
    scores = scored(part(answers, slice(0)), part(batch, slice(0)))
    scores.update(part(answers, slice(0)), part(batch, slice(0)))
    assert all(math.isnan(value) for value in scores.compute().values())
    assert scores.worst() == []


def test_several_labels_are_scored_label_by_label() -> None:
    generator = torch.Generator().manual_seed(1)
    labels = torch.randint(0, 2, (80, 3), generator=generator)
    probabilities = (torch.rand(80, 3, generator=generator) + labels) / 2
    answers = {"probabilities": probabilities, "loss": torch.rand(80)}
    found = scored(answers, {"label": labels, "index": torch.arange(80)}, multi_label=True).compute()
    assert found["accuracy"] == pytest.approx(
        float(reference.multilabel_accuracy(probabilities, labels, 3, average="micro"))
    )
    assert found["f1"] == pytest.approx(float(reference.multilabel_f1_score(probabilities, labels, 3)))
    assert found["auroc"] == pytest.approx(float(reference.multilabel_auroc(probabilities, labels, 3)))


def test_labels_that_nobody_knows_are_left_out() -> None:
    labels = torch.tensor([[1, 0, -1], [0, 1, -1], [1, 1, 0]])
    answers = {
        "probabilities": torch.tensor([[0.9, 0.1, 0.9], [0.1, 0.9, 0.9], [0.9, 0.9, 0.1]]),
        "loss": torch.ones(3),
    }
    found = scored(answers, {"label": labels, "index": torch.arange(3)}, multi_label=True).compute()
    assert found["accuracy"] == 1


def test_the_worst_samples_are_those_with_the_largest_loss() -> None:
    answers, batch = single()
    scores = scored(answers, batch, size=13)
    scores.compute()
    losses, order = answers["loss"].sort(descending=True)
    assert [row["index"] for row in scores.worst()] == order[:WORST_SAMPLES].tolist()
    first = scores.worst()[0]
    assert first["truth"] == CLASSES[batch["label"][order[0]]]
    assert first["answer"] == CLASSES[answers["probabilities"][order[0]].argmax()]
    assert first["loss"] == pytest.approx(losses[0].item())


def test_a_reset_begins_anew() -> None:
    answers, batch = single()
    scores = scored(answers, batch)
    expected = scores.compute()
    scores.reset()
    scores.update(answers, batch)
    assert scores.compute() == expected
