"""Every reader on damaged files: never a crash, and what comes out is compared with the truth.

    python -m tests.fuzzing.readers SECONDS [SEED]

What may come without a word is stated for each format (`Reader.oracle`):

    sealed   formats with checksums: all samples come, and they are the true ones
    stated   text (CSV, VOC, YOLO, COCO, GeoJSON): the boxes are those that another reader finds in the damaged file
    kept     binary formats without checksums: all samples come; of changes in their payload only those samples are
             others that were touched, and none if the end is missing
    whole    packs whose checksums were made again: what `verify` calls good can be read, every sample of it
"""

from __future__ import annotations

import csv
import io
import json
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple
from xml.etree import ElementTree

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

import penstock as ps
from column_making import write_mds
from damage_making import HEADER, LAYER_CRS
from penstock.codecs.headers import UnreadableImage
from penstock.codecs.images import encode_image
from penstock.formats.checking import check
from picture_making import write_picture
from raster_making import noise, write_raster
from record_making import classified, pair, write_records, write_tar
from security.hostile_packs import repair, repair_manifest
from video_making import write_video

COUNT = 6
# What a reader may raise: errors of ours, and the short reason of one sample, which hops turn into one.
ALLOWED = (ps.PenstockError, UnreadableImage)


Oracle = Literal["sealed", "stated", "kept", "whole"]
Box = tuple[float, ...]


class Reader(NamedTuple):
    """How a small file is made, how it is read, and what may come of it when it is damaged.

    `stated` reads the boxes of a damaged text in another way, and raises where nothing can be read.
    `ends_whole` says whether a file that was cut is a whole one with fewer samples, which nothing can tell.
    `payload` is where the samples begin, for formats that are kept. `repair` makes checksums again after damage.
    """

    make: Callable[[Path], Path]
    open: Callable[[Path], Any]
    oracle: Oracle = "kept"
    stated: Callable[[Path], list[Box]] | None = None
    payload: Callable[[bytes], int] | None = None
    repair: Callable[[Path], None] | None = None
    ends_whole: Callable[[bytes], bool] | None = None


class Outcome(NamedTuple):
    samples: dict[int, str]
    is_told: bool
    boxes: list[Box]


def images() -> np.ndarray[Any, Any]:
    return np.random.default_rng(1).integers(0, 255, (COUNT, 8, 8, 3), np.uint8)


def make_npy(folder: Path) -> Path:
    np.save(folder / "a.npy", images())
    return folder / "a.npy"


def make_npz(folder: Path) -> Path:
    np.savez(folder / "a.npz", images=images(), labels=np.arange(COUNT))
    return folder / "a.npz"


def make_compressed(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in (("images", images()), ("labels", np.arange(COUNT))):
            data = io.BytesIO()
            np.save(data, value)
            archive.writestr(f"{name}.npy", data.getvalue())
    return folder / "a.npz"


def make_hdf5(folder: Path) -> Path:
    with h5py.File(folder / "a.h5", "w") as file:
        file.create_dataset("images", data=images(), chunks=(1, 8, 8, 3), compression="gzip")
        file["labels"] = np.arange(COUNT)
    return folder / "a.h5"


def make_parquet(folder: Path) -> Path:
    encoded = [encode_image(image, "png") for image in images()]
    pq.write_table(pa.table({"image": encoded, "label": list("ababab")}), folder / "a.parquet")
    return folder / "a.parquet"


WIDTH, HEIGHT = 40, 30
BOXES = ((1, 2, 9, 11), (3, 4, 21, 25), (10.5, 2, 30, 9.25))


def make_coco(folder: Path) -> Path:
    write_picture(folder / "one.png", WIDTH, HEIGHT)
    boxes = [
        {"id": number, "image_id": 1, "category_id": 1, "bbox": [x1, y1, x2 - x1, y2 - y1], "iscrowd": 0}
        for number, (x1, y1, x2, y2) in enumerate(BOXES)
    ]
    image = {"id": 1, "file_name": "one.png", "width": WIDTH, "height": HEIGHT}
    document = {"images": [image], "categories": [{"id": 1, "name": "oak"}], "annotations": boxes}
    (folder / "a.json").write_text(json.dumps(document))
    return folder / "a.json"


def stated_coco(path: Path) -> list[Box]:
    boxes = [one["bbox"] for one in json.loads(path.read_bytes())["annotations"]]
    return [(x, y, x + width, y + height) for x, y, width, height in boxes]


def make_csv(folder: Path) -> Path:
    write_picture(folder / "one.png", WIDTH, HEIGHT)
    rows = [",".join(["one.png", *map(str, box), "oak", "train"]) for box in BOXES]
    (folder / "a.csv").write_text("\n".join([HEADER, *rows]) + "\n")
    return folder / "a.csv"


def stated_csv(path: Path) -> list[Box]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if any(row.values())]
    return [tuple(float(row[name]) for name in ("xmin", "ymin", "xmax", "ymax")) for row in rows]


