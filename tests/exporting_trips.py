"""Small data for tests of exports, and how each export is read back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps
from picture_making import write_picture
from video_making import write_video

BOX_FORMATS = ("tfrecord", "hdf5", "directory", "webdataset", "yolo", "coco", "voc", "csv")
IMAGE_FORMATS = ("tfrecord", "hdf5", "directory", "webdataset", "numpy")
ALL_FORMATS = (*BOX_FORMATS, "numpy")


def pets(folder: Path) -> ps.Pack:
    """A pack of twelve pictures of one size, with classes and splits."""
    for split, name in (("train", "a"), ("val", "b")):
        for number in range(6):
            kind = ("cat", "dog")[number % 2]
            write_picture(folder / "pets" / split / kind / f"{name}{number}.png", 20, 16, seed=number + len(split))
    return ps.pack(ps.Images(folder / "pets"), folder / "pets.pack")


def trees(folder: Path) -> ps.Pack:
    """A pack of six pictures with boxes of two classes, one of them without any, with splits."""
    rows = ["image_path,xmin,ymin,xmax,ymax,label,split"]
    for number in range(6):
        name = f"site{number % 2}/{number}.png"
        write_picture(folder / "trees" / name, 40 + number, 30, seed=number)
        split = ("train", "val")[number % 2]
        rows += [f"{name},{box + 0.37},2,{box + 9.5},20.125,{'AB'[box % 2]},{split}" for box in range(number)]
    (folder / "trees" / "boxes.csv").write_text("\n".join([*rows, "site0/0.png,0,0,0,0,A,train"]))
    return ps.pack(ps.Boxes(folder / "trees" / "boxes.csv"), folder / "trees.pack")


def mice(folder: Path, **options: Any) -> ps.Videos:
    """Two videos of behaviour, as they are."""
    write_video(folder / "m1.mp4", 13, rate=30)
    write_video(folder / "m2.avi", 7, codec="mpeg4")
    rows = ["video,start,stop,behaviour", "m1,0.04,0.16,groom", "m1,0.1,0.12,rear", "m2,0,0.08,rear"]
    (folder / "events.csv").write_text("\n".join(rows))
    videos = [folder / "m1.mp4", folder / "m2.avi"]
    return ps.Videos(videos, labels=folder / "events.csv", **{"size": None, **options})


# How each export is opened again; classes are named where a format might number them otherwise.
READERS: dict[str, Callable[[Path], ps.Source]] = {
    "tfrecord": lambda path: ps.open(path, classes=path / "classes.txt"),
    "hdf5": ps.open,
    "webdataset": lambda path: ps.open(path, classes=path / "classes.txt"),
    "numpy": ps.open,
    "yolo": ps.open,
    "coco": lambda path: ps.Boxes([path / "train.json", path / "val.json"]),
    "voc": lambda path: ps.Boxes(path / "Annotations", images=path / "JPEGImages"),
    "csv": lambda path: ps.Boxes(path / "boxes.csv"),
}


def bare_key(key: str) -> str:
    """A key without what formats change: folders of the export, the split, slashes and endings."""
    for start in ("images/", "train/", "val/"):
        key = key.removeprefix(start)
    return key.replace("/", "_").rsplit(".", 1)[0]


def by_key(source: ps.Source) -> dict[str, dict[str, Any]]:
    """Every sample of a source under its bare key."""
    samples = [source.decode(source.read(index)) for index in range(len(source))]
    found = {bare_key(sample["key"]): sample for sample in samples}
    assert len(found) == len(samples)
    return found


def class_names_of(source: ps.Source, sample: dict[str, Any], field: str) -> list[str]:
    return [source.schema.classes[number] for number in np.atleast_1d(sample[field]).tolist()]
