"""Windows cover an image, and every detection belongs to one of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import OptionError
from penstock.geometry.mosaics import WindowGrid, windows
from penstock.geometry.suppression import suppress


@st.composite
def grids(draw: st.DrawFn) -> tuple[WindowGrid, int, int, int, float]:
    width, height = draw(st.integers(1, 900)), draw(st.integers(1, 900))
    stride = draw(st.sampled_from([1, 8, 32, 128]))
    tile_px, overlap = draw(st.integers(stride, 500)), draw(st.sampled_from([0, 0.05, 0.25, 0.5, 0.9]))
    grid = windows(width, height, tile_px=tile_px, overlap=overlap, stride=stride)
    return grid, width, height, stride, overlap


@given(grids())
@settings(max_examples=100, deadline=None)
def test_windows_begin_at_strides_cover_everything_and_overlap_enough(
    case: tuple[WindowGrid, int, int, int, float],
) -> None:
    grid, width, height, stride, overlap = case
    for starts, length in ((grid.columns, width), (grid.rows, height)):
        assert starts[0] == 0 and starts[-1] + grid.tile_px >= length
        assert starts[-1] < length or len(starts) == 1
        assert all(start % stride == 0 for start in starts)
        shared = grid.tile_px - starts.step
        assert len(starts) == 1 or shared >= min(int(overlap * grid.tile_px), grid.tile_px - stride)
    assert [grid.window(at)[2:] for at in range(len(grid))] == [(grid.tile_px, grid.tile_px)] * len(grid)


@given(grids(), st.integers(0, 2**32 - 1))
@settings(max_examples=80, deadline=None)
def test_every_box_belongs_to_one_window_which_holds_its_centre(
    case: tuple[WindowGrid, int, int, int, float], seed: int
) -> None:
    grid, width, height, *_ = case
    rng = np.random.default_rng(seed)
    centres = np.round(rng.random((50, 2)) * [width, height], rng.integers(0, 3))
    half = rng.random((50, 2)) * 40
    boxes = np.hstack([centres - half, centres + half])
    owned = np.stack([grid.owned(number, boxes) for number in range(len(grid))])
    assert (owned.sum(axis=0) == 1).all()
    for number, box in zip(*np.nonzero(owned), strict=True):
        x, y, wide, high = grid.window(int(number))
        middle = (boxes[box, :2] + boxes[box, 2:]) / 2
        slack = 1e-9  # of the arithmetic of this test
        assert x - slack <= middle[0] <= x + wide + slack and y - slack <= middle[1] <= y + high + slack


def test_a_box_is_owned_where_it_lies_deepest() -> None:
    grid = windows(700, 300, tile_px=400, overlap=0.25)
    box = np.array([[340.0, 100, 360, 120]])
    assert [bool(grid.owned(number, box)[0]) for number in range(len(grid))] == [False, True]
    assert [bool(grid.owned(number, box - 2)[0]) for number in range(len(grid))] == [True, False]


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.2, 0.5]))
@settings(max_examples=40, deadline=None)
def test_a_mosaic_does_not_depend_on_the_order_of_windows(seed: int, overlap: float) -> None:
    """A detector that sees each object in every window that holds it whole, a little differently in each."""
    rng = np.random.default_rng(seed)
    corners = rng.random((80, 2)) * 700
    objects = np.hstack([corners, corners + 10 + rng.random((80, 2)) * 40])
    grid = windows(760, 760, tile_px=256, overlap=overlap, stride=32)

    def detections(number: int) -> tuple[np.ndarray, np.ndarray]:
        x, y, wide, high = grid.window(number)
        whole = (objects >= [x, y, x, y]).all(axis=1) & (objects <= [x + wide, y + high] * 2).all(axis=1)
        own = np.random.default_rng([seed, number])
        found = objects[whole] + own.normal(0, 0.5, (int(whole.sum()), 4))
        kept = grid.owned(number, found)
        return found[kept], np.round(own.random(len(found)), 1)[kept]

    def mosaic(order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        boxes, scores = (np.concatenate(pieces) for pieces in zip(*map(detections, order), strict=True))
        kept = suppress(boxes, scores, iou=0.3)
        return boxes[kept], scores[kept]

    expected, found = mosaic(np.arange(len(grid))), mosaic(rng.permutation(len(grid)))
    np.testing.assert_array_equal(expected[0], found[0])
    np.testing.assert_array_equal(expected[1], found[1])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tile_px": 16, "overlap": 0.1, "stride": 32}, "tile_px=16 must be at least 32"),
        ({"tile_px": 400, "overlap": 1.0}, "overlap=1.0"),
        ({"tile_px": 0, "overlap": 0.1}, "tile_px=0"),
    ],
)
def test_windows_that_cannot_be_are_refused(options: dict[str, float], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        windows(1000, 1000, **options)
    with pytest.raises(OptionError, match="0×10"):
        windows(0, 10, tile_px=100, overlap=0)
