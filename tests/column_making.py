"""Small files of formats with columns, each with the same six samples, for tests."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.images import encode_image

COUNT = 6
CLASSES = ("cat", "dog", "owl")


def picture(number: int, width: int = 26, height: int = 20) -> NDArray[np.uint8]:
    return np.random.default_rng(number).integers(0, 256, (height, width, 3), dtype=np.uint8)


def pictures(count: int = COUNT) -> NDArray[np.uint8]:
    return np.stack([picture(number) for number in range(count)])


def labels(count: int = COUNT) -> NDArray[np.int64]:
    return np.arange(count, dtype=np.int64) % len(CLASSES)


def png(number: int) -> bytes:
    return encode_image(picture(number), "png")


def write_vlen(path: Path, name: str = "image", count: int = COUNT, *, exchanged: bool = False, **arrays: Any) -> Path:
    """An HDF5 file of encoded images; `exchanged` stores red and blue as DeepEthogram does."""
    import h5py

    with h5py.File(path, "w") as file:
        stored = file.create_dataset(name, (count,), dtype=h5py.vlen_dtype(np.uint8))
        for number in range(count):
            pixels = picture(number)
            pixels = np.ascontiguousarray(pixels[:, :, ::-1]) if exchanged else pixels
            stored[number] = np.frombuffer(encode_image(pixels, "png"), np.uint8)
        for other, array in arrays.items():
            file[other] = array
    return path


def hugging_face_dataset(count: int = COUNT) -> Any:
    import datasets

    features = datasets.Features(
        {
            "image": datasets.Image(),
            "label": datasets.ClassLabel(names=list(CLASSES)),
            "caption": datasets.Value("string"),
            "score": datasets.Value("float32"),
        }
    )
    columns = {
        "image": [{"bytes": png(number), "path": None} for number in range(count)],
        "label": labels(count).tolist(),
        "caption": [f"picture {number} é" for number in range(count)],
        "score": [number / 2 for number in range(count)],
    }
    return datasets.Dataset.from_dict(columns, features=features)


def write_parquet(path: Path, count: int = COUNT, *, row_group_size: int = 2) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(
        {
            "photo": pa.array([png(number) for number in range(count)], pa.binary()),
            "label": [CLASSES[number] for number in labels(count)],
            "score": pa.array([number / 2 for number in range(count)], pa.float32()),
        }
    )
    pq.write_table(table, path, row_group_size=row_group_size)
    return path


# MDS, written byte by byte as its format says

MDS_COLUMNS: dict[str, tuple[str, int | None]] = {
    "age": ("float32", 4),
    "image": ("png", None),
    "label": ("int", 8),
    "name": ("str", None),
    "points": ("ndarray", None),
    "vector": ("ndarray:int16:3", 6),
}


def mds_values(number: int) -> dict[str, bytes]:
    points = np.arange(2 * (number + 1), dtype=np.float32).reshape(number + 1, 2)
    return {
        "age": np.float32(number / 4).tobytes(),
        "image": png(number),
        "label": np.int64(number % len(CLASSES)).tobytes(),
        "name": f"näme {number}".encode(),
        # type 34 is float32; two axes of one byte each
        "points": bytes([34, 2 << 2, number + 1, 2]) + points.tobytes(),
        "vector": np.array([number, -number, 7], np.int16).tobytes(),
    }


def mds_shard(numbers: range) -> bytes:
    samples = []
    for number in numbers:
        values = mds_values(number)
        sizes = [len(values[name]) for name, (_, size) in MDS_COLUMNS.items() if size is None]
        samples.append(np.array(sizes, "<u4").tobytes() + b"".join(values[name] for name in MDS_COLUMNS))
    settings = json.dumps({"note": "settings are skipped by their length"}).encode()
    begin = 4 * (len(samples) + 2) + len(settings)
    offsets = np.cumsum([begin] + [len(sample) for sample in samples]).astype("<u4")
    return np.uint32(len(samples)).tobytes() + offsets.tobytes() + settings + b"".join(samples)


def write_mds(folder: Path, count: int = COUNT, shard_samples: int = 4, compress: Any = None, kind: str = "") -> Path:
    """A folder of shards with hashes; `compress` makes the bytes of a compressed shard."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for number, start in enumerate(range(0, count, shard_samples)):
        rows = range(start, min(start + shard_samples, count))
        plain, name = mds_shard(rows), f"shard.{number:05}.mds"
        entry: dict[str, Any] = {
            "column_names": list(MDS_COLUMNS),
            "column_encodings": [encoding for encoding, _ in MDS_COLUMNS.values()],
            "column_sizes": [size for _, size in MDS_COLUMNS.values()],
            "compression": kind or None,
            "format": "mds",
            "version": 2,
            "samples": len(rows),
            "raw_data": _described(name, plain),
            "zip_data": None,
        }
        if compress is None:
            (folder / name).write_bytes(plain)
        else:
            packed = compress(plain)
            entry["zip_data"] = _described(f"{name}.{kind}", packed)
            (folder / f"{name}.{kind}").write_bytes(packed)
        entries.append(entry)
    (folder / "index.json").write_text(json.dumps({"version": 2, "shards": entries}))
    return folder


def _described(name: str, data: bytes) -> dict[str, Any]:
    return {"basename": name, "bytes": len(data), "hashes": {"sha1": hashlib.sha1(data).hexdigest()}}
