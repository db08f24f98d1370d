"""Windows put together give what a look at the whole image gives: tested with a network that sees 8 px at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")

from penstock.geometry.suppression import suppress  # noqa: E402
from penstock.prediction.answering import AnswerOptions  # noqa: E402
from penstock.prediction.boxes import mosaics  # noqa: E402
from penstock.prediction.boxes.finding_boxes import Asker, boxes_in_scene  # noqa: E402
from penstock.prediction.boxes.mosaics import Mosaic, SceneBoxes  # noqa: E402
from penstock.prediction.boxes.options import FindingOptions  # noqa: E402
from penstock.prediction.boxes.scenes import (  # noqa: E402
    Scene,
    Shown,
    WindowPlan,
    image_scene,
    window_plan,
    windows_ahead,
)
from penstock.tasks.detection.retina import Found  # noqa: E402
from spot_making import MODEL, TASK, picture  # noqa: E402

ANSWERING = AnswerOptions()


def found_in(scene: Scene, **options: Any) -> Any:
    return boxes_in_scene(Asker(MODEL), scene, FindingOptions(**options), ANSWERING)


def put_together(plan: WindowPlan, shown: Iterable[Shown]) -> SceneBoxes:
    mosaic = Mosaic(plan, TASK)
    for number, found in Asker(MODEL).ask(shown, plan.shown_px):
        mosaic.add(number, mosaic.answered(number, found))
    return mosaic.boxes()


@settings(max_examples=25, deadline=None)
@given(
    width=st.integers(40, 400),
    height=st.integers(40, 400),
    tile_px=st.sampled_from([64, 96, 100, 128, 200]),
    overlap=st.sampled_from([0.05, 0.25, 0.5]),
    seed=st.integers(0, 9),
)
def test_windows_give_what_the_whole_image_gives(
    width: int, height: int, tile_px: int, overlap: float, seed: int
) -> None:
    scene = image_scene("spots", picture(width, height, seed))
    whole, cut = found_in(scene, tile_px=400), found_in(scene, tile_px=tile_px, overlap=overlap)
    np.testing.assert_allclose(cut.boxes, whole.boxes, atol=0.01)
    np.testing.assert_allclose(cut.scores, whole.scores, atol=1e-4)


@settings(max_examples=20, deadline=None)
@given(order=st.permutations(list(range(16))), workers=st.integers(1, 5))
def test_the_answer_does_not_depend_on_the_order_of_windows(order: list[int], workers: int) -> None:
    pixels = picture(250, 250, 1)
    scene = image_scene("spots", pixels)
    plan = window_plan(250, 250, tile_px=80, overlap=0.1, stride=32)
    numbers = np.arange(len(plan.grid))
    shown = {one.number: one for one in scene.read(plan, numbers, 1)}
    mixed = [shown[number] for number in order if number in shown]
    straight = put_together(plan, windows_ahead(scene, plan, numbers, workers))
    other = put_together(plan, mixed)
    assert len(straight.scores) > 10
    for one, two in zip(straight, other, strict=True):
        np.testing.assert_array_equal(one, two)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 999),
    iou=st.sampled_from([0.05, 0.15, 0.3, 0.5]),
    loose=st.sampled_from([0, 40, 10_000]),
    by_class=st.booleans(),
)
def test_chains_of_boxes_across_seams_end_as_in_one_suppression_of_all(
    seed: int, iou: float, loose: int, by_class: bool
) -> None:
    rng = np.random.default_rng(seed)
    plan = window_plan(300, 260, tile_px=96, overlap=0.2, stride=16)
    corners = rng.uniform(0, 250, (300, 2))
    boxes = np.hstack([corners, corners + rng.uniform(12, 30, (300, 2))])
    boxes = np.minimum(boxes, [300, 260, 300, 260]).astype(np.float32)
    labels, scores = rng.integers(0, 2, 300), np.round(rng.uniform(0.6, 1, 300), 2).astype(np.float32)
    task = dataclasses.replace(TASK, nms_threshold=iou, nms_by_class=by_class, score_threshold=0.5)
    mosaic = Mosaic(plan, task)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mosaics, "MOST_LOOSE", loose)
        for number in rng.permutation(len(plan.grid)).tolist():
            window = plan.grid.window(number)
            moved = torch.from_numpy(boxes - np.float32([window.x, window.y] * 2))
            found = Found(moved, torch.from_numpy(labels), torch.from_numpy(scores))
            mosaic.add(number, mosaic.answered(number, found))
    expected = suppress(boxes, scores, iou=iou, groups=labels if by_class else None)
    together = mosaic.boxes()
    np.testing.assert_allclose(together.boxes, boxes[expected], atol=1e-3)
    np.testing.assert_array_equal(together.labels, labels[expected])


def test_windows_begin_at_whole_strides_and_cover_everything() -> None:
    plan = window_plan(2299, 2472, tile_px=400, overlap=0.05, stride=64)
    assert set(np.array([*plan.grid.columns, *plan.grid.rows]) % 64) == {0}
    assert plan.grid.columns[1] == 384
    assert len(plan.grid) == 42
    assert plan.grid.columns[-1] + 400 >= 2299


def test_windows_of_a_finer_image_are_larger_in_its_pixels() -> None:
    plan = window_plan(4000, 4000, tile_px=400, overlap=0.05, stride=32, ratio=4.0)
    assert plan.grid.tile_px == 1600
    tile = np.zeros((1600, 1600, 3), np.uint8)
    assert plan.shown(0, tile).shape == (400, 400, 3)


def test_windows_of_one_colour_are_not_looked_at() -> None:
    pixels = picture(256, 256, 2)
    pixels[:, 128:] = 255
    scene = image_scene("half", pixels)
    plan = window_plan(256, 256, tile_px=64, overlap=0, stride=32)
    looked = {one.number for one in scene.read(plan, np.arange(len(plan.grid)), 1)}
    assert looked == {number for number in range(len(plan.grid)) if plan.grid.window(number).x < 128}


@pytest.mark.parametrize("where", [(0, 0), (0, 5), (5, 0), (63, 63), 5, (slice(None), 5)])
@pytest.mark.parametrize("channel", [0, 1, 2])
def test_a_pixel_or_a_line_of_another_colour_is_worth_a_look(where: Any, channel: int) -> None:
    pixels = np.full((64, 64, 3), (9, 8, 9), np.uint8)
    pixels[..., channel][where] = 7
    plan = window_plan(64, 64, tile_px=64, overlap=0, stride=32)
    assert len(list(image_scene("spot", pixels).read(plan, np.arange(1), 1))) == 1


def test_an_error_of_a_reader_comes_out_and_no_thread_stays() -> None:
    import threading

    def read(plan: Any, numbers: Any, threads: int) -> Any:
        yield Shown(0, np.zeros((64, 64, 3), np.uint8))
        raise OSError("the disk is gone")

    scene = Scene("broken", 640, 640, None, True, read)
    plan = window_plan(640, 640, tile_px=64, overlap=0, stride=32)
    with pytest.raises(OSError, match="the disk is gone"):
        list(windows_ahead(scene, plan, np.arange(len(plan.grid)), 2))
    left_early = windows_ahead(image_scene("spots", picture(640, 640, 0)), plan, np.arange(len(plan.grid)), 3)
    next(left_early)
    left_early.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "penstock-reader"]
