"""Each row of the table that says how the pixels of a raster become RGB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rasterio.enums import ColorInterp

import penstock as ps
from penstock.errors import OptionError
from raster_making import noise, write_raster

RGBA = [ColorInterp.red, ColorInterp.green, ColorInterp.blue, ColorInterp.alpha]


def image_of(path: Path, **options: Any) -> NDArray[np.uint8]:
    """The only tile of a small raster."""
    source = ps.Rasters(path, **options)
    assert source.problems() == []
    assert len(source) == 1
    image: NDArray[np.uint8] = source[0]["image"]
    assert image.dtype == np.uint8
    assert image.shape[2] == 3
    return image


def problem_of(path: Path, **options: Any) -> str:
    """What is wrong with a raster, as it is told."""
    source = ps.Rasters(path, **options)
    assert len(source) == 0
    (problem,) = source.problems()
    assert problem.file == path.as_posix()
    assert problem.remedy
    return str(problem)


def as_image(bands: NDArray[Any]) -> NDArray[Any]:
    return np.moveaxis(bands, 0, -1)


def test_three_bands_of_uint8_stay_as_they_are(tmp_path: Path) -> None:
    bands = noise(3, 30, 40)
    assert np.array_equal(image_of(write_raster(tmp_path / "a.tif", bands)), as_image(bands))


def test_one_band_becomes_three_equal_channels(tmp_path: Path) -> None:
    band = noise(30, 40)
    assert np.array_equal(image_of(write_raster(tmp_path / "a.tif", band)), np.stack([band] * 3, axis=2))


def test_bands_are_chosen_and_ordered_from_one(tmp_path: Path) -> None:
    bands = noise(5, 30, 40)
    path = write_raster(tmp_path / "a.tif", bands, photometric="MINISBLACK", alpha="NO")
    assert np.array_equal(image_of(path, bands="5,1,3"), as_image(bands[[4, 0, 2]]))
    assert np.array_equal(image_of(path, bands=[3, 3, 2]), as_image(bands[[2, 2, 1]]))
    assert np.array_equal(image_of(path, bands=4), as_image(bands[[3, 3, 3]]))
    assert np.array_equal(image_of(path), as_image(bands[:3]))


def test_a_band_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    path = write_raster(tmp_path / "a.tif", noise(3, 9, 9))
    assert "it has 3 bands and bands 4,3,2 are asked for" in problem_of(path, bands="4,3,2")


@pytest.mark.parametrize("bands", ["1,2", "", "a,b,c", (0, 1, 2), 0, (1, 2, 3, 4)])
def test_bands_are_one_or_three_numbers(tmp_path: Path, bands: Any) -> None:
    path = write_raster(tmp_path / "a.tif", noise(3, 9, 9))
    with pytest.raises(OptionError, match="bands"):
        ps.Rasters(path, bands=bands)


def test_near_infrared_in_the_fourth_band_is_left_out(tmp_path: Path) -> None:
    bands = noise(4, 30, 40)
    bands[3, :10] = 0
    path = write_raster(tmp_path / "a.tif", bands, photometric="RGB", alpha="NO")
    assert np.array_equal(image_of(path), as_image(bands[:3]))


def test_colours_outside_of_alpha_become_black(tmp_path: Path) -> None:
    bands = noise(4, 30, 40)
    bands[3] = 255
    bands[3, :10] = 0
    bands[3, 10:20] = 7
    expected = as_image(bands[:3]).copy()
    expected[:10] = 0
    assert np.array_equal(image_of(write_raster(tmp_path / "a.tif", bands, colours=RGBA)), expected)
    assert np.array_equal(image_of(write_raster(tmp_path / "a.png", bands, driver="PNG")), expected)


def test_an_alpha_band_that_is_asked_for_is_data(tmp_path: Path) -> None:
    bands = noise(4, 30, 40)
    bands[3, :10] = 0
    path = write_raster(tmp_path / "a.tif", bands, colours=RGBA)
    assert np.array_equal(image_of(path, bands="4,1,2"), as_image(bands[[3, 0, 1]]))


def test_two_bands_are_grey_and_alpha_or_a_question(tmp_path: Path) -> None:
    bands = noise(2, 30, 40)
    bands[1, :10] = 0
    expected = np.stack([bands[0]] * 3, axis=2)
    expected[:10] = 0
    grey = write_raster(tmp_path / "a.tif", bands, colours=[ColorInterp.gray, ColorInterp.alpha])
    assert np.array_equal(image_of(grey), expected)
    plain = write_raster(tmp_path / "b.tif", bands)
    assert "two bands, and neither is alpha" in problem_of(plain)
    assert np.array_equal(image_of(plain, bands=2), np.stack([bands[1]] * 3, axis=2))


def test_pixels_outside_of_a_mask_become_black(tmp_path: Path) -> None:
    bands, mask = noise(3, 30, 40), np.full((30, 40), 255, np.uint8)
    mask[:, :15] = 0
    expected = as_image(bands).copy()
    expected[:, :15] = 0
    assert np.array_equal(image_of(write_raster(tmp_path / "a.tif", bands, mask=mask)), expected)


def test_a_colour_table_gives_its_colours_whatever_the_scale(tmp_path: Path) -> None:
    band = np.random.default_rng(1).integers(0, 4, (30, 40)).astype(np.uint8)
    table = {0: (9, 8, 7, 255), 1: (255, 0, 0, 255), 2: (0, 255, 3, 255), 3: (1, 2, 250, 255)}
    path = write_raster(tmp_path / "a.tif", band, palette=table)
    expected = np.array([table[value][:3] for value in range(4)], np.uint8)[band]
    assert np.array_equal(image_of(path), expected)
    assert np.array_equal(image_of(path, scale=(0, 3)), expected)


def test_nodata_is_black_only_where_all_bands_have_it(tmp_path: Path) -> None:
    bands = noise(3, 30, 40, high=255)
    bands[:, 0, 0] = 255
    bands[1, 5, 5] = 255
    path = write_raster(tmp_path / "a.tif", bands, nodata=255)
    expected = as_image(bands).copy()
    expected[0, 0] = 0
    assert np.array_equal(image_of(path), expected)
    assert np.array_equal(image_of(path, nodata="none"), as_image(bands))


def test_a_given_nodata_value_replaces_that_of_the_file(tmp_path: Path) -> None:
    bands = noise(3, 30, 40)
    bands[:, 0, 0], bands[:, 1, 1] = 255, 77
    path = write_raster(tmp_path / "a.tif", bands, nodata=255)
    image = image_of(path, nodata=77)
    assert image[0, 0].tolist() == [255] * 3
    assert image[1, 1].tolist() == [0] * 3


def test_a_nodata_value_that_the_type_cannot_hold_matches_nothing(tmp_path: Path) -> None:
    bands = noise(3, 30, 40)
    path = write_raster(tmp_path / "a.tif", bands)
    for nodata in (-9999, 256, 3.5, float("nan")):
        assert np.array_equal(image_of(path, nodata=nodata), as_image(bands))


def test_sixteen_bits_are_scaled_rounded_and_clipped(tmp_path: Path) -> None:
    band = np.array([[0, 99, 100, 101, 102, 600, 1099, 1100, 1101, 65535]], np.uint16)
    image = image_of(write_raster(tmp_path / "a.tif", band), scale=(100, 1100))
    assert image[0, :, 0].tolist() == [0, 0, 0, 0, 1, 128, 255, 255, 255, 255]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "uint16", "int32", "uint32", "float32", "float64"])
def test_every_number_type_follows_the_same_line(tmp_path: Path, dtype: str) -> None:
    values = np.arange(-100, 120).reshape(10, 22)
    values = values if np.dtype(dtype).kind != "u" else np.maximum(values, 0)
    image = image_of(write_raster(tmp_path / "a.tif", values.astype(dtype)), scale="-50,50", nodata="none")
    expected = np.clip(np.rint((values + 50) * 2.55), 0, 255)
    assert np.array_equal(image[:, :, 1], expected)


def test_other_types_are_scaled_by_percentiles_and_say_so(tmp_path: Path) -> None:
    bands = noise(3, 50, 60, dtype="uint16", high=5000)
    path = write_raster(tmp_path / "a.tif", bands)
    source = ps.Rasters(path)
    low, high = np.percentile(bands, [2, 98])
    expected = np.clip(np.rint((bands - low) * (255 / (high - low))), 0, 255)
    assert np.array_equal(source[0]["image"], as_image(expected))
    assert source.notes() == {
        "scaled_rasters": 1,
        "scale": "percentiles 2 to 98 of each raster become 0 to 255",
    }
    assert np.array_equal(ps.Rasters(path, scale="percentile")[0]["image"], source[0]["image"])
    assert ps.Rasters(path, scale="5-90.5").parts[0].raster.rules.value_range == tuple(np.percentile(bands, [5, 90.5]))


def test_eight_bits_are_scaled_only_when_asked(tmp_path: Path) -> None:
    path = write_raster(tmp_path / "a.tif", noise(3, 50, 60, high=50))
    assert ps.Rasters(path).notes() == {}
    assert ps.Rasters(path)[0]["image"].max() < 50
    assert ps.Rasters(path, scale="0-100")[0]["image"].max() == 255


def test_percentiles_leave_out_nodata(tmp_path: Path) -> None:
    bands = noise(3, 50, 60, dtype="int16", high=1000)
    bands[:, :30] = -9999
    rules = ps.Rasters(write_raster(tmp_path / "a.tif", bands, nodata=-9999)).parts[0].raster.rules
    assert rules.value_range == tuple(np.percentile(bands[:, 30:], [2, 98]))


def test_percentiles_of_a_large_raster_come_from_spaced_pixels(tmp_path: Path) -> None:
    bands = noise(1, 2100, 1500, dtype="uint16", high=10_000)
    low, high = ps.Rasters(write_raster(tmp_path / "a.tif", bands)).parts[0].raster.rules.value_range or (0, 0)
    assert low == pytest.approx(200, abs=30)
    assert high == pytest.approx(9800, abs=30)


def test_nan_and_nodata_of_floats_become_black_and_infinity_is_clipped(tmp_path: Path) -> None:
    bands = noise(3, 8, 9, dtype="float32", high=100)
    bands[:, 0, 0] = np.nan
    bands[:, 0, 1] = np.float32(-3.4e38)
    bands[1, 0, 2] = np.nan
    bands[:, 0, 3] = np.inf
    image = image_of(write_raster(tmp_path / "a.tif", bands, nodata=-3.4e38), scale=(0, 100))
    assert image[0, 0].tolist() == [0, 0, 0]
    assert image[0, 1].tolist() == [0, 0, 0]
    assert image[0, 2, 1] == 0
    assert image[0, 2, 0] > 0
    assert image[0, 3].tolist() == [255, 255, 255]


def test_a_raster_of_one_value_or_of_none_is_black(tmp_path: Path) -> None:
    same = write_raster(tmp_path / "a.tif", np.full((9, 9), 300, np.uint16))
    nothing = write_raster(tmp_path / "b.tif", np.full((9, 9), np.nan, np.float32))
    assert not image_of(same).any()
    assert not image_of(nothing).any()


@pytest.mark.parametrize("scale", ["5", "a,b", (1, 1), (5, 2), "98-2", "2-101", (1, 2, 3), 7, ("x", 1)])
def test_a_wrong_scale_names_the_legal_ones(tmp_path: Path, scale: Any) -> None:
    path = write_raster(tmp_path / "a.tif", noise(9, 9))
    with pytest.raises(OptionError, match="scale"):
        ps.Rasters(path, scale=scale)


def test_a_nodata_value_is_a_number(tmp_path: Path) -> None:
    path = write_raster(tmp_path / "a.tif", noise(9, 9))
    with pytest.raises(OptionError, match="nodata='zero' must be a number or 'none'"):
        ps.Rasters(path, nodata="zero")


def test_complex_numbers_are_a_problem(tmp_path: Path) -> None:
    path = write_raster(tmp_path / "a.tif", noise(9, 9, dtype="complex64"))
    assert "complex" in problem_of(path)
