"""Small data of every kind, each damaged in one way that `check` knows.

A case is a function that writes damaged data into a folder and gives the constructor that opens them. `UNREADABLE` are
those in which a whole sample cannot be had, which a user may ask to skip; in all others an annotation is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

import penstock as ps
from column_making import labels, pictures, write_mds, write_parquet
from picture_making import write_picture
from project_making import write_labels, write_project
from raster_making import noise, write_raster, write_table
from record_making import classified, pair, write_records, write_tar
from video_making import write_video

Opened = Callable[[], ps.Source]
Damaged = Callable[[Path], Opened]

HEADER = "image_path,xmin,ymin,xmax,ymax,label,split"
WIDTH, HEIGHT = 40, 30
LAYER_CRS = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::32618"}}


def _pictures(folder: Path, count: int = 4) -> None:
    for number in range(count):
        write_picture(folder / f"{number}.png", WIDTH, HEIGHT, seed=number)


def _cut(path: Path, keep: float = 0.5) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])


def box_table(row: str, **options: object) -> Damaged:
    """Four images with a box each, and one more row."""

    def write(folder: Path) -> Opened:
        _pictures(folder)
        rows = [f"{number}.png,1,2,20,20,A,{'train' if number % 2 else 'val'}" for number in range(3)]
        (folder / "boxes.csv").write_text("\n".join([HEADER, *rows, row]) + "\n")
        return lambda: ps.Boxes(folder / "boxes.csv", **options)

    return write


def _yolo(line: str) -> Damaged:
    def write(folder: Path) -> Opened:
        for number in range(3):
            write_picture(folder / "images" / f"{number}.png", WIDTH, HEIGHT, seed=number)
            (folder / "labels").mkdir(exist_ok=True)
            (folder / "labels" / f"{number}.txt").write_text("0 .5 .5 .2 .2\n")
        (folder / "labels" / "2.txt").write_text(line + "\n")
        (folder / "data.yaml").write_text("train: images\nnames: [tree]\n")
        return lambda: ps.Boxes(folder)

    return write


def _voc(damage: Callable[[str], str]) -> Damaged:
    def write(folder: Path) -> Opened:
        _pictures(folder, 2)
        for number in range(2):
            box = "<xmin>1</xmin><ymin>2</ymin><xmax>20</xmax><ymax>22</ymax>"
            text = (
                f"<annotation><filename>{number}.png</filename><size><width>{WIDTH}</width><height>{HEIGHT}</height>"
                f"<depth>3</depth></size><object><name>tree</name><bndbox>{box}</bndbox></object></annotation>"
            )
            (folder / f"{number}.xml").write_text(damage(text) if number else text)
        return lambda: ps.Boxes(folder)

    return write


def _coco(damage: Callable[[dict], None]) -> Damaged:
    def write(folder: Path) -> Opened:
        _pictures(folder, 2)
        images = [{"id": number, "file_name": f"{number}.png", "width": 40, "height": 30} for number in range(2)]
        boxes = [
            {"id": number, "image_id": number, "category_id": 1, "bbox": [1, 2, 20, 20], "area": 400, "iscrowd": 0}
            for number in range(2)
        ]
        document = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "tree"}]}
        damage(document)
        (folder / "coco.json").write_text(json.dumps(document))
        return lambda: ps.Boxes(folder / "coco.json")

    return write


def _coco_box(**changed: object) -> Damaged:
    return _coco(lambda document: document["annotations"][1].update(changed))


def _layer(geometry: object, ending: str = ".geojson", kind: str = "Feature") -> Damaged:
    """A map with one crown and one damaged feature; both name the map."""

    def write(folder: Path) -> Opened:
        from affine import Affine

        place = Affine(1.0, 0.0, 1000.0, 0.0, -1.0, 2000.0)
        write_raster(folder / "map.tif", noise(3, 60, 60), crs="EPSG:32618", transform=place)
        ring = [[1005, 1995], [1020, 1995], [1020, 1980], [1005, 1980], [1005, 1995]]
        good = {"type": "Polygon", "coordinates": [ring]}
        features = [
            {"type": "Feature", "properties": {"label": "tree", "image_path": "map.tif"}, "geometry": one}
            for one in (good, geometry)
        ]
        features[-1]["type"] = kind
        path = folder / "crowns.geojson"
        path.write_text(json.dumps({"type": "FeatureCollection", "crs": LAYER_CRS, "features": features}))
        if ending != ".geojson":
            import pyogrio

            path = folder / f"crowns{ending}"
            pyogrio.write_dataframe(pyogrio.read_dataframe(folder / "crowns.geojson"), path)
            (folder / "crowns.geojson").unlink()
        return lambda: ps.Boxes(path, images=folder)

    return write


INSIDE = {"type": "Polygon", "coordinates": [[[1005, 1995], [1020, 1995], [1020, 1980], [1005, 1980], [1005, 1995]]]}
OUTSIDE = {"type": "Polygon", "coordinates": [[[9005, 1995], [9020, 1995], [9020, 1980], [9005, 1980], [9005, 1995]]]}


def _rasters(row: str) -> Damaged:
    def write(folder: Path) -> Opened:
        write_raster(folder / "a.tif", noise(3, 90, 70), nodata=0)
        table = write_table(folder / "boxes.csv", ["a.tif,1,2,30,40.5,oak", row])
        return lambda: ps.Rasters(folder / "a.tif", boxes=table, tile_px=40, overlap=0.1)

    return write


def image_table(row: str, **options: object) -> Damaged:
    def write(folder: Path) -> Opened:
        _pictures(folder)
        (folder / "images.csv").write_text("path,label\n0.png,cat\n1.png,dog\n2.png,cat\n" + row + "\n")
        return lambda: ps.Images(folder / "images.csv", **options)

    return write


def _folders(damage: Callable[[Path], None]) -> Damaged:
    def write(folder: Path) -> Opened:
        for number in range(4):
            write_picture(folder / ("cat", "dog")[number % 2] / f"{number}.png", 20, 16, seed=number)
        damage(folder)
        return lambda: ps.Images(folder)

    return write


def _videos(row: str) -> Damaged:
    def write(folder: Path) -> Opened:
        write_video(folder / "a.mp4", 8)
        write_video(folder / "b.mp4", 8)
        rows = ["video,start,stop,behaviour", "a,0.04,0.16,groom", "b,0.1,0.12,rear", row]
        (folder / "events.csv").write_text("\n".join(rows))
        return lambda: ps.Videos([folder / "a.mp4", folder / "b.mp4"], labels=folder / "events.csv", size="32x32")

    return write


def _project(change: Callable[[Path], None]) -> Damaged:
    def write(folder: Path) -> Opened:
        change(write_project(folder) / "DATA" / "m1_b" / "m1_b_labels.csv")
        return lambda: ps.DeepEthogram(folder)

    return write


def _rows_of(count: int) -> Callable[[Path], None]:
    return lambda path: write_labels(path, np.zeros((count, 3), np.int8)) and None


def hdf5_of_other_lengths(folder: Path) -> Opened:
    import h5py

    with h5py.File(folder / "train.h5", "w") as file:
        file["X"], file["y"] = pictures(6), labels(5)
    return lambda: ps.HDF5(folder / "train.h5")


def npz_of_other_lengths(folder: Path) -> Opened:
    np.savez(folder / "a.npz", x_train=pictures(6), y_train=labels(5))
    return lambda: ps.Arrays(folder / "a.npz")


def npz_cut_short(folder: Path) -> Opened:
    np.savez(folder / "a.npz", x_train=pictures(6), y_train=labels(6))
    _cut(folder / "a.npz")
    return lambda: ps.Arrays(folder / "a.npz")


def parquet_cut_short(folder: Path) -> Opened:
    _cut(write_parquet(folder / "a.parquet"))
    return lambda: ps.Parquet(folder / "a.parquet")


def records_cut_short(folder: Path) -> Opened:
    _cut(write_records(folder / "a.tfrecord", [classified(number) for number in range(6)]), 0.9)
    return lambda: ps.TFRecords(folder / "a.tfrecord")


def tar_cut_short(folder: Path) -> Opened:
    files = [file for number in range(6) for file in pair(number)]
    write_tar(folder / "a.tar", files)
    _cut(folder / "a.tar", 0.6)
    return lambda: ps.WebDataset(folder / "a.tar")


def shard_of_mds_cut_short(folder: Path) -> Opened:
    write_mds(folder / "mds")
    _cut(next((folder / "mds").glob("shard*")))
    return lambda: ps.MDS(folder / "mds")


def subset_of_bad_table(folder: Path) -> Opened:
    made = box_table("3.png,5,nan,9,9,A,train")(folder)
    return lambda: ps.Subset(made(), [0, 1, 3])


def joined_with_bad_table(folder: Path) -> Opened:
    (folder / "one").mkdir()
    (folder / "two").mkdir()
    made = box_table("3.png,5,nan,9,9,A,train")(folder / "one")
    good = box_table("3.png,5,5,9,9,A,train")(folder / "two")
    return lambda: ps.concat([made(), good()])


WRONG: dict[str, Damaged] = {
    "CSV, a coordinate is not a number": box_table("3.png,5,nan,9,9,A,train"),
    "CSV, a coordinate is a word": box_table("3.png,5,five,9,9,A,train"),
    "CSV, a coordinate is missing": box_table("3.png,5,,9,9,A,train"),
    "CSV, infinite": box_table("3.png,5,5,inf,9,A,train"),
    "CSV, corners exchanged": box_table("3.png,9,5,3,9,A,train"),
    "CSV, outside of the image": box_table("3.png,5,5,400,9,A,train"),
    "CSV, no label": box_table("3.png,5,5,9,9,,train"),
    "CSV, unknown class": box_table("3.png,5,5,9,9,B,train", classes=["A"]),
    "CSV, a path that leaves the folder": box_table("../3.png,5,5,9,9,A,train"),
    "YOLO, not a number": _yolo("0 .5 NaN .2 .2"),
    "YOLO, a class that is not there": _yolo("7 .1 .1 .1 .1"),
    "YOLO, negative size": _yolo("0 .5 .5 -.3 .2"),
    "YOLO, too few values": _yolo("0 .5 .5 .2"),
    "YOLO, outside": _yolo("0 1.5 .5 .2 .2"),
    "VOC, cut short": _voc(lambda text: text[:200]),
    "VOC, not a number": _voc(lambda text: text.replace("<xmin>1<", "<xmin>nan<")),
    "VOC, corners exchanged": _voc(lambda text: text.replace("<xmin>1<", "<xmin>30<")),
    "VOC, a corner is missing": _voc(lambda text: text.replace("<xmin>1</xmin>", "")),
    "VOC, no name": _voc(lambda text: text.replace("<name>tree</name>", "")),
    "VOC, two boxes in one object": _voc(lambda text: text.replace("</bndbox>", "<xmin>3</xmin></bndbox>")),
    "COCO, negative width": _coco_box(bbox=[1, 2, -3, 4]),
    "COCO, three numbers": _coco_box(bbox=[1, 2, 3]),
    "COCO, not a number": _coco_box(bbox=[1, 2, float("nan"), 4]),
    "COCO, an image that is not listed": _coco_box(image_id=77),
    "COCO, a category that is not listed": _coco_box(category_id=77),
    "COCO, outside": _coco_box(bbox=[30, 20, 40, 40]),
    "GeoJSON, no geometry": _layer(None),
    "GeoJSON, outside of every map": _layer(OUTSIDE),
    "GeoJSON, a feature that does not say so": _layer(INSIDE, kind="Fea0ure"),
    "GeoPackage, no geometry": _layer(None, ".gpkg"),
    "GeoPackage, outside of every map": _layer(OUTSIDE, ".gpkg"),
    "rasters, a coordinate is not a number": _rasters("a.tif,5,nan,9,9,oak"),
    "rasters, outside": _rasters("a.tif,5,5,900,9,oak"),
    "rasters, another raster": _rasters("other.tif,5,5,9,9,oak"),
    "image table, unknown class": image_table("3.png,bird", classes=["cat", "dog"]),
    "image table, no label": image_table("3.png,"),
    "image table, a path that leaves the folder": image_table("../3.png,cat"),
    "class folders, an image beside them": _folders(lambda folder: write_picture(folder / "9.png", 8, 8) and None),
    "events, stop before start": _videos("b,0.2,0.1,rear"),
    "events, not a number": _videos("b,nan,0.1,rear"),
    "events, after the end": _videos("b,90,91,rear"),
    "project, too few label rows": _project(_rows_of(5)),
    "project, too many label rows": _project(_rows_of(11)),
    "project, a value of 2": _project(lambda path: write_labels(path, np.full((8, 3), 2, np.int8)) and None),
    "HDF5, other lengths": hdf5_of_other_lengths,
    "npz, other lengths": npz_of_other_lengths,
    "npz, cut short": npz_cut_short,
    "Parquet, cut short": parquet_cut_short,
    "TFRecord, cut short": records_cut_short,
    "tar, cut short": tar_cut_short,
    "MDS, cut short": shard_of_mds_cut_short,
    "subset of a bad table": subset_of_bad_table,
    "joined with a bad table": joined_with_bad_table,
}


def _table_with_damaged_image(damage: Callable[[Path], object]) -> Damaged:
    def write(folder: Path) -> Opened:
        made = box_table("3.png,5,5,9,9,A,train")(folder)
        damage(folder / "3.png")
        return made

    return write


def _folder_with_damaged_image(damage: Callable[[Path], object]) -> Damaged:
    return _folders(lambda folder: damage(folder / "cat" / "2.png") and None)


UNREADABLE: dict[str, Damaged] = {
    "CSV, a missing image": _table_with_damaged_image(Path.unlink),
    "CSV, an image cut short": _table_with_damaged_image(_cut),
    "CSV, an image that is none": _table_with_damaged_image(lambda path: path.write_text("not an image")),
    "class folders, an image cut short": _folder_with_damaged_image(_cut),
    "class folders, an empty image": _folder_with_damaged_image(lambda path: path.write_bytes(b"")),
    "image table, a missing image": image_table("7.png,cat"),
}
