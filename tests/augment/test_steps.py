"""What every step obeys, and what its options may be."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.augment import (
    CenterCrop,
    Geometric,
    Grey,
    HorizontalFlip,
    Normalize,
    Pixelwise,
    RandomCrop,
    RandomResizedCrop,
    Resize,
    VerticalFlip,
    is_geometric,
)
from penstock.errors import OptionError

GEOMETRIC = (
    Resize(8),
    Resize("9x7"),
    Resize(6, side="shortest"),
    Resize(11, side="longest"),
    RandomResizedCrop(8),
    RandomResizedCrop((5, 9), scale=(0.5, 1.0), ratio=(0.1, 4.0)),
    CenterCrop(6),
    CenterCrop("20x3", fill=9),
    RandomCrop(6),
    RandomCrop(6, padding=4, fill=200),
    RandomCrop((2, 3), padding=30),
    HorizontalFlip(),
    HorizontalFlip(1),
    VerticalFlip(0.2),
    VerticalFlip(0),
)
PIXELWISE = (Normalize(), Normalize(((1.0, 2.0, 3.0), (4.0, 5.0, 6.0))), Grey(), Grey(0.4))


def sizes_and_uniforms(step: Any, count: int = 200) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, 30, (count, 2))
    sizes[0], sizes[1], sizes[2] = (1, 1), (1, 29), (29, 1)
    return sizes, rng.random((count, step.uniform_count))


@pytest.mark.parametrize("step", GEOMETRIC, ids=str)
def test_views_lie_inside_their_images_and_have_the_size_that_was_promised(step: Any) -> None:
    sizes, uniforms = sizes_and_uniforms(step)
    views = step.views(sizes, uniforms)
    assert len(views) == len(sizes)
    assert (views.crops[:, :2] >= 0).all() and (views.crops[:, :2] + views.crops[:, 2:] <= sizes).all()
    assert (views.crops[:, 2:] >= 1).all() and (views.resized >= 1).all() and (views.sizes >= 1).all()
    assert views.flips.dtype == np.uint8
    if step.output_size is not None:
        assert (views.sizes == step.output_size).all()


@pytest.mark.parametrize("step", GEOMETRIC, ids=str)
def test_the_view_of_a_sample_does_not_depend_on_the_samples_beside_it(step: Any) -> None:
    sizes, uniforms = sizes_and_uniforms(step, 40)
    together = step.views(sizes, uniforms)
    for row in range(len(sizes)):
        alone, same = step.views(sizes[row : row + 1], uniforms[row : row + 1]), together.span(row, row + 1)
        for name in ("crops", "resized", "parts", "flips", "fill"):
            assert np.array_equal(getattr(alone, name), getattr(same, name)), name


@pytest.mark.parametrize("step", GEOMETRIC, ids=str)
def test_no_samples_give_no_views(step: Any) -> None:
    assert len(step.views(np.zeros((0, 2), np.int64), np.zeros((0, step.uniform_count)))) == 0


@pytest.mark.parametrize("step", [*GEOMETRIC, *PIXELWISE], ids=str)
def test_a_step_is_of_one_kind_and_cannot_be_changed(step: Any) -> None:
    assert isinstance(step, Geometric) is is_geometric(step) is (step in GEOMETRIC)
    assert isinstance(step, Pixelwise) is (step in PIXELWISE)
    assert pickle.loads(pickle.dumps(step)) == step and hash(step) == hash(pickle.loads(pickle.dumps(step)))
    with pytest.raises(FrozenInstanceError):
        step.anything = 1


@pytest.mark.parametrize("size", [(8, 6), [8, 6], "8x6", "8×6", (np.int64(8), 6)])
def test_a_size_may_be_written_in_several_ways(size: Any) -> None:
    assert CenterCrop(size) == CenterCrop("8x6")
    assert RandomResizedCrop(size).output_size == Resize(size).output_size == RandomCrop(size).output_size == (8, 6)


def test_one_number_is_a_square() -> None:
    assert Resize(8).output_size == RandomCrop("8").output_size == (8, 8)


@pytest.mark.parametrize("size", [0, -3, 70000, 2.5, True, None, "eight", "8x", (8,), (8, 6, 3), (8, 0), (8, "6"), "0"])
@pytest.mark.parametrize("step", [Resize, RandomResizedCrop, CenterCrop, RandomCrop])
def test_a_wrong_size_is_refused(step: Any, size: Any) -> None:
    with pytest.raises(OptionError, match="size"):
        step(size)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Resize(8, side="short"), "exact, shortest, longest. Did you mean 'shortest'?"),
        (lambda: Resize((8, 6), side="shortest"), "side='shortest' must be one whole number from 1 to 65500"),
        (lambda: Resize("8x6", side="longest"), "side='longest' must be one whole number"),
        (lambda: RandomResizedCrop(8, scale=(0.0, 1.0)), "scale=(0.0, 1.0) must be (smallest, largest), both above 0"),
        (lambda: RandomResizedCrop(8, scale=(0.5, 1.5)), "at most 1"),
        (lambda: RandomResizedCrop(8, scale=(0.5, 0.2)), "(smallest, largest)"),
        (lambda: RandomResizedCrop(8, scale=0.5), "scale=0.5 must be (smallest, largest)"),
        (lambda: RandomResizedCrop(8, ratio=(1.0, float("inf"))), "ratio"),
        (lambda: RandomCrop(8, padding=-1), "padding=-1 must be a whole number from 0"),
        (lambda: RandomCrop(8, padding=1.5), "padding=1.5 must be a whole number"),
        (lambda: RandomCrop(8, fill=256), "fill=256 must be a whole number from 0 to 255"),
        (lambda: CenterCrop(8, fill=-1), "fill=-1 must be a whole number from 0 to 255"),
        (lambda: HorizontalFlip(1.5), "p=1.5 must be a probability from 0 to 1"),
        (lambda: VerticalFlip(float("nan")), "p=nan"),
        (lambda: Grey("often"), "p='often'"),
        (lambda: Normalize("imagnet"), "imagenet, pack, (mean, std). Did you mean 'imagenet'?"),
        (lambda: Normalize((1.0, 2.0)), "((r, g, b), (r, g, b))"),
        (lambda: Normalize(((1.0, 2.0), (3.0, 4.0))), "((r, g, b), (r, g, b))"),
        (lambda: Normalize((((1.0,), 2.0, 3.0), (1.0, 1.0, 1.0))), "((r, g, b), (r, g, b))"),
        (lambda: Normalize((("a", "b", "c"), (1.0, 1.0, 1.0))), "((r, g, b), (r, g, b))"),
        (lambda: Normalize(((1.0, 2.0, 3.0), (1.0, 0.0, 1.0))), "must be above zero"),
        (lambda: Normalize(((1.0, 2.0, float("nan")), (1.0, 1.0, 1.0))), "((r, g, b), (r, g, b)): finite"),
    ],
)
def test_a_wrong_option_is_refused_with_what_is_legal(make: Any, words: str) -> None:
    with pytest.raises(OptionError) as caught:
        make()
    assert words in str(caught.value)


def test_options_are_given_by_name() -> None:
    with pytest.raises(TypeError):
        RandomCrop(8, 4)  # type: ignore[misc]


def test_the_steps_are_found_from_the_package() -> None:
    assert ps.augment.RandomResizedCrop(8) == RandomResizedCrop(8)


def test_a_certain_flip_needs_no_random_number() -> None:
    assert [HorizontalFlip(p).uniform_count for p in (0, 0.5, 1)] == [0, 1, 0]
    assert [Grey(p).uniform_count for p in (0, 0.5, 1)] == [0, 1, 0]
    sizes, none = np.array([[3, 2]] * 4), np.zeros((4, 0))
    assert HorizontalFlip(1).views(sizes, none).flips.tolist() == [1] * 4
    assert VerticalFlip(1).views(sizes, none).flips.tolist() == [2] * 4
    assert VerticalFlip(0).views(sizes, none).flips.tolist() == [0] * 4


def test_a_flip_is_as_frequent_as_its_probability() -> None:
    uniforms = np.array([[0.0], [0.29], [0.3], [0.99]])
    assert HorizontalFlip(0.3).views(np.ones((4, 2), np.int64), uniforms).flips.tolist() == [1, 1, 0, 0]
