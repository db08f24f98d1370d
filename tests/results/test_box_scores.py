"""Scores of boxes: DeepForest's rule, pooled, by class, average precision, empty frames, and what cannot be said."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from penstock.errors import OptionError
from penstock.results.average_precision import IOUS
from penstock.results.box_scores import BoxScores, ImageBoxes, score_boxes

A, B, C = [0, 0, 10, 10], [20, 0, 30, 10], [0, 20, 10, 30]
FAR = [500, 500, 510, 510]


def boxes(*images: list[list[float]], labels: list[list[int]] | None = None, scores: float | None = None) -> ImageBoxes:
    """One list of boxes for each image."""
    numbers = labels if labels is not None else [[0] * len(image) for image in images]
    return ImageBoxes.of(
        [np.array(image, float).reshape(-1, 4) for image in images],
        [np.array(image, int) for image in numbers],
        None if scores is None else [np.full(len(image), scores) for image in images],
    )


def scored(predictions: ImageBoxes, truth: ImageBoxes, image_count: int, **options: object) -> BoxScores:
    return score_boxes(predictions, truth, image_count=image_count, **{"classes": ["Tree"], **options})


def test_precision_and_recall_are_means_over_images_and_pooled_ones_are_not() -> None:
    found = scored(boxes([A, B, FAR], [A]), boxes([A, B], [A, B, C, FAR]), 2)
    assert found.box_precision == pytest.approx((2 / 3 + 1) / 2)
    assert found.box_recall == pytest.approx((1 + 1 / 4) / 2)
    assert found.pooled_precision == pytest.approx(3 / 4) and found.pooled_recall == pytest.approx(3 / 6)
    assert found.box_f1 == pytest.approx(2 * (5 / 6) * (5 / 8) / (5 / 6 + 5 / 8))


def test_an_image_without_predictions_has_no_precision_and_recall_zero() -> None:
    found = scored(boxes([A], []), boxes([A], [A]), 2)
    assert found.box_precision == 1 and found.box_recall == 0.5


def test_no_predictions_at_all_is_recall_zero_and_no_precision() -> None:
    found = scored(boxes([], [], scores=1.0), boxes([A], [A, B]), 2)
    assert found.box_recall == 0 and math.isnan(found.box_precision) and found.box_f1 == 0
    assert found.ap50 == 0 and found.class_recall(0) == 0 and math.isnan(found.class_precision(0))


def test_no_truth_at_all_is_no_recall() -> None:
    left_out, counted = (scored(boxes([A]), boxes([]), 1, count_empty=count) for count in (False, True))
    assert math.isnan(left_out.box_recall) and math.isnan(left_out.box_precision) and math.isnan(left_out.box_f1)
    assert counted.box_precision == 0 and math.isnan(counted.ap50)


def test_predictions_in_empty_images_count_only_when_asked() -> None:
    predictions, truth = boxes([A], [B, C], []), boxes([A], [], [])
    left_out, counted = (scored(predictions, truth, 3, count_empty=count) for count in (False, True))
    assert left_out.box_precision == 1 and counted.box_precision == 0.5
    assert left_out.pooled_precision == 1 and counted.pooled_precision == pytest.approx(1 / 3)
    assert left_out.empty_frame_accuracy == counted.empty_frame_accuracy == 0.5


def test_an_image_that_the_truth_does_not_list_is_no_empty_frame() -> None:
    listed = np.array([True, True, False])
    found = scored(boxes([A], [], [A]), boxes([A], [], []), 3, listed=listed)
    assert found.empty_frame_accuracy == 1


def test_by_class_misses_and_mistakes_count() -> None:
    truth = boxes([A, B, C], labels=[[0, 0, 1]])
    predictions = boxes([A, C, FAR], labels=[[0, 0, 1]])
    found = scored(predictions, truth, 1, classes=["Alive", "Dead"])
    assert found.box_recall == pytest.approx(2 / 3)
    assert found.class_recall(0) == 0.5 and found.class_precision(0) == 0.5
    assert found.class_recall(1) == 0 and found.class_precision(1) == 0
    assert found.found_as.tolist() == [[1, 0, 1], [1, 0, 0], [0, 1, 0]]
    assert found.scores()["Alive_recall"] == 0.5


def test_a_class_called_box_does_not_hide_the_recall_of_all_boxes() -> None:
    found = scored(boxes([A, B], labels=[[0, 1]]), boxes([A, B], labels=[[0, 0]]), 1, classes=["box", "other"])
    assert found.scores()["box_recall"] == 1 and found.details()["classes"]["box"]["recall"] == 0.5


def test_min_score_leaves_out_what_is_below_it() -> None:
    predictions = ImageBoxes(np.zeros(2, int), np.array([A, B], float), np.zeros(2, int), np.array([0.3, 0.2]))
    found = scored(predictions, boxes([A, B]), 1, min_score=0.3)
    assert found.box_recall == 0.5 and found.kept.tolist() == [0]
    with pytest.raises(OptionError, match="needs predictions with scores"):
        scored(boxes([A]), boxes([A]), 1, min_score=0.3)


def test_without_scores_there_is_no_average_precision() -> None:
    found = scored(boxes([A]), boxes([A]), 1)
    assert math.isnan(found.ap50) and math.isnan(found.ap) and found.box_f1 == 1


def random_scene(seed: int, class_count: int) -> tuple[ImageBoxes, ImageBoxes, int]:
    """Many images with true boxes, and predictions near them, doubled, mislabelled, or nowhere near."""
    rng = np.random.default_rng(seed)
    true, predicted = [], []
    for _ in range(20):
        corners = rng.random((rng.integers(0, 12), 2)) * 100
        own = np.hstack([corners, corners + 15 + rng.random(corners.shape) * 30])
        labels = rng.integers(0, class_count, len(own))
        near = np.repeat(own, 2, axis=0) + rng.normal(0, 2, (2 * len(own), 4))
        kept = rng.random(len(near)) < 0.8
        guesses = np.where(rng.random(len(near)) < 0.8, np.repeat(labels, 2), rng.integers(0, class_count, len(near)))
        true.append((own, labels))
        predicted.append((near[kept], guesses[kept], np.round(rng.random(int(kept.sum())), 2)))
    return (
        ImageBoxes.of(*map(list, zip(*predicted, strict=True))),
        ImageBoxes.of(*map(list, zip(*true, strict=True))),
        len(true),
    )


def of_image(given: ImageBoxes, number: int, torch: object) -> dict[str, object]:
    mine = given.images == number
    found = {"boxes": torch.tensor(given.boxes[mine]), "labels": torch.tensor(given.labels[mine])}
    return found if given.scores is None else {**found, "scores": torch.tensor(given.scores[mine])}


def plain_iou(one: np.ndarray, other: np.ndarray) -> float:
    width, height = np.maximum(np.minimum(one[2:], other[2:]) - np.maximum(one[:2], other[:2]), 0)
    areas = [float(np.prod(box[2:] - box[:2])) for box in (one, other)]
    return float(width * height / (sum(areas) - width * height))


def plain_average_precision(predictions: ImageBoxes, truth: ImageBoxes, label: int, limit: float) -> float:
    """COCO's way, one prediction after the other."""
    mine = np.flatnonzero(predictions.labels == label)
    taken: set[int] = set()
    hits = []
    for number in mine[np.argsort(-predictions.scores[mine], kind="stable")]:
        there = np.flatnonzero((truth.images == predictions.images[number]) & (truth.labels == label))
        overlaps = {int(at): plain_iou(predictions.boxes[number], truth.boxes[at]) for at in there if at not in taken}
        best = max(overlaps, key=lambda at: overlaps[at], default=-1)
        hits.append(best >= 0 and overlaps[best] >= limit)
        taken |= {best} if hits[-1] else set()
    found = np.cumsum(hits)
    precision, recall = found / np.arange(1, len(found) + 1), found / np.count_nonzero(truth.labels == label)
    return float(np.mean([max(precision[recall >= wanted], default=0.0) for wanted in np.linspace(0, 1, 101)]))


