"""Steps on one sample: images, clips, masks and boxes move together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.augment import (
    CenterCrop,
    Grey,
    HorizontalFlip,
    Normalize,
    RandomCrop,
    RandomResizedCrop,
    Resize,
    VerticalFlip,
    apply,
    apply_geometric,
    image_size,
)
from penstock.augment.views import Views, window_views
from penstock.errors import OptionError
from penstock.samples import Kind
from view_reference import picture, seen

KINDS: dict[str, Kind] = {"image": "image", "mask": "mask", "boxes": "boxes", "box_label": "labels", "score": "number"}


def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def boxed(boxes: list[list[float]], width: int = 20, height: int = 10) -> dict[str, Any]:
    labels = np.arange(len(boxes)) + 10
    return {
        "image": picture(width, height),
        "boxes": np.array(boxes, np.float32).reshape(-1, 4),
        "box_label": labels,
        "box_certain": labels > 10,
    }


@pytest.mark.parametrize("size", [(1, 1), (1, 7), (30, 20), (64, 3)])
@pytest.mark.parametrize(
    "step",
    [
        Resize(9),
        Resize((40, 2)),
        Resize(5, side="longest"),
        RandomResizedCrop((7, 5)),
        CenterCrop(8, fill=3),
        RandomCrop(6, padding=2, fill=99),
        RandomCrop(2, padding=40, fill=1),
        HorizontalFlip(),
        VerticalFlip(1),
    ],
    ids=str,
)
def test_an_image_comes_out_as_the_obvious_way_gives_it(step: Any, size: tuple[int, int]) -> None:
    image = picture(*size)
    drawn = rng().random((1, step.uniform_count))
    views = step.views(np.array([size]), drawn)
    wanted = seen(image, views)
    out = apply(step, {"image": image}, rng())["image"]
    assert out.shape == wanted.shape and out.dtype == np.uint8
    # At the same scale exact; where the kernel resizes it may differ from its fallback by a level.
    assert np.abs(out.astype(int) - wanted).max() <= int(views.is_scaled)


def test_the_sample_itself_is_left_alone() -> None:
    sample = boxed([[1, 1, 5, 5], [15, 1, 19, 5]])
    before = {name: value.copy() for name, value in sample.items()}
    out = apply(CenterCrop(6), sample)
    assert out is not sample and all(np.array_equal(sample[name], before[name]) for name in before)


def test_all_frames_of_a_clip_are_seen_alike() -> None:
    clip = np.stack([picture(12, 9, seed) for seed in range(4)])
    masks = np.stack([np.full((9, 12), number, np.uint8) for number in range(4)])
    for step in (RandomResizedCrop(5), RandomCrop(7, padding=3), HorizontalFlip(1)):
        out = apply(step, {"image": clip, "mask": masks}, rng())
        for number in range(4):
            alone = apply(step, {"image": clip[number], "mask": masks[number]}, rng())
            assert np.array_equal(out["image"][number], alone["image"])
            assert np.array_equal(out["mask"][number], alone["mask"])


def test_images_that_are_not_contiguous_are_read_right() -> None:
    image = picture(16, 12)
    out = apply(CenterCrop(4), {"image": image[::2, ::-2]})["image"]
    assert np.array_equal(out, apply(CenterCrop(4), {"image": image[::2, ::-2].copy()})["image"])


def test_every_image_of_a_sample_is_seen_alike() -> None:
    image = picture(12, 9)
    out = apply(RandomCrop(5), {"image": image, "before": image, "note": "as it was"}, rng())
    assert np.array_equal(out["image"], out["before"]) and out["note"] == "as it was"


def test_images_of_different_sizes_are_a_clear_error() -> None:
    with pytest.raises(OptionError, match="image 12x9, other 5x9"):
        apply(CenterCrop(5), {"image": picture(12, 9), "other": picture(5, 9)})
    with pytest.raises(OptionError, match="image 12x9, mask 3x4"):
        image_size({"image": picture(12, 9), "mask": np.zeros((4, 3), int)}, KINDS)


def test_a_geometric_step_needs_an_image() -> None:
    with pytest.raises(OptionError, match=r"need a field of kind image .* a sample has score"):
        apply(CenterCrop(5), {"score": 3})


@pytest.mark.parametrize("step", [CenterCrop(5), Grey()])
def test_nothing_follows_normalize(step: Any) -> None:
    sample = apply(Normalize(), {"image": picture(12, 9)})
    assert sample["image"].shape == (3, 9, 12)
    with pytest.raises(OptionError, match="Normalize goes last"):
        apply(step, sample, schema=KINDS)


def test_an_image_without_pixels_is_a_clear_error() -> None:
    with pytest.raises(OptionError, match="has no pixels"):
        apply(CenterCrop(5), {"image": np.zeros((0, 4, 3), np.uint8)})


def test_a_mask_takes_the_pixel_under_the_centre_of_each_new_one() -> None:
    mask = np.arange(4 * 6).reshape(4, 6)
    sample = {"image": picture(6, 4), "mask": mask}
    assert np.array_equal(apply(Resize((3, 2)), sample)["mask"], mask[1::2, 1::2])
    assert np.array_equal(apply(Resize((12, 4)), sample)["mask"], np.repeat(mask, 2, axis=1))
    assert np.array_equal(apply(Resize((2, 4)), sample)["mask"], mask[:, [1, 4]])
    assert np.array_equal(apply(HorizontalFlip(1), sample)["mask"], mask[:, ::-1])
    assert np.array_equal(apply(VerticalFlip(1), sample)["mask"], mask[::-1])


def test_a_mask_gets_no_value_that_it_did_not_have() -> None:
    mask = rng().choice(np.array([3, 250, 60000], np.uint16), (30, 40))
    for step in (Resize(17), Resize(77), RandomResizedCrop(11)):
        out = apply(step, {"image": picture(40, 30), "mask": mask}, rng())["mask"]
        assert out.dtype == np.uint16 and set(np.unique(out)) <= {3, 250, 60000}


def test_outside_of_the_image_a_mask_is_zero_whatever_the_fill() -> None:
    mask = np.ones((2, 2), bool)
    out = apply(CenterCrop(4, fill=200), {"image": picture(2, 2), "mask": mask})["mask"]
    assert out.dtype == bool and out.tolist() == [[False] * 4, *[[False, True, True, False]] * 2, [False] * 4]


def test_boxes_are_shifted_and_cut_by_a_crop() -> None:
    out = apply(CenterCrop((10, 6)), boxed([[6, 3, 9, 5], [0, 0, 8, 10], [10.5, 2.25, 30, 4]]))
    assert out["boxes"].tolist() == [[1, 1, 4, 3], [0, 0, 3, 6], [5.5, 0.25, 10, 2]]
    assert out["boxes"].dtype == np.float32
    assert out["box_label"].tolist() == [10, 11, 12]


def test_boxes_of_which_nothing_is_seen_are_dropped_with_what_belongs_to_them() -> None:
    sample = {**boxed([[0, 0, 5, 5], [6, 3, 9, 5], [15, 0, 20, 10], [8, 4, 8, 6]]), "box_colours": np.arange(3)}
    out = apply(CenterCrop((10, 6)), sample)
    assert out["boxes"].tolist() == [[1, 1, 4, 3]]
    assert out["box_label"].tolist() == [11] and out["box_certain"].tolist() == [True]
    assert out["box_colours"].tolist() == [0, 1, 2]  # another length: it says nothing of single boxes


def test_boxes_are_scaled_and_flipped_with_the_image() -> None:
    sample = boxed([[2, 1, 6, 4]])
    assert apply(Resize((40, 5)), sample)["boxes"].tolist() == [[4, 0.5, 12, 2]]
    assert apply(HorizontalFlip(1), sample)["boxes"].tolist() == [[14, 1, 18, 4]]
    assert apply(VerticalFlip(1), sample)["boxes"].tolist() == [[2, 6, 6, 9]]


def test_boxes_do_not_reach_into_the_padding() -> None:
    out = apply(CenterCrop((24, 10)), boxed([[-5, 2, 30, 4]]))
    assert out["boxes"].tolist() == [[2, 2, 22, 4]]


def test_a_box_marks_the_same_pixels_after_any_step() -> None:
    image = np.zeros((40, 60, 3), np.uint8)
    image[8:24, 12:40] = 255
    sample = {"image": image, "boxes": np.array([[12, 8, 40, 24]], np.float32)}
    generator = rng()
    for step in [RandomCrop(30, padding=8), RandomResizedCrop(50), HorizontalFlip(1), VerticalFlip(1), Resize(97)] * 10:
        out = apply(step, sample, generator)
        rows, columns = np.nonzero(out["image"][..., 0] > 127)
        if len(rows) and len(out["boxes"]):
            marked = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
            assert np.abs(out["boxes"][0] - marked).max() <= 1.0


@pytest.mark.parametrize("step", [CenterCrop(3), Resize(4), HorizontalFlip(1), RandomCrop(40, padding=9)])
def test_no_boxes_stay_no_boxes(step: Any) -> None:
    out = apply(step, boxed([]), rng())
    assert out["boxes"].shape == (0, 4) and out["boxes"].dtype == np.float32
    assert out["box_label"].shape == (0,)


def test_a_view_that_misses_the_image_shows_fill_no_mask_and_no_boxes() -> None:
    sample = {**boxed([[0, 0, 20, 10]]), "mask": np.ones((10, 20), np.uint8)}
    for x, y in ((20, 0), (-4, 0), (0, 10), (0, -4), (500, 500)):
        views = window_views(np.array([[x, y, 4, 4]]), np.array([[20, 10]]), fill=33)
        out = apply_geometric(sample, KINDS, views)
        assert (out["image"] == 33).all() and (out["mask"] == 0).all()
        assert out["boxes"].shape == (0, 4) and out["box_label"].shape == (0,)


def test_broken_boxes_are_not_seen() -> None:
    out = apply(CenterCrop(10), boxed([[float("nan"), 0, 9, 9], [9, 0, 3, 5], [6, 1, 7, 2]]))
    assert out["box_label"].tolist() == [12]


def test_boxes_are_exact_to_a_256th_of_a_pixel_in_the_largest_image() -> None:
    from penstock.augment.applying import seen_boxes

    size = 65500
    corner = np.float32(size - 1 / 256)
    views = Views(
        np.array([[0, 0, size, size]]),
        np.array([[size, size]]),
        np.array([[0, 0, size, size]]),
        np.array([1], np.uint8),
    )
    turned, _ = seen_boxes(np.array([[0, 0, corner, 1]], np.float32), views)
    assert turned.tolist() == [[1 / 256, 0, size, 1]]
    back, _ = seen_boxes(turned, views)
    assert back.tolist() == [[0, 0, float(corner), 1]]


def test_two_fields_of_boxes_need_names_of_their_own() -> None:
    kinds: dict[str, Kind] = {"boxes": "boxes", "crowds": "boxes", "box_label": "labels"}
    whole = HorizontalFlip(1).views(np.array([[20, 10]]), np.zeros((1, 0)))
    sample = {**boxed([[0, 0, 1, 1]]), "crowds": np.array([[2.0, 2.0, 4.0, 4.0]])}
    with pytest.raises(OptionError, match="boxes and crowds are both boxes"):
        apply_geometric(sample, kinds, whole)
    del kinds["box_label"]
    assert apply_geometric(sample, kinds, whole)["crowds"].tolist() == [[16, 2, 18, 4]]


def test_fields_are_told_by_a_schema_where_there_is_one() -> None:
    schema = ps.Schema(
        (ps.Field("picture", "image"), ps.Field("areas", "mask"), ps.Field("depth", "array", "uint8", (4, 6)))
    )
    sample = {"picture": picture(6, 4), "areas": np.ones((4, 6), int), "depth": np.zeros((4, 6), np.uint8)}
    out = apply(CenterCrop(2), sample, schema=schema)
    assert out["picture"].shape == (2, 2, 3) and out["areas"].shape == (2, 2) and out["depth"].shape == (4, 6)
    guessed = apply(CenterCrop(2), sample)
    assert guessed["depth"].shape == (2, 2)  # whole numbers in the size of the image look like a mask


def test_a_random_step_needs_a_generator_and_gives_the_same_for_the_same() -> None:
    sample = {"image": picture(30, 20)}
    with pytest.raises(OptionError, match="RandomCrop is random"):
        apply(RandomCrop(5), sample)
    assert np.array_equal(apply(RandomCrop(5), sample, rng())["image"], apply(RandomCrop(5), sample, rng())["image"])


def test_steps_on_pixels_reach_every_image_and_nothing_else() -> None:
    sample = {"image": picture(6, 4), "mask": np.full((4, 6), 9, np.uint8), "boxes": np.ones((2, 4), np.float32)}
    out = apply(Normalize(((0.0,) * 3, (1.0,) * 3)), sample)
    assert np.array_equal(out["image"], np.moveaxis(sample["image"], 2, 0).astype(np.float32))
    assert out["mask"] is sample["mask"] and out["boxes"] is sample["boxes"]
