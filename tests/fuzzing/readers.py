"""Every reader on damaged files: never a crash, and what comes out is compared with the truth.

    python -m tests.fuzzing.readers SECONDS [SEED]

| damage                     | allowed                                                                             |
|----------------------------|-------------------------------------------------------------------------------------|
| the end is missing         | an error of ours or a named problem; without one, all samples come, and are true |
| bytes changed, moved, lost | an error of ours, or samples: most formats have no checksum, so these may be others |
| the same under a checksum  | as where the end is missing                                                         |
"""

from __future__ import annotations

import io
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

import penstock as ps
from penstock.codecs.headers import UnreadableImage
from penstock.codecs.images import encode_image
from penstock.formats.checking import check
from picture_making import write_picture
from raster_making import noise, write_raster
from record_making import classified, pair, write_records, write_tar
from video_making import write_video

COUNT = 6
# What a reader may raise: errors of ours, and the short reason of one sample, which hops turn into one.
ALLOWED = (ps.PenstockError, UnreadableImage)


class Reader(NamedTuple):
    """How a small file is made, and how it is read; `checked` where a checksum finds every changed byte."""

    make: Callable[[Path], Path]
    open: Callable[[Path], Any]
    checked: bool = False


class Outcome(NamedTuple):
    samples: dict[int, str]
    is_told: bool


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


def make_coco(folder: Path) -> Path:
    write_picture(folder / "one.png")
    (folder / "a.json").write_text(
        '{"images": [{"id": 1, "file_name": "one.png", "width": 40, "height": 30}], "categories": [{"id": 1, "name": '
        '"oak"}], "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 2, 8, 9]}]}'
    )
    return folder / "a.json"


def make_image(ending: str) -> Callable[[Path], Path]:
    return lambda folder: write_picture(folder / "pictures" / f"a{ending}")


READERS = {
    "npy": Reader(make_npy, ps.Arrays),
    "npz": Reader(make_npz, ps.Arrays),
    "compressed npz": Reader(make_compressed, ps.Arrays),
    "hdf5": Reader(make_hdf5, ps.HDF5),
    "parquet": Reader(make_parquet, ps.Parquet),
    "tar": Reader(
        lambda folder: write_tar(folder / "a.tar", [file for number in range(COUNT) for file in pair(number)]),
        ps.WebDataset,
    ),
    "tfrecord": Reader(
        lambda folder: write_records(folder / "a.tfrecord", [classified(number) for number in range(COUNT)]),
        ps.TFRecords,
        checked=True,
    ),
    "coco": Reader(make_coco, ps.Boxes),
    "png": Reader(make_image(".png"), lambda path: ps.Images(path.parent)),
    "jpeg": Reader(make_image(".jpg"), lambda path: ps.Images(path.parent)),
    "tiff": Reader(lambda folder: write_raster(folder / "a.tif", noise(3, 60, 60)), lambda path: ps.Rasters(path)),
    "mp4": Reader(lambda folder: write_video(folder / "a.mp4", COUNT), ps.Videos),
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


def read(reader: Reader, path: Path) -> Outcome:
    """All samples that can be had, and whether anything was said to be wrong."""
    try:
        source = reader.open(path)
        is_told = bool(check(source).problems)
        count = len(source)
    except ALLOWED:
        return Outcome({}, True)
    samples = {}
    for index in range(min(count, 4 * COUNT)):
        try:
            samples[index] = digest(source[index])
        except (*ALLOWED, OSError):
            is_told = True
    return Outcome(samples, is_told)


def damage(data: bytes, rng: np.random.Generator) -> tuple[bytes, bool]:
    """Some other bytes; and whether only the end is missing."""
    kind, at = int(rng.integers(0, 5)), int(rng.integers(0, len(data)))
    if kind == 0:
        return data[:at], True
    changed = bytearray(data)
    length = int(rng.integers(1, 1 + min(64, len(data) - at)))
    if kind == 1:
        changed[at] = int(rng.integers(0, 256))
    elif kind == 2:
        changed[at : at + length] = bytes(length)
    elif kind == 3:
        del changed[at : at + length]
    else:
        changed[at:at] = rng.integers(0, 256, length, np.uint8).tobytes()
    return bytes(changed), False


def try_once(name: str, path: Path, whole: bytes, truth: Outcome, rng: np.random.Generator) -> None:
    """One damaged file through one reader; AssertionError or another exception is a find."""
    reader = READERS[name]
    data, is_cut = damage(whole, rng)
    path.write_bytes(data)
    found = read(reader, path)
    if data == whole or not (is_cut or reader.checked):
        return
    others = [index for index, value in found.samples.items() if truth.samples.get(index) != value]
    assert not others or found.is_told, f"{name}: samples {others} are others, and nothing was said"
    assert len(found.samples) == len(truth.samples) or found.is_told, f"{name}: samples are missing without a word"


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
