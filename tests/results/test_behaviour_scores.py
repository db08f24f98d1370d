"""Scores of behaviours, judged by torchmetrics and by plain loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torchmetrics.functional.classification import (
    binary_accuracy,
    binary_auroc,
    binary_average_precision,
    binary_f1_score,
    binary_precision,
    binary_recall,
    multiclass_confusion_matrix,
)

from penstock.errors import OptionError
from penstock.results.behaviour_scores import (
    best_thresholds,
    confusion_of,
    count_bouts,
    score_behaviours,
    score_ethograms,
)
from penstock.results.ethograms import Ethogram

NAMES = ("background", "walk", "rear")


def made(seed: int, frames: int = 500) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities with ties that know something of the labels, a tenth of which is missing."""
    rng = np.random.default_rng(seed)
    labels = (rng.random((frames, 3)) < [0.6, 0.3, 0.05]).astype(np.int8)
    probabilities = np.clip(labels * 0.3 + rng.random((frames, 3)) * 0.7, 0, 1).round(2).astype(np.float32)
    labels[rng.random((frames, 3)) < 0.1] = -1
    return probabilities, labels


@pytest.mark.parametrize("seed", range(3))
def test_every_score_is_what_torchmetrics_says(seed: int) -> None:
    probabilities, labels = made(seed)
    limits = [0.5, 0.25, 0.75]
    found = score_behaviours(probabilities, labels, NAMES, thresholds=limits)
    for at, limit in enumerate(limits):
        known = labels[:, at] >= 0
        likely, truth = torch.tensor(probabilities[known, at]), torch.tensor(labels[known, at].astype(int))
        present = (likely >= limit).int()
        assert found.f1[at] == pytest.approx(float(binary_f1_score(present, truth)), abs=1e-6)
        assert found.precision[at] == pytest.approx(float(binary_precision(present, truth)), abs=1e-6)
        assert found.recall[at] == pytest.approx(float(binary_recall(present, truth)), abs=1e-6)
        assert found.accuracy[at] == pytest.approx(float(binary_accuracy(present, truth)), abs=1e-6)
        assert found.auroc[at] == pytest.approx(float(binary_auroc(likely, truth)), abs=1e-5)
        assert found.average_precision[at] == pytest.approx(float(binary_average_precision(likely, truth)), abs=1e-5)
    assert found.scores()["f1"] == pytest.approx(np.mean(found.f1))
    assert found.scores()["f1_without_background"] == pytest.approx(np.mean(found.f1[1:]))


@pytest.mark.parametrize("seed", range(3))
def test_no_threshold_has_a_better_f1_than_the_best(seed: int) -> None:
    probabilities, labels = made(seed)
    best = score_behaviours(probabilities, labels, NAMES, thresholds=best_thresholds(probabilities, labels)).f1
    tried = [score_behaviours(probabilities, labels, NAMES, thresholds=limit).f1 for limit in np.linspace(0, 1, 401)]
    assert np.allclose(best, np.max(tried, axis=0))


def test_the_best_threshold_lies_between_two_probabilities() -> None:
    probabilities = np.array([[0.9], [0.8], [0.2]], np.float32)
    assert best_thresholds(probabilities, np.array([[1], [1], [0]])) == pytest.approx([0.5])
    one_step = np.array([[np.nextafter(np.float32(0.5), np.float32(1))], [0.5]], np.float32)
    limit = best_thresholds(one_step, np.array([[1], [0]]))
    assert (one_step >= limit)[:, 0].tolist() == [True, False]


def test_a_behaviour_that_never_occurs_is_named_and_not_counted() -> None:
    probabilities = np.array([[0.9, 0.9], [0.1, 0.2]], np.float32)
    found = score_behaviours(probabilities, np.array([[1, 0], [0, -1]]), ("walk", "rear"), frame_counts=[2])
    assert found.absent == ("rear",)
    assert np.isnan([found.f1[1], found.precision[1], found.recall[1], found.auroc[1], found.bout_f1[1]]).all()
    assert found.accuracy[1] == 0
    assert found.scores()["f1"] == 1
    assert found.details()["behaviours"]["rear"]["f1"] is None
    assert best_thresholds(probabilities, np.array([[1, 0], [0, -1]]))[1] == 0.5


def test_a_behaviour_that_is_never_predicted_has_precision_0() -> None:
    found = score_behaviours(np.zeros((4, 1)), np.array([[1], [0], [1], [0]]), ("walk",))
    assert (found.f1[0], found.precision[0], found.recall[0]) == (0, 0, 0)