def make_voc(folder: Path) -> Path:
    write_picture(folder / "one.png", WIDTH, HEIGHT)
    objects = "".join(
        f"<object><name>oak</name><bndbox><xmin>{x1}</xmin><ymin>{y1}</ymin><xmax>{x2}</xmax><ymax>{y2}</ymax></bndbox>"
        "</object>"
        for x1, y1, x2, y2 in BOXES
    )
    size = f"<size><width>{WIDTH}</width><height>{HEIGHT}</height><depth>3</depth></size>"
    (folder / "one.xml").write_text(f"<annotation><filename>one.png</filename>{size}{objects}</annotation>")
    return folder / "one.xml"


def stated_voc(path: Path) -> list[Box]:
    root = ElementTree.fromstring(path.read_bytes())
    sides = ("xmin", "ymin", "xmax", "ymax")
    return [tuple(float(one.findtext(f"bndbox/{side}") or "nan") for side in sides) for one in root.iter("object")]


def make_yolo(folder: Path) -> Path:
    write_picture(folder / "images" / "one.png", WIDTH, HEIGHT)
    (folder / "labels").mkdir()
    (folder / "data.yaml").write_text("train: images\nnames: [oak, elm]\n")
    (folder / "labels" / "one.txt").write_text("0 0.5 0.5 0.25 0.2\n1 0.3 0.4 0.1 0.3\n0 0.75 0.25 0.5 0.5\n")
    return folder / "labels" / "one.txt"


def stated_yolo(path: Path) -> list[Box]:
    rows = [[float(word) for word in line.split()] for line in path.read_text("utf-8").splitlines() if line.strip()]
    scale = np.array([WIDTH, HEIGHT, WIDTH, HEIGHT])
    boxes = []
    for _, *values in rows:
        if len(values) > 5 and len(values) % 2 == 0:  # the corners of a polygon
            points = np.array(values).reshape(-1, 2)
            box = [*points.min(axis=0), *points.max(axis=0)]
        else:
            x, y, width, height = values[:4] if len(values) == 5 else values  # the fifth is a confidence
            box = [x - width / 2, y - height / 2, x + width / 2, y + height / 2]
        boxes.append(tuple(np.array(box) * scale))
    return boxes


def make_geojson(folder: Path) -> Path:
    from affine import Affine

    place = Affine(1.0, 0.0, 1000.0, 0.0, -1.0, 2000.0)
    write_raster(folder / "map.tif", noise(3, 60, 60), crs="EPSG:32618", transform=place)
    features = []
    for left, top, right, bottom in ((5, 5, 20, 20), (30, 10, 41, 33)):
        ring = [[1000 + x, 2000 - y] for x, y in ((left, top), (right, top), (right, bottom), (left, bottom))]
        geometry = {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}
        facts = {"label": "tree", "image_path": "map.tif"}
        features.append({"type": "Feature", "properties": facts, "geometry": geometry})
    (folder / "a.geojson").write_text(json.dumps({"type": "FeatureCollection", "crs": LAYER_CRS, "features": features}))
    return folder / "a.geojson"


def stated_geojson(path: Path) -> list[Box]:
    boxes = []
    for feature in json.loads(path.read_bytes())["features"]:
        ring = np.array(feature["geometry"]["coordinates"][0], np.float64)
        (left, down), (right, up) = ring.min(axis=0)[:2], ring.max(axis=0)[:2]
        boxes.append((left - 1000, 2000 - up, right - 1000, 2000 - down))
    return boxes


