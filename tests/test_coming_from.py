"""What the pages for people who come from somewhere else show in their right column works."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from page_examples import examples_of, run_page
from picture_making import write_picture
from project_making import label_values, write_labels, write_project, write_split
from raster_making import noise, write_raster, write_table
from video_making import write_video

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "coming-from"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")


def pets(folder: Path) -> None:
    rows = ["path,label"]
    for number in range(12):
        kind = ("cat", "dog")[number % 2]
        write_picture(folder / "pets" / kind / f"{number}.jpg", 48, 40, seed=number)
        rows.append(f"{kind}/{number}.jpg,{kind}")
    (folder / "table.csv").write_text("\n".join(rows))


VOC = """<annotation><filename>flight_0.tif</filename>
<size><width>200</width><height>150</height><depth>3</depth></size>
<object><name>Tree</name><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>30</xmax><ymax>40</ymax></bndbox></object></annotation>
"""


def flights(folder: Path) -> None:
    from rasterio.transform import Affine

    (folder / "flights").mkdir()
    rows, points = [], ["image_path,x,y,label"]
    for number in range(3):
        place = {"crs": "EPSG:32617", "transform": Affine(0.1, 0, 500_000 + 20 * number, 0, -0.1, 4_000_000)}
        write_raster(folder / "flights" / f"flight_{number}.tif", noise(3, 150, 200, seed=number), nodata=0, **place)
        rows += [f"flight_{number}.tif,{x},{x},{x + 20},{x + 25},Tree" for x in (5, 60, 110)]
        points.append(f"flight_{number}.tif,50,60,Tree")
    write_table(folder / "crowns.csv", rows)
    write_table(folder / "tr.csv", rows[:6])
    write_table(folder / "va.csv", rows[6:])
    (folder / "points.csv").write_text("\n".join(points))
    (folder / "plot.xml").write_text(VOC)


def mice(folder: Path) -> None:
    project = write_project(folder / "mice_deepethogram", ["m1_a", "m1_b", "m2_a", "m2_b"])
    write_split(project, {"train": ["m1_a", "m1_b", "m2_a"], "val": ["m2_b"]})
    for name in ("videos", "labels"):
        (folder / name).mkdir()
    write_video(folder / "videos" / "new.avi", 8, codec="mpeg4")
    write_labels(folder / "labels" / "new.csv", label_values())
    (folder / "events.csv").write_text("video,start,stop,behaviour\nnew,0,3,groom\n")


SETTINGS: dict[str, Callable[[Path], None]] = {"deepethogram": mice, "deepforest": flights}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_right_column_works(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    SETTINGS.get(page.stem, pets)(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    for example in run_page(page):
        print(f"left out, without {example.missing}: {example.code}")


def test_every_page_is_in_the_list_and_has_much_that_is_run() -> None:
    index = (FOLDER / "README.md").read_text(encoding="utf-8")
    for page in PAGES:
        assert f"]({page.name})" in index
        assert len(list(examples_of(page.read_text(encoding="utf-8")))) > 20


def test_examples_are_found_in_fences_and_in_the_last_column_only() -> None:
    page = """
| theirs | ours |
|---|---|
| `not.run(1)` | `ps.run(2)`, `word`, `.step(3)`, `ps.Name`; `penstock check images x` |

```python
first = 1
second = 2
```

```
penstock info x.pack  # words
$ penstock not this
```

```text
not_this(1)
```
"""
    assert [(example.kind, example.code) for example in examples_of(page)] == [
        ("python", "ps.run(2)"),
        ("python", "flow.step(3)"),
        ("python", "ps.Name"),
        ("command", "penstock check images x"),
        ("python", "first = 1\nsecond = 2"),
        ("command", "penstock info x.pack"),
    ]
