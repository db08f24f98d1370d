"""Normalize and Grey: exact values, and where statistics come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import penstock as ps
from made_sources import Pictures
from penstock.augment import Grey, Normalize
from penstock.codecs.kernel.targets import Target, level_table
from penstock.errors import OptionError
from penstock.samples import as_store
from picture_making import write_picture
from view_reference import picture

NONE = np.zeros((4, 0))
PAIR = ((10.0, 20.0, 30.0), (2.0, 3.0, 4.0))


def images(*leading: int) -> Any:
    return np.random.default_rng(1).integers(0, 256, (*leading, 5, 7, 3), dtype=np.uint8)


@pytest.mark.parametrize("leading", [(4,), (4, 2)])
def test_normalised_values_are_those_of_the_kernel_with_channels_first(leading: tuple[int, ...]) -> None:
    levels = images(*leading)
    out = Normalize(PAIR).pixels(levels, NONE)
    table = level_table(Target(7, 5, "chw-float32", *PAIR))
    assert out.shape == (*leading, 3, 5, 7) and out.dtype == np.float32
    for channel in range(3):
        assert np.array_equal(out[..., channel, :, :], table[channel][levels[..., channel]])


def test_imagenet_statistics_are_those_of_fractions() -> None:
    levels = images(4)
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    wanted = np.moveaxis((levels / 255 - mean) / std, -1, 1)
    assert np.abs(Normalize().pixels(levels, NONE) - wanted).max() < 1e-6


def test_pairs_of_lists_and_arrays_are_the_same_step() -> None:
    assert Normalize([list(PAIR[0]), list(PAIR[1])]) == Normalize(np.array(PAIR)) == Normalize(PAIR)  # type: ignore[arg-type]


@pytest.fixture
def pack(tmp_path: Path) -> ps.Pack:
    for number in range(6):
        write_picture(tmp_path / "pictures" / ("cat" if number % 2 else "dog") / f"{number}.png", seed=number)
    ps.pack(ps.Images(tmp_path / "pictures"), tmp_path / "a.pack")
    return ps.open(tmp_path / "a.pack")


def test_the_statistics_of_a_pack_are_found_below_subsets_too(pack: ps.Pack) -> None:
    wanted = Normalize((tuple(pack.statistics["mean"]), tuple(pack.statistics["std"])))
    assert wanted.mean[0] > 100
    for source in (pack, ps.Subset(pack, [0]), ps.Subset(ps.Subset(pack, [0, 1]), [1])):
        assert Normalize("pack").resolved(source) == wanted


def test_statistics_that_are_known_stay_as_they_are(pack: ps.Pack) -> None:
    assert Normalize().resolved(pack) == Normalize()
    assert Normalize(PAIR).resolved(as_store(Pictures(3))) == Normalize(PAIR)


class Measured(Pictures):
    def __init__(self, **statistics: Any) -> None:
        super().__init__(3)
        self.statistics = statistics


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (Pictures(3), "Pictures has no channel statistics"),
        (ps.Subset(Pictures(3), [0]), "Pictures has no channel statistics"),
        (Measured(), "Measured has no channel statistics"),
        (Measured(mean=[0.0] * 3, std=[0.0] * 3, images=0), "Measured has no channel statistics"),
        (Measured(mean=[5.0] * 3, std=[1.0, 0.0, 1.0], images=3), "a channel of this pack never changes"),
    ],
)
def test_a_source_without_statistics_is_a_clear_error(source: Any, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        Normalize("pack").resolved(as_store(source))


def test_pack_statistics_must_be_known_before_they_are_used() -> None:
    with pytest.raises(OptionError, match="resolved"):
        Normalize("pack").pixels(images(4), NONE)


def test_grey_is_the_luma_of_pillow_in_three_channels() -> None:
    levels = np.concatenate([picture(64, 64, seed)[None] for seed in range(8)])
    levels[0, 0, :4] = [[255, 255, 255], [0, 0, 0], [255, 0, 0], [0, 0, 255]]
    out = Grey().pixels(levels, np.zeros((8, 0)))
    assert out.dtype == np.uint8
    for image, grey in zip(levels, out, strict=True):
        wanted = np.asarray(Image.fromarray(image).convert("L"))
        assert all(np.array_equal(grey[..., channel], wanted) for channel in range(3))


def test_grey_is_chosen_once_for_all_frames_and_leaves_its_input_alone() -> None:
    clips = images(4, 2)
    before = clips.copy()
    out = Grey(0.5).pixels(clips, np.array([[0.1], [0.5], [0.49], [0.9]]))
    assert np.array_equal(clips, before)
    is_grey = (out == out[..., :1]).all(axis=(1, 2, 3, 4))
    assert is_grey.tolist() == [True, False, True, False]
    assert np.array_equal(out[[1, 3]], clips[[1, 3]])


@pytest.mark.parametrize("step", [Grey(), Normalize()])
def test_steps_on_pixels_refuse_what_was_normalised(step: Any) -> None:
    with pytest.raises(OptionError, match="Normalize goes last"):
        step.pixels(Normalize().pixels(images(4), NONE), NONE)


def test_statistics_of_pixels_from_0_to_1_are_refused_with_those_of_levels() -> None:
    fractions = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    with pytest.raises(ps.OptionError, match=r"Multiply mean and std by 255: \(\(123\.675, 116\.28, 103\.53\)"):
        Normalize(fractions)
    for task in (ps.Classification, ps.Detection, ps.Behaviour):
        with pytest.raises(ps.OptionError, match="Multiply mean and std by 255"):
            task(("a", "b"), normalize=fractions)  # type: ignore[operator]
    assert Normalize(((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))).std == (1.0, 1.0, 1.0)  # floats of the same levels
