"""An option of predict and evaluate that can do nothing on what is given is an error, or is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lightning")
pytest.importorskip("torchvision")
pytest.importorskip("rasterio")

import penstock as ps  # noqa: E402
from commands import run_here  # noqa: E402
from picture_making import write_picture  # noqa: E402

TRUTH = "image_path,xmin,ymin,xmax,ymax,label\na.png,1,2,11,20,Tree\n"


def detector(**settings: Any) -> ps.Model:
    """One that has learned nothing."""
    task = ps.Detection(classes=("Tree",), backbone="tiny", **settings)
    return ps.Model(task, task.network(), device="cpu")


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    write_picture(tmp_path / "a.png")
    return tmp_path / "a.png"


def test_gsd_of_photos_is_refused_and_every_photo_is_named(
    tmp_path: Path, photo: Path, raster: Callable[..., Path]
) -> None:
    placed = raster(np.zeros((64, 64, 3), np.uint8))
    bare = raster(np.zeros((64, 64, 3), np.uint8), name="bare.tif", crs=None)
    with pytest.raises(ps.DataError, match=r"no georeference \(CRS\), so it cannot be brought to gsd=0.1") as refused:
        ps.predict(detector(), [placed, photo, bare], gsd=0.1)
    assert [Path(problem.file).name for problem in refused.value.problems] == ["a.png", "bare.tif"]
    assert len(ps.predict(detector(), placed, gsd=0.1)) == 0
    assert not list(tmp_path.glob("*.partial"))


def test_images_that_the_resolution_of_the_model_cannot_be_applied_to_are_named(photo: Path) -> None:
    notes = ps.predict(detector(gsd=0.1), [photo]).attrs["notes"]
    assert notes == [
        f"1 image without a georeference (CRS), such as {photo}: not brought to the 0.1 m a pixel that the model was "
        "trained with"
    ]
    pixels = np.zeros((64, 64, 3), np.uint8)
    assert "such as image 0: not brought to the 0.1 m" in ps.predict(detector(gsd=0.1), [pixels]).attrs["notes"][0]
    assert "notes" not in ps.predict(detector(gsd=0.1), [photo], gsd="none").attrs
    assert "notes" not in ps.predict(detector(), [photo]).attrs


def test_a_batch_size_for_windows_is_refused(photo: Path) -> None:
    for data in (photo, np.zeros((64, 64, 3), np.uint8)):
        with pytest.raises(ps.OptionError, match="batch_size=5: images are cut into windows"):
            ps.predict(detector(), data, batch_size=5)


@pytest.mark.parametrize(
    "unused",
    [
        {"data": "crowns.pack"},
        {"split": "val"},
        {"batch_size": 4},
        {"workers": 2},
        {"device": "cpu"},
        {"precision": "bf16"},
        {"min_bout_frames": 3},
        {"videos": "videos/"},
    ],
    ids=lambda unused: next(iter(unused)),
)
def test_options_of_a_network_are_refused_where_files_are_compared(tmp_path: Path, unused: dict[str, Any]) -> None:
    (tmp_path / "t.csv").write_text(TRUTH)
    with pytest.raises(ps.OptionError, match=f"{next(iter(unused))}: with truth, files are compared as they are"):
        ps.evaluate(tmp_path / "t.csv", truth=tmp_path / "t.csv", **unused)


def test_a_folder_of_images_that_nothing_is_looked_for_in_is_named(tmp_path: Path, photo: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text(TRUTH)
    assert "notes" not in ps.evaluate(table, truth=table).facts
    (note,) = ps.evaluate(table, truth=table, images=tmp_path).facts["notes"]
    assert note == "images had no effect: the boxes are in pixels, so no image was looked for"
    told = run_here("evaluate", table, "--truth", table, "--images", tmp_path, "--allow-outside")
    assert told.exit_code == 0 and "warning: images, allow_outside had no effect" in told.err
    (tmp_path / "yolo" / "labels").mkdir(parents=True)
    (tmp_path / "yolo" / "labels" / "a.txt").write_text("0 0.5 0.5 0.5 0.5\n")
    (tmp_path / "yolo" / "classes.txt").write_text("Tree\n")
    assert "notes" not in ps.evaluate(tmp_path / "yolo", truth=table, images=tmp_path).facts
