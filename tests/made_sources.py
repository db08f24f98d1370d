"""Sources that tests make up: seeded, small, and importable by the processes that tests start."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps
from penstock.codecs.images import encode_image
from penstock.samples import Origin

EVERY_KIND = ps.Schema(
    (
        ps.Field("image", "image"),
        ps.Field("label", "class"),
        ps.Field("boxes", "boxes"),
        ps.Field("box_label", "labels", "int64"),
        ps.Field("mask", "mask"),
        ps.Field("depth", "array", "float32", (None, 5)),
        ps.Field("vector", "array", "int16", (4,)),
        ps.Field("flags", "labels", "bool", (3,)),
        ps.Field("caption", "text"),
        ps.Field("score", "number", "float32"),
    ),
    ("cat", "dog"),
)


def pixels(number: int, width: int = 32, height: int = 24) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """A small picture that differs for every number."""
    return np.random.default_rng(number).integers(0, 256, (height, width, 3), dtype=np.uint8)


class EveryKind:
    """A source with a field of every kind, in sizes that differ."""

    schema = EVERY_KIND

    def __init__(self, count: int = 60) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def read(self, index: int) -> ps.Raw:
        return ps.Raw(index, None)

    def decode(self, raw: ps.Raw) -> dict[str, Any]:
        number = raw.index
        rng = np.random.default_rng(1000 + number)
        width, height = 32 + number % 3, 24 + number % 5
        boxes = number % 4
        return {
            "image": pixels(number, width, height),
            "label": number % 2,
            "boxes": rng.uniform(0, 20, (boxes, 4)).astype(np.float32),
            "box_label": rng.integers(0, 2, boxes),
            "mask": rng.integers(0, 9, (height, width)).astype(np.uint8),
            "depth": rng.random((number % 3, 5), dtype=np.float32),
            "vector": rng.integers(-100, 100, 4).astype(np.int16),
            "flags": rng.random(3) < 0.5,
            "caption": f"número {number}",
            "score": np.float32(number / 7),
        }


class Pictures:
    """Encoded images in memory, with groups, and optionally some that cannot be decoded."""

    encoded_images = True
    schema = ps.Schema((ps.Field("image", "image"), ps.Field("label", "class")), ("a", "b", "c"))

    def __init__(self, count: int = 50, codec: str = "png", broken: tuple[int, ...] = (), group_size: int = 1) -> None:
        self.count, self.codec, self.broken, self.group_size = count, codec, broken, group_size

    def __len__(self) -> int:
        return self.count

    def read(self, index: int) -> ps.Raw:
        if index in self.broken:
            return ps.Raw(index, b"this is no image")
        return ps.Raw(index, encode_image(pixels(index), self.codec))

    def decode(self, raw: ps.Raw) -> dict[str, Any]:
        from penstock.codecs.images import decode_image

        return {"image": decode_image(raw.data), **self.annotations(raw.index)}

    def annotations(self, index: int) -> dict[str, Any]:
        return {"label": index % 3, "key": f"pictures/{index}.{self.codec}", "group": f"g{index // self.group_size}"}

    def column(self, name: str) -> np.ndarray[Any, Any]:
        if name not in ("label", "group", "key"):
            raise KeyError(name)
        return np.array([self.annotations(index)[name] for index in range(self.count)])

    def origin(self, index: int) -> Origin:
        return Origin(f"pictures/{index}", index, 0)


class Announced(Pictures):
    """Says on stdout that it read a sample, so that a test can interrupt it at a known place."""

    def read(self, index: int) -> ps.Raw:
        sys.stdout.write(".")
        sys.stdout.flush()
        return super().read(index)


class Numbers:
    """Many samples of one number each: nearly all of the pack is its index."""

    schema = ps.Schema((ps.Field("value", "number", "int32"),))

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def read(self, index: int) -> ps.Raw:
        return ps.Raw(index, index)

    def decode(self, raw: ps.Raw) -> dict[str, Any]:
        return {"value": raw.data}


class Deadly(Pictures):
    """Ends its process without a word at one sample."""

    def read(self, index: int) -> ps.Raw:
        if index == 20:
            os._exit(9)
        return super().read(index)


class Reel:
    """One part of a source that comes in order: numbered frames with a label vector."""

    split = None

    def __init__(self, key: str, frames: int, size: tuple[int, int] = (32, 24)) -> None:
        self.key, self.frames, self.size = key, frames, size
        self.group = key

    @property
    def expected(self) -> int:
        return self.frames

    @property
    def label_counts(self) -> dict[int, int]:
        return {0: self.frames // 2, 1: self.frames - self.frames // 2}

    def origin(self) -> Origin:
        return Origin(self.key, self.frames, 0)

    def stream(self, start: int = 0) -> Iterator[ps.Raw]:
        for frame in range(start, self.frames):
            yield ps.Raw(frame, pixels(frame + 1000 * len(self.key), *self.size))

    def annotations(self, index: int) -> dict[str, Any]:
        labels = np.array([index % 2, 1 - index % 2], np.int8)
        return {"labels": labels, "frame": np.int32(index), "key": f"{self.key}#{index}", "group": self.key}

    def decode(self, raw: ps.Raw) -> dict[str, Any]:
        return {"image": raw.data, **self.annotations(raw.index)}


class Reels:
    """A source made of parts."""

    default_codec = "png"
    schema = ps.Schema(
        (ps.Field("image", "image"), ps.Field("labels", "labels", "int8", (2,)), ps.Field("frame", "number", "int32")),
        ("rest", "move"),
    )

    def __init__(self, *lengths: int, size: tuple[int, int] = (32, 24)) -> None:
        self.parts = tuple(Reel("reel" + "x" * number, length, size) for number, length in enumerate(lengths))

    def __len__(self) -> int:
        return sum(part.frames for part in self.parts)

    def _locate(self, index: int) -> tuple[Reel, int]:
        for part in self.parts:
            if index < part.frames:
                return part, index
            index -= part.frames
        raise IndexError(index)

    def read(self, index: int) -> ps.Raw:
        part, frame = self._locate(index)
        return ps.Raw(index, next(part.stream(frame)).data)

    def decode(self, raw: ps.Raw) -> dict[str, Any]:
        part, frame = self._locate(raw.index)
        return part.decode(ps.Raw(frame, raw.data))


def same_sample(left: dict[str, Any], right: dict[str, Any], names: tuple[str, ...] | None = None) -> bool:
    """Whether two samples hold the same values of the same types."""
    for name in names or tuple(right):
        first, second = np.asarray(left[name]), np.asarray(right[name])
        if first.dtype.kind != second.dtype.kind or first.shape != second.shape or not np.array_equal(first, second):
            return False
    return True


def folder_bytes(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, to compare two packs byte for byte."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
