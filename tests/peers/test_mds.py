"""Shards that MosaicML Streaming itself wrote are read as it reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from column_making import COUNT, picture

streaming = pytest.importorskip("streaming")
Image = pytest.importorskip("PIL.Image")

COLUMNS = {
    "bytes": "bytes",
    "free": "ndarray",
    "half": "float16",
    "image": "png",
    "label": "int",
    "matrix": "ndarray:float32:2,3",
    "name": "str",
    "note": "json",
    "shaped": "ndarray:int64",
    "small": "uint16",
    "words": "str_int",
}


def sample(number: int) -> dict[str, Any]:
    return {
        "bytes": bytes(number),
        "free": np.arange(2 * (number + 1), dtype=np.int16).reshape(2, -1),
        "half": np.float16(number / 2),
        "image": Image.fromarray(picture(number)),
        "label": number % 3,
        "matrix": np.full((2, 3), number, np.float32),
        "name": f"näme {number}",
        "note": {"number": number},
        "shaped": np.arange(number + 300, dtype=np.int64),
        "small": np.uint16(number),
        "words": number,
    }


@pytest.fixture(params=[None, "zstd", "gz", "br", "bz2", "snappy"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    settings = {"columns": COLUMNS, "compression": request.param, "hashes": ["sha1", "xxh64"], "size_limit": 12_000}
    with streaming.MDSWriter(out=str(tmp_path / "mds"), **settings) as writer:
        for number in range(COUNT):
            writer.write(sample(number))
    return tmp_path / "mds"


def test_every_value_is_what_was_written(folder: Path) -> None:
    source = ps.open(folder, verify=True)
    assert isinstance(source, ps.MDS) and len(source) == COUNT
    assert set(source.left_out) == {"bytes"}
    assert ps.check(source, decode=True).ok
    for number in range(COUNT):
        found, written = source[number], sample(number)
        np.testing.assert_array_equal(found["image"], picture(number))
        for name in ("free", "half", "label", "matrix", "shaped", "small", "words", "name"):
            np.testing.assert_array_equal(found[name], written[name], err_msg=name)


def test_raw_pillow_images_are_read(tmp_path: Path) -> None:
    with streaming.MDSWriter(out=str(tmp_path / "mds"), columns={"image": "pil", "label": "int"}) as writer:
        for number in range(3):
            writer.write({"image": Image.fromarray(picture(number)), "label": number})
    source = ps.MDS(tmp_path / "mds")
    for number in range(3):
        np.testing.assert_array_equal(source[number]["image"], picture(number))


def test_pickled_columns_are_left_out(tmp_path: Path) -> None:
    with streaming.MDSWriter(out=str(tmp_path / "mds"), columns={"image": "png", "thing": "pkl"}) as writer:
        writer.write({"image": Image.fromarray(picture(0)), "thing": {1, 2}})
    assert "running code" in ps.MDS(tmp_path / "mds").left_out["thing"]
