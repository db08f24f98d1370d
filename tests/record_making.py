"""TFRecord files and tar shards for tests."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from made_sources import pixels
from penstock.codecs.images import encode_image
from penstock.formats.tfrecord.examples import encode_example
from penstock.formats.tfrecord.framing import frame


def image_bytes(number: int, width: int = 24, height: int = 16, codec: str = "png") -> bytes:
    return encode_image(pixels(number, width, height), codec)


def write_records(path: Path, examples: Sequence[Mapping[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(frame(encode_example(example)) for example in examples))
    return path


def classified(number: int) -> dict[str, Any]:
    """An Example as image classifiers have it."""
    return {
        "image/encoded": image_bytes(number, 20 + number, 16),
        "image/class/label": number % 3,
        "image/class/text": ("ash", "elm", "oak")[number % 3],
        "image/filename": f"trees/{number}.png",
    }


def detected(number: int, width: int = 40, height: int = 30) -> dict[str, Any]:
    """An Example as object detectors have it, with `number` boxes."""
    boxes = np.array([[box + 1, 2, box + 9.5, 20] for box in range(number)], np.float32).reshape(-1, 4)
    parts = boxes / np.array([width, height, width, height], np.float32)
    sides = {f"image/object/bbox/{side}": parts[:, n] for n, side in enumerate(("xmin", "ymin", "xmax", "ymax"))}
    labels = [box % 2 + 1 for box in range(number)]
    return {
        "image/encoded": image_bytes(number, width, height),
        "image/filename": f"{number}.png",
        **sides,
        "image/object/class/label": np.array(labels, np.int64),
        "image/object/class/text": [("crown", "snag")[label - 1] for label in labels],
    }


def write_tar(
    path: Path, files: Sequence[tuple[str, bytes]], *, mode: str = "w", form: int = tarfile.PAX_FORMAT
) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, mode, format=form) as archive:  # type: ignore[call-overload]
        for name, data in files:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def pair(number: int, key: str | None = None) -> list[tuple[str, bytes]]:
    """The two files of a sample with a class."""
    name = key or f"{number:06d}"
    return [(f"{name}.png", image_bytes(number, 20 + number, 16)), (f"{name}.cls", str(number % 2).encode())]
