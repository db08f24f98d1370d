"""Images in memory are answered as files of the same pixels are; what is no RGB image is refused with a remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

import penstock as ps
from penstock.codecs.images import decode_image
from penstock.prediction.inputs import image_arrays
from shape_making import shape_picture


def without_names(table: Any) -> pd.DataFrame:
    return pd.DataFrame(table).drop(columns="image_path")


def test_arrays_are_answered_as_png_files_of_the_same_pixels(run: ps.Run, photos: Path) -> None:
    files = sorted(photos.glob("*.png"))
    arrays = [decode_image(file.read_bytes()) for file in files]
    expected: Any = ps.predict(run, files)
    for images in (arrays, tuple(arrays), [Image.fromarray(one) for one in arrays], [Image.open(f) for f in files]):
        found: Any = ps.predict(run, images)
        pd.testing.assert_frame_equal(without_names(found), without_names(expected), check_exact=True)
        assert found["image_path"].tolist() == [f"image {number}" for number in range(len(files))]
    one: Any = ps.predict(run, arrays[3])
    pd.testing.assert_frame_equal(without_names(one), without_names(expected[3:4]).reset_index(drop=True))
    assert one["image_path"].tolist() == ["image 0"]


def test_an_array_that_lies_otherwise_in_memory_is_answered_alike_and_left_as_it_is(run: ps.Run) -> None:
    pixels = shape_picture(5)
    bgr = np.ascontiguousarray(pixels[:, :, ::-1])
    view = bgr[:, :, ::-1]
    view.flags.writeable = False
    pd.testing.assert_frame_equal(ps.predict(run, view), ps.predict(run, pixels), check_exact=True)
    np.testing.assert_array_equal(view, pixels)


def test_a_table_of_arrays_is_written(run: ps.Run, tmp_path: Path) -> None:
    path: Any = ps.predict(run, [shape_picture(1), shape_picture(2)], output=tmp_path / "labels.csv")
    assert pd.read_csv(path)["image_path"].tolist() == ["image 0", "image 1"]


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "LA", "P", "1", "I;16"])
def test_modes_of_pillow_become_the_pixels_of_their_files(mode: str, tmp_path: Path) -> None:
    deep = np.random.default_rng(1).integers(0, 65535, (20, 30), np.uint16)
    picture = Image.fromarray(shape_picture(7))
    if mode == "RGBA":
        picture.putalpha(Image.fromarray((deep >> 8).astype(np.uint8)).resize(picture.size))
    image = Image.fromarray(deep) if mode == "I;16" else picture.convert(mode)
    assert image.mode == mode
    image.save(tmp_path / "a.png")
    [pixels] = image_arrays(image).images
    np.testing.assert_array_equal(pixels, decode_image((tmp_path / "a.png").read_bytes()))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_images_of_pillow_are_turned_upright_as_files_are(orientation: int, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(shape_picture(7)[:20]).save(tmp_path / "a.png", exif=exif)
    [pixels] = image_arrays(Image.open(tmp_path / "a.png")).images
    np.testing.assert_array_equal(pixels, decode_image((tmp_path / "a.png").read_bytes()))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (np.zeros((9, 8, 3), np.float32), r"image 0: expected an array H×W×3 of uint8, RGB, found 9×8×3 of float32"),
        (np.zeros((9, 8), np.uint8), r"found 9×8 of uint8.*np\.stack"),
        (np.zeros((9, 8, 4), np.uint8), r"found 9×8×4 of uint8.*alpha"),
        (np.zeros((3, 9, 8), np.uint8), r"found 3×9×8 of uint8.*transpose\(1, 2, 0\)"),
        (np.zeros((2, 9, 8, 3), np.uint8), r"found 2×9×8×3 of uint8.*list\(array\)"),
        (np.zeros((0, 8, 3), np.uint8), "found 0×8×3 of uint8.*empty"),
        ([np.zeros((9, 8, 3), np.uint8), "a.png"], "image 1: .*found str.*images or paths, not both"),
        (torch.zeros(3, 9, 8), r"torch tensor 3×9×8 of float32.*tensor\.permute\(1, 2, 0\)\.to\(torch\.uint8\).*255"),
        ([torch.zeros(9, 8, 3, dtype=torch.uint8)], r"image 0: .*torch tensor 9×8×3 of uint8.*numpy\(\)"),
        (Image.new("F", (8, 9)), "mode 'F'.*convert"),
    ],
)
def test_what_is_no_rgb_image_is_refused_with_what_was_expected_and_found(run: ps.Run, data: Any, words: str) -> None:
    with pytest.raises(ps.DataError, match=f"(?s){words}"):
        ps.predict(run, data)


def test_every_wrong_image_of_a_list_is_named(run: ps.Run) -> None:
    good, grey = np.zeros((9, 8, 3), np.uint8), np.zeros((9, 8), np.uint8)
    with pytest.raises(ps.DataError) as caught:
        ps.predict(run, [good, grey, good, grey])
    assert [problem.file for problem in caught.value.problems] == ["image 1", "image 3"]
