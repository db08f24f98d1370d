"""Tiles cover everything, and boxes on tiles are never lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import OptionError
from penstock.geometry import (
    TileGrid,
    Window,
    areas,
    as_boxes,
    boxes_on_tiles,
    parse_size,
    place_boxes,
    tile_starts,
    tiles,
)


@st.composite
def grids(draw: st.DrawFn) -> tuple[TileGrid, int, int]:
    width, height = draw(st.integers(1, 700)), draw(st.integers(1, 700))
    tile_px = draw(st.integers(8, 300))
    overlap = draw(st.sampled_from([0, 0.05, 0.25, 0.5, 0.8]))
    return TileGrid.over(width, height, tile_px, overlap), width, height


@st.composite
def grids_with_boxes(draw: st.DrawFn) -> tuple[TileGrid, np.ndarray]:
    grid, width, height = draw(grids())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    corners = rng.random((draw(st.integers(0, 40)), 2, 2)) * [width, height]
    if draw(st.booleans()):
        corners = np.round(corners)
    boxes = as_boxes(np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1))
    return grid, boxes[areas(boxes) > 0]


@given(grids())
@settings(deadline=None, max_examples=60)
def test_tiles_cover_every_pixel_and_stay_inside(made: tuple[TileGrid, int, int]) -> None:
    grid, width, height = made
    covered = np.zeros((height, width), bool)
    for number in range(len(grid)):
        x, y, tile_width, tile_height = grid.window(number)
        assert x + tile_width <= width
        assert y + tile_height <= height
        covered[y : y + tile_height, x : x + tile_width] = True
    assert covered.all()


@given(grids_with_boxes(), st.sampled_from([0, 0.3, 0.5, 0.9]))
@settings(deadline=None)
def test_no_box_disappears(made: tuple[TileGrid, np.ndarray], min_kept: float) -> None:
    grid, boxes = made
    placed = place_boxes(boxes, grid, min_kept)
    assert set(placed.boxes) | set(placed.lost_boxes) == set(range(len(boxes)))
    assert not set(placed.boxes) & set(placed.lost_boxes)


@given(grids_with_boxes(), st.sampled_from([0, 0.3, 0.5, 0.9]))
@settings(deadline=None)
def test_boxes_go_to_the_tiles_that_a_plain_loop_finds(made: tuple[TileGrid, np.ndarray], min_kept: float) -> None:
    grid, boxes = made
    placed = place_boxes(boxes, grid, min_kept)
    shares = np.array(
        [areas(boxes_on_tiles(boxes, grid, np.full(len(boxes), number))) / areas(boxes) for number in range(len(grid))]
    )
    expected = {(box, tile) for tile, box in zip(*np.nonzero(shares > min_kept), strict=True)}
    assert set(zip(placed.boxes, placed.tiles, strict=True)) == expected
    for box, tile in zip(placed.lost_boxes, placed.lost_tiles, strict=True):
        assert shares[tile, box] == shares[:, box].max() > 0


@given(grids_with_boxes())
@settings(deadline=None)
def test_a_box_on_a_tile_lies_inside_it_and_goes_back_exactly(made: tuple[TileGrid, np.ndarray]) -> None:
    grid, boxes = made
    placed = place_boxes(boxes, grid, 0.5)
    box = np.concatenate([placed.boxes, placed.lost_boxes])
    tile = np.concatenate([placed.tiles, placed.lost_tiles])
    here = boxes_on_tiles(boxes[box], grid, tile)
    assert here.dtype == np.float32
    assert (here >= 0).all()
    assert (here <= [grid.tile_width, grid.tile_height] * 2).all()
    assert (areas(here) > 0).all()
    low = np.tile(grid.corners(tile), 2)
    clipped = np.clip(boxes[box], low, low + [grid.tile_width, grid.tile_height] * 2)
    assert np.array_equal(here + low.astype(np.float32), clipped)


def test_the_last_tile_is_shifted_back_inside() -> None:
    assert [tuple(tile[:2]) for tile in tiles(400, 400, 300, 0.25)] == [(0, 0), (100, 0), (0, 100), (100, 100)]
    assert len(tiles(2299, 2472, 500, 0)) == 25
    assert tile_starts(1000, 400, 0) == [0, 400, 600]


def test_an_image_smaller_than_a_tile_is_one_smaller_tile() -> None:
    assert tiles(120, 80, 400, 0.05) == [(0, 0, 120, 80)]
    assert tiles(1000, 80, 400, 0)[-1] == (600, 0, 400, 80)


def test_a_box_cut_in_four_equal_parts_goes_to_the_first_of_them() -> None:
    grid = TileGrid.over(200, 200, 100, 0)
    placed = place_boxes(as_boxes([[80, 80, 120, 120]]), grid, 0.5)
    assert len(placed.boxes) == 0
    assert placed.lost_boxes.tolist() == [0]
    assert placed.lost_tiles.tolist() == [0]


def test_half_is_not_more_than_half() -> None:
    grid = TileGrid.over(200, 100, 100, 0)
    assert place_boxes(as_boxes([[90, 0, 110, 10]]), grid, 0.5).lost_boxes.tolist() == [0]
    assert place_boxes(as_boxes([[89, 0, 110, 10]]), grid, 0.5).tiles.tolist() == [0]


def test_boxes_without_area_or_outside_appear_nowhere() -> None:
    grid = TileGrid.over(200, 100, 100, 0)
    placed = place_boxes(as_boxes([[5, 5, 5, 9], [300, 0, 310, 10], [np.nan, 0, 1, 1], [9, 9, 5, 5]]), grid, 0.5)
    assert [len(piece) for piece in placed] == [0, 0, 0, 0]


def test_many_boxes_are_placed_in_pieces_as_they_are_at_once() -> None:
    rng = np.random.default_rng(3)
    corners = rng.random((300_000, 2)) * 9900
    boxes = as_boxes(np.concatenate([corners, corners + rng.random((300_000, 2)) * 90 + 1], axis=1))
    grid = TileGrid.over(10_000, 10_000, 100, 0.5)
    placed = place_boxes(boxes, grid, 0.5)
    assert len(set(placed.boxes) | set(placed.lost_boxes)) == 300_000
    part = place_boxes(boxes[-1000:], grid, 0.5)
    assert sorted(zip(part.boxes + 299_000, part.tiles, strict=True)) == sorted(
        zip(placed.boxes[placed.boxes >= 299_000], placed.tiles[placed.boxes >= 299_000], strict=True)
    )


@pytest.mark.parametrize("min_kept", [-0.1, 1, 2])
def test_min_kept_must_be_a_fraction(min_kept: float) -> None:
    with pytest.raises(OptionError, match="min_kept"):
        place_boxes(as_boxes([]), TileGrid.over(9, 9, 3, 0), min_kept)


@pytest.mark.parametrize(("tile_px", "overlap"), [(0, 0), (-5, 0), (10, 1), (10, -0.1), (10, 5)])
def test_tiles_must_have_a_size_and_move_on(tile_px: int, overlap: float) -> None:
    with pytest.raises(OptionError):
        tile_starts(100, tile_px, overlap)


def test_sizes_are_width_by_height() -> None:
    assert parse_size("640x480") == parse_size("640×480") == parse_size((640, 480)) == (640, 480)
    for wrong in ("640", "axb", "0x5", "-1x5"):
        with pytest.raises(OptionError):
            parse_size(wrong)


@given(st.integers(20, 400), st.integers(20, 400), st.integers(10, 120), st.sampled_from([0.0, 0.05, 0.3, 0.6]))
@settings(max_examples=150, deadline=None)
def test_tiles_beyond_the_guard_share_no_pixel_with_those_before_the_cut(
    width: int, height: int, tile_px: int, overlap: float
) -> None:
    grid = TileGrid.over(width, height, tile_px, overlap)
    for cut in range(1, len(grid), max(1, len(grid) // 7)):
        before = [grid.window(number) for number in range(cut)]
        after = [grid.window(number) for number in range(cut + grid.guard(cut), len(grid))]
        for first in before[-2 * len(grid.columns) :]:
            assert not any(_share_a_pixel(first, second) for second in after)


def _share_a_pixel(first: Window, second: Window) -> bool:
    across = first.x < second.x + second.width and second.x < first.x + first.width
    down = first.y < second.y + second.height and second.y < first.y + first.height
    return across and down