def test_labels_that_are_missing_count_for_nothing() -> None:
    probabilities, labels = made(5)
    swapped = np.where(labels < 0, 1 - probabilities, probabilities)
    one = score_behaviours(probabilities, labels, NAMES, frame_counts=[500])
    two = score_behaviours(swapped, labels, NAMES, frame_counts=[500])
    assert one.scores() == two.scores()


def test_the_confusion_of_one_behaviour_at_a_time_is_the_usual_table() -> None:
    rng = np.random.default_rng(1)
    truth, guess = rng.integers(0, 3, 300), rng.integers(0, 3, 300)
    usual = multiclass_confusion_matrix(torch.tensor(guess), torch.tensor(truth), num_classes=3)
    assert np.array_equal(confusion_of(np.eye(3)[guess], np.eye(3)[truth]), usual.numpy())


def test_a_missed_behaviour_beside_a_found_one_is_taken_for_nothing() -> None:
    assert confusion_of(np.array([[1, 0]]), np.array([[1, 1]])).tolist() == [[1, 0], [0, 0]]


def bouts(predicted: str, true: str, counts: list[int] | None = None) -> list[int]:
    rows = [np.array([{"-": -1}.get(letter) or int(letter) for letter in text])[:, None] for text in (predicted, true)]
    return [int(count[0]) for count in count_bouts(*rows, counts or [len(true)])]


@pytest.mark.parametrize(
    ("predicted", "true", "expected"),
    [
        ("0111100", "0011110", [1, 1, 1]),  # 3 of 5
        ("0111000", "0001110", [1, 1, 0]),  # 1 of 5
        ("1111", "1100", [1, 1, 0]),  # exactly a half is too little
        ("0101010", "0111110", [1, 3, 0]),
        ("1101101", "1111111", [1, 3, 0]),
        ("0000", "0110", [1, 0, 0]),
        ("0110", "0000", [0, 1, 0]),
        ("111111", "111---", [1, 1, 1]),  # what has no label is cut out
    ],
)
def test_bouts_match_when_they_share_more_than_half(predicted: str, true: str, expected: list[int]) -> None:
    assert bouts(predicted, true) == expected


def test_a_bout_ends_with_its_video() -> None:
    assert bouts("001100", "001100") == [1, 1, 1]
    assert bouts("001100", "001100", [3, 3]) == [2, 2, 2]


def slow_pairs(predicted: np.ndarray, true: np.ndarray) -> int:
    from penstock.results.bouts import runs_of

    guess, truth = runs_of(predicted), runs_of(true)
    found = 0
    for a, b in zip(*guess, strict=True):
        for c, d in zip(*truth, strict=True):
            found += len({*range(a, b)} & {*range(c, d)}) > 0.5 * len({*range(a, b)} | {*range(c, d)})
    return found


@pytest.mark.parametrize("seed", range(20))
def test_pairs_are_those_that_a_plain_search_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    true = np.repeat(rng.integers(0, 2, 40), rng.integers(1, 6, 40))
    predicted = np.where(rng.random(len(true)) < 0.1, 1 - true, true)
    assert count_bouts(predicted[:, None], true[:, None], [len(true)]).found[0] == slow_pairs(predicted, true)


def test_ethograms_are_scored_by_their_predictions() -> None:
    probabilities = np.array([[0.9], [0.1], [0.9], [0.9]])
    labels = np.array([[0], [0], [1], [1]])
    one = Ethogram(("walk",), probabilities, 0.5, 2, np.arange(4.0), "m.mp4", labels=labels)
    assert one.predictions[:, 0].tolist() == [1, 1, 1, 1]
    assert score_ethograms([one, one]).hits.tolist() == [4]
    assert one.scores().details()["behaviours"]["walk"]["true_bouts"] == 1
    with pytest.raises(OptionError, match=r"none of n\.mp4"):
        Ethogram(("walk",), probabilities, 0.5, 1, np.arange(4.0), "n.mp4").scores()


def test_shapes_that_do_not_agree_are_refused() -> None:
    with pytest.raises(OptionError, match="expected frames × 3"):
        score_behaviours(np.zeros((4, 3)), np.zeros((4, 2)), NAMES)
    with pytest.raises(OptionError, match="add up to 5"):
        score_behaviours(np.zeros((4, 3)), np.zeros((4, 3)), NAMES, frame_counts=[5])


def test_no_frames_have_no_scores() -> None:
    found = score_behaviours(np.zeros((0, 3)), np.zeros((0, 3)), NAMES, frame_counts=[])
    assert found.absent == NAMES
    assert np.isnan(found.scores()["f1"])
