"""Resize and RandomResizedCrop: sizes, and the distribution that is promised."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from penstock.augment import RandomResizedCrop, Resize

NONE = np.zeros((1, 0))


def uneven(values: NDArray[np.float64]) -> float:
    """The Kolmogorov-Smirnov statistic of values that should be uniform in 0 to 1."""
    ordered = np.sort(values)
    steps = np.arange(len(ordered) + 1) / len(ordered)
    return float(max((steps[1:] - ordered).max(), (ordered - steps[:-1]).max()))


def unlikely(count: int) -> float:
    """What that statistic exceeds once in a thousand times."""
    return 1.95 / math.sqrt(count)


def one_by_one(step: RandomResizedCrop, size: tuple[int, int], uniforms: list[float]) -> list[int]:
    """The stated rule as a plain loop over tries, for one image."""
    width, height = size
    areas, ratios, places = uniforms[:10], uniforms[10:20], uniforms[20:]
    for area_share, ratio_share in zip(areas, ratios, strict=True):
        area = width * height * (step.scale[0] + area_share * (step.scale[1] - step.scale[0]))
        low, high = math.log(step.ratio[0]), math.log(step.ratio[1])
        ratio = math.exp(low + ratio_share * (high - low))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return [int(places[0] * (width - w + 1)), int(places[1] * (height - h + 1)), w, h]
    w, h = width, height
    if width / height < step.ratio[0]:
        h = max(1, round(width / step.ratio[0]))
    elif width / height > step.ratio[1]:
        w = max(1, round(height * step.ratio[1]))
    return [(width - w) // 2, (height - h) // 2, w, h]


@pytest.mark.parametrize(
    "step", [RandomResizedCrop(8), RandomResizedCrop(8, scale=(0.9, 1.0)), RandomResizedCrop(8, ratio=(2.0, 3.0))]
)
def test_the_first_try_that_fits_is_taken_and_else_the_middle(step: RandomResizedCrop) -> None:
    rng = np.random.default_rng(8)
    sizes = rng.integers(1, 400, (3000, 2))
    sizes[:500, 1] = rng.integers(1, 4, 500)
    uniforms = rng.random((3000, step.uniform_count))
    crops = step.views(sizes, uniforms).crops.tolist()
    assert crops == [one_by_one(step, (w, h), u) for (w, h), u in zip(sizes.tolist(), uniforms.tolist(), strict=True)]


def test_areas_are_uniform_and_ratios_log_uniform_where_every_try_fits() -> None:
    step = RandomResizedCrop(224, scale=(0.1, 0.5))
    count, side = 20000, 10000
    sizes = np.full((count, 2), side)
    crops = step.views(sizes, np.random.default_rng(1).random((count, step.uniform_count))).crops
    width, height = crops[:, 2:].T.astype(np.float64)
    area = (width * height / side**2 - 0.1) / 0.4
    ratio = (np.log(width / height) - math.log(3 / 4)) / (math.log(4 / 3) - math.log(3 / 4))
    assert uneven(area) < unlikely(count)
    assert uneven(ratio) < unlikely(count)
    assert abs(np.corrcoef(area, ratio)[0, 1]) < 4 / math.sqrt(count)


def test_crops_lie_anywhere_in_the_image() -> None:
    step = RandomResizedCrop(224, scale=(0.25, 0.25), ratio=(1.0, 1.0))
    count = 20000
    views = step.views(np.full((count, 2), 10), np.random.default_rng(2).random((count, step.uniform_count)))
    assert (views.crops[:, 2:] == 5).all()
    for axis in (0, 1):
        often = np.bincount(views.crops[:, axis], minlength=6)
        # 20.5: what chi-square with five degrees of freedom exceeds once in a thousand times
        assert len(often) == 6 and ((often - count / 6) ** 2 / (count / 6)).sum() < 20.5


def test_tries_that_do_not_fit_leave_the_rest_of_the_distribution_as_it_is() -> None:
    step = RandomResizedCrop(224, scale=(0.5, 1.0))
    count, side = 40000, 10000
    crops = step.views(np.full((count, 2), side), np.random.default_rng(3).random((count, 22))).crops
    width, height = crops[:, 2:].T / side
    area = width * height
    # Every ratio fits up to an area of 3/4; beyond it the part that fits shrinks to nothing at 1.
    fitting = np.where(area < 0.75, 1.0, np.log(1 / area) / math.log(4 / 3))
    grid = np.linspace(0.5, 1.0, 100001)
    density = np.where(grid < 0.75, 1.0, np.log(1 / grid) / math.log(4 / 3))
    share = np.interp(area, grid, np.cumsum(density) / density.sum())
    assert uneven(share) < unlikely(count)
    place_in_ratios = (np.log(width / height) / math.log(4 / 3) + fitting) / (2 * fitting)
    assert uneven(place_in_ratios[area < 0.97]) < unlikely(int((area < 0.97).sum()))


def test_an_image_of_a_ratio_that_is_not_allowed_gives_its_middle() -> None:
    step = RandomResizedCrop(8, scale=(1.0, 1.0))
    views = step.views(np.array([[400, 30], [30, 400], [1, 1]]), np.full((3, 22), 0.3))
    assert views.crops.tolist() == [[180, 0, 40, 30], [0, 180, 30, 40], [0, 0, 1, 1]]


@pytest.mark.parametrize(
    ("step", "size", "wanted"),
    [
        (Resize(10), (40, 20), (10, 10)),
        (Resize((10, 30)), (40, 20), (10, 30)),
        (Resize(10, side="shortest"), (40, 20), (20, 10)),
        (Resize(10, side="shortest"), (20, 47), (10, 24)),
        (Resize(10, side="longest"), (40, 20), (10, 5)),
        (Resize(100, side="longest"), (4, 2), (100, 50)),
        (Resize(10, side="longest"), (1000, 1), (10, 1)),
        (Resize(10, side="shortest"), (1, 1), (10, 10)),
    ],
)
def test_resize_keeps_proportions_unless_the_size_is_exact(
    step: Resize, size: tuple[int, int], wanted: tuple[int, int]
) -> None:
    views = step.views(np.array([size]), NONE)
    assert views.crops.tolist() == [[0, 0, *size]]
    assert views.resized.tolist() == [list(wanted)]
    assert views.parts.tolist() == [[0, 0, *wanted]]
