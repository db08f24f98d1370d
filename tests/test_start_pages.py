"""What the pages for a beginning show works, from the first command to the last."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from rasterio import Affine

from page_examples import run_page
from picture_making import write_picture
from project_making import label_values, write_labels
from raster_making import noise, write_raster, write_table
from video_making import write_video

DOCS = Path(__file__).resolve().parents[1] / "docs"


def flights(folder: Path) -> None:
    """Three flights with a few crowns each, and one that nobody has looked at."""
    (folder / "flights").mkdir()
    place = {"crs": "EPSG:32611", "transform": Affine(0.1, 0, 500_000, 0, -0.1, 4_500_000)}
    rows = []
    for number in range(3):
        write_raster(folder / "flights" / f"flight_{number}.tif", noise(3, 150, 200, seed=number), **place)
        rows += [f"flight_{number}.tif,{x},{x},{x + 20},{x + 25},Tree" for x in (5, 60, 110)]
    write_table(folder / "crowns.csv", rows)
    write_raster(folder / "ortho.tif", noise(3, 150, 200, seed=9), **place)


def mice(folder: Path) -> None:
    """Two videos of each of two animals."""
    for name in ("videos", "labels"):
        (folder / name).mkdir()
    for name in ("m1_a", "m1_b", "m2_a", "m2_b"):
        write_video(folder / "videos" / f"{name}.mp4", 8, codec="mpeg4")
        write_labels(folder / "labels" / f"{name}.csv", label_values())
    write_video(folder / "new_mouse.mp4", 8, codec="mpeg4")


def photos(folder: Path) -> None:
    """A flat folder, as Kaggle's archive of cats and dogs has it."""
    for number in range(20):
        write_picture(folder / "photos" / f"{('cat', 'dog')[number % 2]}.{number // 2}.jpg", 80, 70, seed=number)


class Setting(NamedTuple):
    """What a page begins with, and what is run in place of what it shows, so that it takes seconds."""

    make: Callable[[Path], None]
    smaller: dict[str, str]


SHORT = "model.backbone=tiny train.epochs=1 train.batch_size=2 run.progress=off"
QUICK_MICE = (
    "run.folder=runs/mice task.size=tiny task.frames=3 task.flow_epochs=1 task.sequence_epochs=1 "
    "task.window_frames=8 train.epochs=1 train.batch_size=8 run.progress=off"
)
PAGES = {
    "start/ecologist.md": Setting(flights, {"run.folder=runs/trees": f"run.folder=runs/trees {SHORT}"}),
    "start/neuroscientist.md": Setting(mice, {"--size 128x128": "--size 32x32", "run.folder=runs/mice": QUICK_MICE}),
    "start/engineer.md": Setting(photos, {}),
    "sources.md": Setting(photos, {}),
}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", PAGES)
@pytest.mark.filterwarnings("ignore")  # of Lightning, which warns of everything that is small
def test_the_page_works(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    PAGES[name].make(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert not run_page(DOCS / name, PAGES[name].smaller)


def test_every_page_for_a_beginning_is_tried() -> None:
    assert {f"start/{page.name}" for page in DOCS.glob("start/*.md")} <= set(PAGES)
