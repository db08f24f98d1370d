"""Suppression in a grid leaves what the plain greedy method leaves, in whatever order the boxes come."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import OptionError
from penstock.geometry import suppression
from penstock.geometry.overlaps import BoxSet, overlapping, overlapping_within
from penstock.geometry.suppression import suppress

IOUS = (0.0, 0.05, 0.15, 0.5, 0.9, 1.0)


@st.composite
def scenes(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Boxes of very different sizes, whole and flat ones among them, with scores that are often equal, and groups."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(0, 60))
    span = draw(st.sampled_from([5.0, 60.0, 1e4, 1e9]))
    spread = draw(st.sampled_from([0.1, 1.0, 4.0]))
    corners = rng.random((count, 2)) * span - span / 3
    boxes = np.hstack([corners, corners + np.exp(rng.normal(2, spread, (count, 2)))])
    if draw(st.booleans()):
        boxes = np.round(boxes)
    scores = np.round(rng.random(count), draw(st.sampled_from([1, 6])))
    return boxes, scores, rng.integers(-1, draw(st.sampled_from([0, 3])), count)


def iou(one: np.ndarray, other: np.ndarray) -> float:
    width, height = np.minimum(one[2:], other[2:]) - np.maximum(one[:2], other[:2])
    shared = width * height if width > 0 and height > 0 else 0.0
    areas = [np.prod(np.maximum(box[2:] - box[:2], 0)) for box in (one, other)]
    return shared / (sum(areas) - shared) if shared else 0.0


def greedy(boxes: np.ndarray, scores: np.ndarray, groups: np.ndarray, limit: float) -> list[int]:
    """The plain method, one box after the other."""
    kept: list[int] = []
    for number in sorted(range(len(boxes)), key=lambda at: (-scores[at], *boxes[at], groups[at], at)):
        if all(groups[number] != groups[other] or iou(boxes[number], boxes[other]) <= limit for other in kept):
            kept.append(number)
    return kept


@given(scenes(), st.sampled_from(IOUS), st.booleans())
@settings(max_examples=100, deadline=None)
def test_it_equals_the_greedy_method(
    scene: tuple[np.ndarray, np.ndarray, np.ndarray], limit: float, by_group: bool
) -> None:
    boxes, scores, groups = scene
    found = suppress(boxes, scores, iou=limit, groups=groups if by_group else None)
    assert found.tolist() == greedy(boxes, scores, groups if by_group else np.zeros(len(boxes), int), limit)


@given(scenes(), st.sampled_from(IOUS), st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None)
def test_the_answer_does_not_depend_on_the_order(
    scene: tuple[np.ndarray, np.ndarray, np.ndarray], limit: float, seed: int
) -> None:
    boxes, scores, groups = scene
    order = np.random.default_rng(seed).permutation(len(boxes))
    found = suppress(boxes, scores, iou=limit, groups=groups)
    again = order[suppress(boxes[order], scores[order], iou=limit, groups=groups[order])]
    np.testing.assert_array_equal(boxes[found], boxes[again])
    np.testing.assert_array_equal(scores[found], scores[again])
    np.testing.assert_array_equal(groups[found], groups[again])


@given(scenes(), st.sampled_from([0.1, 0.5]))
@settings(max_examples=60, deadline=None)
def test_piles_are_settled_in_pieces_with_the_same_answer(
    scene: tuple[np.ndarray, np.ndarray, np.ndarray], limit: float
) -> None:
    boxes, scores, groups = scene
    expected = suppress(boxes, scores, iou=limit, groups=groups)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suppression, "CONFLICTS_PER_BOX", 0)
        patch.setattr(suppression, "FEWEST_AT_ONCE", 3)
        np.testing.assert_array_equal(suppress(boxes, scores, iou=limit, groups=groups), expected)


@pytest.mark.parametrize("limit", [0.15, 0.5])
def test_it_equals_torchvision(limit: float) -> None:
    torch = pytest.importorskip("torch")
    from torchvision.ops import batched_nms, nms

    rng = np.random.default_rng(3)
    corners = rng.random((3000, 2)) * 900
    boxes = np.hstack([corners, corners + np.exp(rng.normal(3.4, 0.6, (3000, 2)))])
    scores, groups = rng.permutation(3000) / 3000, rng.integers(0, 3, 3000)
    given = torch.tensor(boxes), torch.tensor(scores)
    np.testing.assert_array_equal(suppress(boxes, scores, iou=limit), nms(*given, limit).numpy())
    expected = batched_nms(*given, torch.tensor(groups), limit).numpy()
    np.testing.assert_array_equal(suppress(boxes, scores, iou=limit, groups=groups), expected)


def test_a_pile_of_equal_boxes_leaves_one() -> None:
    boxes = np.tile([[10.0, 10, 50, 50]], (20_000, 1))
    assert suppress(boxes, np.linspace(0, 1, 20_000), iou=0.5).tolist() == [19_999]


def test_a_chain_of_boxes_is_settled_link_by_link() -> None:
    starts = np.arange(5000) * 5.0
    boxes = np.stack([starts, np.zeros(5000), starts + 10, np.full(5000, 10.0)], axis=1)
    assert suppress(boxes, -starts, iou=0.2).tolist() == list(range(0, 5000, 2))


def test_wrong_input_is_refused() -> None:
    boxes = np.array([[0.0, 0, 1, 1]])
    with pytest.raises(OptionError, match="iou=1.5"):
        suppress(boxes, np.ones(1), iou=1.5)
    with pytest.raises(OptionError, match="1 box and 2 scores"):
        suppress(boxes, np.ones(2), iou=0.5)
    with pytest.raises(OptionError, match="no finite number"):
        suppress(boxes * np.nan, np.ones(1), iou=0.5)


@given(scenes(), scenes())
@settings(max_examples=80, deadline=None)
def test_all_overlaps_are_found_once(
    first: tuple[np.ndarray, np.ndarray, np.ndarray], second: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> None:
    one, other = BoxSet(first[0], first[2]), BoxSet(second[0], second[2])
    found = [
        (int(a), int(b)) for pairs in overlapping(one, other) for a, b in zip(pairs.first, pairs.second, strict=True)
    ]
    expected = [
        (a, b)
        for a in range(len(one))
        for b in range(len(other))
        if first[2][a] == second[2][b] and iou(first[0][a], second[0][b]) > 0
    ]
    assert sorted(found) == expected


@given(scenes())
@settings(max_examples=100, deadline=None)
def test_overlaps_within_a_set_are_found_once(scene: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    boxes = BoxSet(scene[0], scene[2])
    both = [tuple(sorted(pair)) for pairs in overlapping_within(boxes) for pair in zip(*pairs[:2], strict=True)]
    one_way = {
        tuple(sorted(pair))
        for pairs in overlapping(boxes, boxes)
        for pair in zip(*pairs[:2], strict=True)
        if pair[0] != pair[1]
    }
    assert len(both) == len(set(both)) and set(both) == one_way