@pytest.mark.parametrize(("seed", "class_count"), [(0, 1), (1, 3), (2, 2)])
def test_average_precision_is_that_of_the_plain_method(seed: int, class_count: int) -> None:
    predictions, truth, count = random_scene(seed, class_count)
    found = scored(predictions, truth, count, classes=[str(number) for number in range(class_count)])
    for label in range(class_count):
        for at in (0, 4, 9):
            expected = plain_average_precision(predictions, truth, label, IOUS[at])
            assert found.ap_by_class[label, at] == pytest.approx(expected)
    assert found.ap50 == pytest.approx(found.ap_by_class[:, 0].mean())
    assert found.ap == pytest.approx(found.ap_by_class.mean())


@pytest.mark.parametrize(("seed", "class_count"), [(0, 1), (1, 3), (2, 3), (3, 2)])
def test_average_precision_equals_that_of_torchmetrics(seed: int, class_count: int) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("faster_coco_eval", reason="the judge of average precision is not installed")
    from torchmetrics.detection import MeanAveragePrecision

    predictions, truth, count = random_scene(seed, class_count)
    metric = MeanAveragePrecision(
        rec_thresholds=np.linspace(0, 1, 101).tolist(), class_metrics=True, backend="faster_coco_eval"
    )
    metric.update(
        [of_image(predictions, number, torch) for number in range(count)],
        [of_image(truth, number, torch) for number in range(count)],
    )
    expected = metric.compute()
    found = scored(predictions, truth, count, classes=[str(number) for number in range(class_count)])
    assert found.ap50 == pytest.approx(float(expected["map_50"]), abs=1e-6)
    assert found.ap == pytest.approx(float(expected["map"]), abs=1e-6)
    by_class = np.atleast_1d(expected["map_per_class"].numpy())
    np.testing.assert_allclose(found.ap_by_class.mean(axis=1), by_class, atol=1e-6)


def test_the_order_of_boxes_does_not_matter() -> None:
    predictions, truth, count = random_scene(5, 2)
    order = np.random.default_rng(0).permutation(len(predictions))
    turned = predictions.taken(order)
    first, second = (scored(each, truth, count, classes=["a", "b"]).scores() for each in (predictions, turned))
    scores = ("box_precision", "box_recall", "pooled_f1", "a_recall")
    assert [first[name] for name in scores] == [second[name] for name in scores]


@pytest.mark.parametrize(("min_score", "precision", "recall"), [(0.2, 0.654, 0.798), (0.3, 0.782, 0.722)])
def test_published_predictions_score_what_was_published(
    shared_data: Path, min_score: float, precision: float, recall: float
) -> None:
    import penstock as ps

    plots = shared_data / "neon_eval"
    found = ps.evaluate(plots / "deepforest_pred", truth=f"{plots}/xml/*.xml", min_score=min_score).scores
    assert found["box_precision"] == pytest.approx(precision, abs=0.001)
    assert found["box_recall"] == pytest.approx(recall, abs=0.001)
