"""CenterCrop and RandomCrop: where the crop lies, and what pads a small image."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.augment import CenterCrop, RandomCrop
from view_reference import picture, seen


def window(step: Any, size: tuple[int, int], uniforms: tuple[float, ...] = ()) -> list[int]:
    """Where the crop begins in the image: below zero where it pads."""
    views = step.views(np.array([size]), np.array([uniforms]))
    return (views.crops[0, :2] + views.parts[0, :2]).tolist()


@pytest.mark.parametrize(
    ("size", "corner"), [((10, 10), [3, 3]), ((9, 11), [2, 3]), ((4, 4), [0, 0]), ((3, 1), [0, -1]), ((2, 10), [-1, 3])]
)
def test_the_central_crop_has_equal_margins_or_a_smaller_one_at_the_left_and_top(
    size: tuple[int, int], corner: list[int]
) -> None:
    assert window(CenterCrop(4), size) == corner


def test_a_random_crop_reaches_both_ends_of_the_padded_image() -> None:
    step, last = RandomCrop((4, 3), padding=2), np.nextafter(1.0, 0.0)
    assert window(step, (10, 8), (0.0, 0.0)) == [-2, -2]
    assert window(step, (10, 8), (last, last)) == [10 + 2 - 4, 8 + 2 - 3]


def test_every_place_of_a_random_crop_is_equally_likely() -> None:
    count = 20000
    step = RandomCrop(4, padding=1)
    views = step.views(np.full((count, 2), 6), np.random.default_rng(4).random((count, 2)))
    for corners in (views.crops + views.parts)[:, :2].T:
        often = np.bincount(corners + 1, minlength=5)
        # 18.5: what chi-square with four degrees of freedom exceeds once in a thousand times
        assert len(often) == 5 and ((often - count / 5) ** 2 / (count / 5)).sum() < 18.5


def test_an_image_smaller_than_the_crop_lies_whole_at_a_random_place() -> None:
    step, image = RandomCrop(5, fill=7), picture(3, 2)
    uniforms = np.random.default_rng(0).random((200, 2))
    views = step.views(np.array([[3, 2]] * 200), uniforms)
    places = set()
    for row in range(200):
        shown = seen(image, views, row)
        inside = [(y, x) for y in range(4) for x in range(3) if np.array_equal(shown[y : y + 2, x : x + 3], image)]
        assert len(inside) == 1 and (shown == 7).all(axis=2).sum() >= 5 * 5 - 6
        places.update(inside)
    assert len(places) == 12


def test_a_crop_that_misses_the_image_is_all_fill() -> None:
    step, image = RandomCrop(2, padding=9, fill=130), picture(3, 3)
    for uniforms in ((0.0, 0.0), (0.999, 0.5), (0.5, 0.0), (0.999, 0.999)):
        views = step.views(np.array([[3, 3]]), np.array([uniforms]))
        assert (seen(image, views) == 130).all()


def test_a_small_image_stands_in_the_middle_of_the_fill() -> None:
    views = CenterCrop((5, 4), fill=9).views(np.array([[2, 1]]), np.zeros((1, 0)))
    image = picture(2, 1)
    shown = seen(image, views)
    assert np.array_equal(shown[1, 1:3], image[0])
    shown[1, 1:3] = 9
    assert (shown == 9).all()