def make_pack(file: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        table = make_csv(folder)
        ps.pack(ps.Boxes(table), folder / "a.pack")
        return folder / "a.pack" / file

    return make


def make_shard(folder: Path) -> Path:
    write_mds(folder / "mds")
    return folder / "mds" / "shard.00000.mds"


def make_mds_index(folder: Path) -> Path:
    write_mds(folder / "mds")
    return folder / "mds" / "index.json"


def ends_between_records(data: bytes) -> bool:
    """TFRecords are one after another: length, its checksum, the bytes and theirs; nothing counts them."""
    at = 0
    while at + 8 <= len(data):
        at += 16 + int.from_bytes(data[at : at + 8], "little")
    return at == len(data)


def after_npy_header(data: bytes) -> int:
    return 10 + int.from_bytes(data[8:10], "little")


def make_image(ending: str) -> Callable[[Path], Path]:
    return lambda folder: write_picture(folder / "pictures" / f"a{ending}")


def open_pack(path: Path) -> Any:
    return ps.Pack(path.parent, verify=True)


READERS = {
    "npy": Reader(make_npy, ps.Arrays, payload=after_npy_header),
    "npz": Reader(make_npz, ps.Arrays),
    "compressed npz": Reader(make_compressed, ps.Arrays, "sealed"),
    "hdf5": Reader(make_hdf5, ps.HDF5),
    "parquet": Reader(make_parquet, ps.Parquet),
    "tar": Reader(
        lambda folder: write_tar(folder / "a.tar", [file for number in range(COUNT) for file in pair(number)]),
        ps.WebDataset,
    ),
    "tfrecord": Reader(
        lambda folder: write_records(folder / "a.tfrecord", [classified(number) for number in range(COUNT)]),
        ps.TFRecords,
        "sealed",
        ends_whole=ends_between_records,
    ),
    "mds": Reader(make_shard, lambda path: ps.MDS(path.parent), "sealed"),
    "mds index": Reader(make_mds_index, lambda path: ps.MDS(path.parent)),
    "csv": Reader(make_csv, ps.Boxes, "stated", stated_csv),
    "coco": Reader(make_coco, ps.Boxes, "stated", stated_coco),
    "voc": Reader(make_voc, lambda path: ps.Boxes(path.parent), "stated", stated_voc),
    "yolo": Reader(make_yolo, lambda path: ps.Boxes(path.parents[1]), "stated", stated_yolo),
    "geojson": Reader(make_geojson, lambda path: ps.Boxes(path, images=path.parent), "stated", stated_geojson),
    "png": Reader(make_image(".png"), lambda path: ps.Images(path.parent)),
    "jpeg": Reader(make_image(".jpg"), lambda path: ps.Images(path.parent)),
    "tiff": Reader(lambda folder: write_raster(folder / "a.tif", noise(3, 60, 60)), lambda path: ps.Rasters(path)),
    "mp4": Reader(lambda folder: write_video(folder / "a.mp4", COUNT), ps.Videos),
    "pack index": Reader(make_pack("index.arrow"), open_pack, "sealed"),
    "pack shard": Reader(make_pack("shard-00000.arrow"), open_pack, "sealed"),
    "pack.json": Reader(make_pack("pack.json"), open_pack, "sealed"),
    "hostile index": Reader(make_pack("index.arrow"), open_pack, "whole", repair=lambda path: repair(path.parent)),
    "hostile shard": Reader(
        make_pack("shard-00000.arrow"), open_pack, "whole", repair=lambda path: repair(path.parent)
    ),
    "hostile pack.json": Reader(
        make_pack("pack.json"), open_pack, "whole", repair=lambda path: repair_manifest(path.parent)
    ),
}


def digest(sample: Any) -> str:
    """What a sample holds; where it lies is not part of it."""
    values = {name: np.asarray(value) for name, value in sample.items() if name not in ("key", "group", "origin")}
    parts = [
        f"{name}{value.dtype}{value.shape}".encode() + value.tobytes()
        for name, value in sorted(values.items())
        if value.dtype.kind != "O"
    ]
    return xxhash.xxh3_64_hexdigest(b"".join(parts))


def problems_of(reader: Reader, path: Path, source: Any) -> int:
    """What `check` finds, or for a pack `verify`, which raises."""
    if reader.open is open_pack:
        source.verify()
        return 0
    return len(check(source).problems)


def read(reader: Reader, path: Path) -> Outcome:
    """All samples that can be had, and whether anything was said to be wrong."""
    try:
        source = reader.open(path)
        is_told = bool(problems_of(reader, path, source))
        count = len(source)
    except ALLOWED:
        return Outcome({}, True, [])
    samples, boxes = {}, []
    for index in range(min(count, 4 * COUNT)):
        try:
            sample = source[index]
            samples[index] = digest(sample)
            boxes += [tuple(map(float, box)) for box in sample.get("boxes", ())]
        except (*ALLOWED, OSError, ValueError) as error:  # the short reason, to which a hop adds the sample
            assert reader.oracle != "whole", f"verify found nothing, and sample {index} cannot be read: {error}"
            is_told = True
    return Outcome(samples, is_told, boxes)


class Damage(NamedTuple):
    """Other bytes: from where, and whether they are cut short, or as long as before."""

    data: bytes
    start: int
    is_cut: bool = False
    is_in_place: bool = False


def damage(data: bytes, rng: np.random.Generator) -> Damage:
    kind, at = int(rng.integers(0, 6)), int(rng.integers(0, len(data)))
    if kind == 0:
        return Damage(data[:at], at, is_cut=True)
    changed = bytearray(data)
    length = int(rng.integers(1, 1 + min(64, len(data) - at)))
    if kind == 1:
        changed[at] = int(rng.integers(0, 256))
    elif kind == 2:
        changed[at : at + length] = bytes(length)
    elif kind == 3:
        del changed[at : at + length]
    elif kind == 4:  # the same bytes twice: a row, an element, a record
        changed[at:at] = changed[at : at + length]
    else:
        changed[at:at] = rng.integers(0, 256, length, np.uint8).tobytes()
    return Damage(bytes(changed), at, is_in_place=len(changed) == len(data))


def try_once(name: str, path: Path, whole: bytes, truth: Outcome, rng: np.random.Generator) -> None:
    """One damaged file through one reader; AssertionError or another exception is a find."""
    reader = READERS[name]
    done = damage(whole, rng)
    path.write_bytes(done.data)
    if reader.repair is not None:
        try:
            reader.repair(path)
        except (ValueError, KeyError, TypeError, AttributeError):
            return  # it is no JSON any more: that is tried without repairing
    found = read(reader, path)
    if done.data == whole or found.is_told:
        return
    others = [index for index, value in found.samples.items() if truth.samples.get(index) != value]
    if reader.stated is not None:
        compare_boxes(reader.stated, path, found)
        return
    if reader.oracle == "whole":
        return
    is_shorter = reader.ends_whole is not None and reader.ends_whole(done.data)
    is_complete = len(found.samples) == len(truth.samples)
    assert is_complete or is_shorter, f"{name}: samples are missing without a word"
    if reader.oracle == "sealed" or done.is_cut:
        assert not others, f"{name}: samples {others} are others, and nothing was said"
    elif reader.payload is not None and done.is_in_place and done.start >= reader.payload(whole):
        assert len(others) <= 2, f"{name}: 64 bytes were changed, and samples {others} are others"


def compare_boxes(stated: Callable[[Path], list[Box]], path: Path, found: Outcome) -> None:
    """The boxes that came are those that the text states, as another reader sees it."""
    try:
        wanted = stated(path)
    except (
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        AttributeError,
        RecursionError,
        ElementTree.ParseError,
    ) as error:
        raise AssertionError(f"the file cannot be understood ({error}), and nothing was said") from error
    seen = np.array(sorted(found.boxes), np.float64).reshape(-1, 4)
    there = np.array(sorted(wanted), np.float64).reshape(-1, 4)
    assert len(seen) == len(there), f"{len(there)} boxes are stated, {len(seen)} came, and nothing was said"
    assert np.allclose(seen, there, atol=0.02), f"{there.tolist()} are stated, and {seen.tolist()} came"


def fuzz(name: str, seed: int, is_over: Callable[[int], bool]) -> int:
    """Damage a file again and again; what fails is kept beside the message by its seed and turn."""
    with tempfile.TemporaryDirectory() as folder:
        path = READERS[name].make(Path(folder))
        whole = path.read_bytes()
        truth = read(READERS[name], path)
        assert truth.samples and not truth.is_told, (name, truth)
        turn = 0
        while not is_over(turn):
            try:
                try_once(name, path, whole, truth, np.random.default_rng([seed, turn]))
            except Exception as error:
                raise AssertionError(f"{name}, seed {seed}, turn {turn}: {type(error).__name__}: {error}") from error
            turn += 1
    return turn


def main(seconds: float, seed: int) -> None:
    for name in READERS:
        end = time.monotonic() + seconds / len(READERS)
        print(f"{name}: {fuzz(name, seed, lambda _, end=end: time.monotonic() > end):,} damaged files", flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time()))
