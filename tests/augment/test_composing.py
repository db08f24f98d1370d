"""Several steps as one view: how far a chain goes, and that it shows the same, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.augment import (
    CenterCrop,
    HorizontalFlip,
    RandomCrop,
    RandomResizedCrop,
    Resize,
    VerticalFlip,
    apply_geometric,
    composed,
    fusible,
    views_of,
)
from penstock.augment.views import Views, window_views
from penstock.errors import OptionError
from penstock.samples import Kind
from view_reference import picture, seen

KINDS: dict[str, Kind] = {"mask": "mask", "boxes": "boxes", "box_label": "labels"}
EVERYTHING: dict[str, Kind] = {"image": "image", **KINDS}
SHORT, LONG = Resize(256, side="shortest"), Resize(224, side="longest")
CROP, PADDED, FLIP, PART = CenterCrop(224), RandomCrop(224, padding=4), HorizontalFlip(), RandomResizedCrop(224)


@pytest.mark.parametrize(
    ("chain", "count"),
    [
        ([], 0),
        ([PART, FLIP], 2),
        ([PART, FLIP, VerticalFlip(), CROP], 4),
        ([SHORT, CROP, FLIP], 3),
        ([SHORT, RandomCrop(224), FLIP, CenterCrop(200)], 4),
        ([LONG, CROP], 2),
        ([LONG, CROP, CenterCrop("200x224")], 3),
        ([PADDED, FLIP], 2),
        ([PADDED, PADDED, FLIP, PADDED], 4),
        ([PART, PADDED, FLIP], 3),
        # not one view
        ([CROP, PART], 1),
        ([PADDED, PART], 1),
        ([FLIP, PART], 1),
        ([SHORT, PART], 1),
        ([PART, PADDED, PADDED], 2),
        ([SHORT, CROP, CenterCrop(225)], 2),
        ([LONG, CROP, CROP, CenterCrop(225)], 3),
        ([CROP, RandomCrop(230, fill=3)], 1),
        ([RandomCrop(224, fill=3), RandomCrop(230, fill=3), CROP], 3),
        ([SHORT, CROP, FLIP, Resize(100)], 3),
    ],
    ids=str,
)
def test_a_chain_is_one_view_as_far_as_its_steps_allow(chain: list[Any], count: int) -> None:
    assert fusible(chain) == count


def test_knowing_the_smallest_image_makes_a_crop_before_a_resize_one_view() -> None:
    assert fusible([CROP, PART, FLIP], smallest=(224, 224)) == 3
    assert fusible([CROP, PART, FLIP], smallest=(224, 223)) == 1
    assert fusible([RandomCrop(224, fill=1), CenterCrop(100, fill=2), PART], smallest=(300, 300)) == 3
    assert fusible([PADDED, PART], smallest=(300, 300)) == 1


small = st.integers(1, 14)
sizes_of_crops = st.tuples(small, small)
fills = st.sampled_from([0, 0, 200])
crops = st.builds(lambda size, fill: CenterCrop(size, fill=fill), sizes_of_crops, fills) | st.builds(
    lambda size, padding, fill: RandomCrop(size, padding=padding, fill=fill),
    sizes_of_crops,
    st.sampled_from([0, 0, 1, 3, 20]),
    fills,
)
resizes = st.builds(
    lambda size, side: Resize(size if side == "exact" else size[0], side=side),
    sizes_of_crops,
    st.sampled_from(["exact", "shortest", "longest"]),
) | st.builds(lambda size: RandomResizedCrop(size, scale=(0.05, 1.0), ratio=(0.3, 3.0)), sizes_of_crops)
flips = st.sampled_from([HorizontalFlip(), VerticalFlip(), HorizontalFlip(1), VerticalFlip(1)])
chains = st.lists(crops | resizes | flips, min_size=1, max_size=5)


def made_sample(size: tuple[int, int], rng: np.random.Generator) -> dict[str, Any]:
    width, height = size
    count = int(rng.integers(0, 6))
    return {
        "image": rng.integers(0, 256, (height, width, 3), dtype=np.uint8),
        "mask": rng.integers(1, 60000, (height, width)).astype(np.uint16),
        # Some reach outside of the image, some have no area.
        "boxes": rng.uniform(-3, max(size) + 3, (count, 4)).astype(np.float32),
        "box_label": np.arange(count),
    }


def assert_same(left: dict[str, Any], right: dict[str, Any]) -> None:
    assert left.keys() == right.keys()
    for name in left:
        assert left[name].dtype == right[name].dtype and np.array_equal(left[name], right[name]), name


def shown(sample: dict[str, Any], views: Views) -> dict[str, Any]:
    """What a view shows of a sample, with the image by the obvious way."""
    rest = apply_geometric({name: value for name, value in sample.items() if name != "image"}, KINDS, views)
    return {"image": seen(sample["image"], views), **rest}


@settings(max_examples=400, deadline=None)
@given(chains, sizes_of_crops, st.booleans(), st.integers(0, 2**32))
def test_one_view_shows_what_the_steps_show_one_after_another(
    chain: list[Any], size: tuple[int, int], knows_smallest: bool, seed: int
) -> None:
    steps = chain[: fusible(chain, smallest=size if knows_smallest else (1, 1))]
    rng = np.random.default_rng(seed)
    uniforms = [rng.random((1, step.uniform_count)) for step in steps]
    sample = made_sample(size, rng)
    together = shown(sample, views_of(steps, np.array([size]), uniforms))
    for step, drawn in zip(steps, uniforms, strict=True):
        height, width = sample["image"].shape[:2]
        sample = shown(sample, step.views(np.array([[width, height]]), drawn))
    assert_same(together, sample)


@settings(max_examples=200, deadline=None)
@given(chains, sizes_of_crops, st.integers(0, 2**32))
def test_the_kernel_gives_the_same_bits_for_one_view_as_step_by_step(
    chain: list[Any], size: tuple[int, int], seed: int
) -> None:
    steps = chain[: fusible(chain)]
    rng = np.random.default_rng(seed)
    uniforms = [rng.random((1, step.uniform_count)) for step in steps]
    sample = made_sample(size, rng)
    together = apply_geometric(sample, EVERYTHING, views_of(steps, np.array([size]), uniforms))
    for step, drawn in zip(steps, uniforms, strict=True):
        height, width = sample["image"].shape[:2]
        sample = apply_geometric(sample, EVERYTHING, step.views(np.array([[width, height]]), drawn))
    assert_same(together, sample)


def test_many_samples_are_composed_at_once() -> None:
    rng = np.random.default_rng(6)
    steps = [RandomResizedCrop(9), RandomCrop(9, padding=3, fill=4), HorizontalFlip(), CenterCrop(7)]
    assert fusible(steps) == 4
    sizes = rng.integers(1, 30, (50, 2))
    uniforms = [rng.random((50, step.uniform_count)) for step in steps]
    together = views_of(steps, sizes, uniforms)
    for row in range(50):
        alone = views_of(steps, sizes[row : row + 1], [drawn[row : row + 1] for drawn in uniforms])
        image = picture(*sizes[row].tolist(), seed=row)
        assert np.array_equal(seen(image, together, row), seen(image, alone))


def test_views_may_be_joined_in_any_order() -> None:
    image, size = picture(9, 8), (9, 8)
    flip, crop, back = HorizontalFlip(1), RandomCrop((5, 4), padding=2, fill=60), HorizontalFlip(1)
    first, second, third = one(flip, size), one(crop, size, 0.2, 0.9), one(back, (5, 4))
    wanted = seen(seen(seen(image, first), second), third)
    assert np.array_equal(seen(image, composed(first, composed(second, third))), wanted)
    assert np.array_equal(seen(image, composed(composed(first, second), third)), wanted)


def test_no_steps_show_the_whole_image() -> None:
    image = picture(5, 4)
    assert np.array_equal(seen(image, views_of([], np.array([[5, 4]]), [])), image)


def one(step: Any, size: tuple[int, int], *uniforms: float) -> Views:
    views: Views = step.views(np.array([size]), np.array([uniforms]))
    return views


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (one(CenterCrop(8), (4, 4)), one(Resize(5), (8, 8))),
        (one(HorizontalFlip(1), (4, 4)), one(Resize(5), (4, 4))),
        (one(Resize(5), (4, 4)), one(Resize(3), (5, 5))),
        (composed(one(Resize(8), (4, 4)), one(CenterCrop(4), (8, 8))), one(CenterCrop(6), (4, 4))),
        (one(CenterCrop(8, fill=1), (4, 4)), one(CenterCrop(9, fill=2), (8, 8))),
    ],
    ids=["padded then resized", "flipped then resized", "resized twice", "cut then padded", "two fills"],
)
def test_views_that_are_not_one_view_are_refused(first: Views, second: Views) -> None:
    with pytest.raises(OptionError, match="is not one view of the image"):
        composed(first, second)


def test_a_crop_hides_for_good_what_it_cut_off() -> None:
    image = picture(9, 9)
    views = composed(one(CenterCrop(3), (9, 9)), one(CenterCrop(7, fill=50), (3, 3)))
    wanted = np.full((7, 7, 3), 50, np.uint8)
    wanted[2:5, 2:5] = image[3:6, 3:6]
    assert np.array_equal(seen(image, views), wanted)


def test_what_missed_the_image_stays_missed() -> None:
    missed = window_views(np.array([[20, 0, 4, 4]]), np.array([[6, 6]]), fill=80)
    views = composed(missed, one(CenterCrop(30, fill=80), (4, 4)))
    assert (seen(picture(6, 6), views) == 80).all()
