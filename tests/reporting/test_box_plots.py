"""Found boxes over their images: large ones are made smaller, and nothing found is drawn too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from penstock.codecs.images import decode_image
from penstock.errors import DataError, OptionError
from penstock.reporting.box_plots import plot_boxes
from penstock.reporting.pictures import CAPTION_HEIGHT, COLOURS
from penstock.results.box_tables import BoxTable, box_table
from picture_making import write_picture
from raster_making import noise, write_raster


def table(*names: str, count: int = 1) -> BoxTable:
    boxes = np.tile([[40.0, 20, 120, 60]], (count, 1))
    sizes = dict.fromkeys(names, (200, 100))
    return box_table(boxes, ["Tree"] * count, np.ones(count), [names[0]] * count, classes=["Tree"], image_sizes=sizes)


def test_a_large_raster_is_drawn_small_with_its_boxes_in_place(tmp_path: Path) -> None:
    write_raster(tmp_path / "a.tif", noise(3, 100, 200, dtype="uint16", high=4000))
    path = plot_boxes(table("a.tif"), tmp_path / "plot.png", folder=tmp_path, longest_side=100)
    picture = decode_image(path.read_bytes())
    assert picture.shape == (50 + CAPTION_HEIGHT, 100, 3)
    assert picture[20, 20].tolist() == list(COLOURS[0]) and picture[20, 40].tolist() != list(COLOURS[0])


@pytest.mark.parametrize("count", [1, 0])
def test_a_photo_is_drawn_also_when_nothing_was_found(tmp_path: Path, count: int) -> None:
    write_picture(tmp_path / "a.jpg", width=200, height=100)
    path = plot_boxes(table("a.jpg", count=count), tmp_path / "plot.jpg", folder=tmp_path)
    assert decode_image(path.read_bytes()).shape == (100 + CAPTION_HEIGHT, 200, 3)


def test_several_images_are_one_sheet(tmp_path: Path) -> None:
    for name in "abc":
        write_picture(tmp_path / f"{name}.png", width=200, height=100)
    path = plot_boxes(table("a.png", "b.png", "c.png"), tmp_path / "plot.webp", folder=tmp_path, longest_side=400)
    assert decode_image(path.read_bytes()).shape == (2 * (100 + CAPTION_HEIGHT), 400, 3)


def test_what_cannot_be_drawn_is_said(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="must end in .png"):
        plot_boxes(table("a.png"), tmp_path / "plot.svg")
    with pytest.raises(DataError, match="cannot be drawn: No such file"):
        plot_boxes(table("a.png"), tmp_path / "plot.png", folder=tmp_path)
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\nbroken")
    with pytest.raises(DataError, match="cannot be drawn"):
        plot_boxes(table("a.png"), tmp_path / "plot.png", folder=tmp_path)
    (tmp_path / "a.tif").write_bytes(b"II*\0broken")
    with pytest.raises(DataError, match="cannot be read"):
        plot_boxes(table("a.tif"), tmp_path / "plot.png", folder=tmp_path)
