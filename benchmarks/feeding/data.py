"""The data of the contests, made once and kept: photographs, thumbnails, videos, and packs of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import penstock as ps
from benchmarks.feeding import recordings
from benchmarks.pictures import picture, write_jpegs

IMAGES, QUALITY = 4096, 93  # about 98 KB each
THUMBNAILS, THUMBNAIL_SIDE = 60_000, 32
CLASSES = 10


def jpegs(home: Path) -> Path:
    """Photographs of about 500×375 px in class folders."""
    folder = home / "jpegs"
    write_jpegs(folder, IMAGES, quality=QUALITY)
    return folder


def kept_pack(home: Path) -> Path:
    """The photographs, byte for byte."""
    return _packed(home / "kept.pack", lambda path: ps.pack(ps.Images(jpegs(home)), path, split="everything"))


def small_pack(home: Path) -> Path:
    """The photographs with a shortest side of 256 px, as JPEG."""
    return _packed(
        home / "small.pack",
        lambda path: ps.pack(ps.Images(jpegs(home)), path, split="everything", shortest_side=256, codec="jpeg"),
    )


def square_pack(home: Path) -> Path:
    """The photographs at 224×224 px, as JPEG."""
    return _packed(
        home / "square.pack",
        lambda path: ps.pack(ps.Images(jpegs(home)), path, split="everything", size="224x224", codec="jpeg"),
    )


def square_jpegs(home: Path) -> Path:
    """The same in class folders, byte for byte."""
    folder = home / "square-jpegs"
    if not folder.exists():
        pack, unfinished = ps.open(square_pack(home)), home / "square-jpegs.unfinished"
        for index, label in enumerate(pack.column("label")):
            path = unfinished / f"class_{label}" / f"{index}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(pack.read(index).data)
        unfinished.rename(folder)
    return folder


def raw_pack(home: Path) -> Path:
    """The photographs as raw pixels of one size, the shortest side 256 px."""
    return _packed(
        home / "raw.pack",
        lambda path: ps.pack(ps.Images(jpegs(home)), path, split="everything", size="341x256", codec="raw"),
    )


def thumbnails(home: Path) -> Path:
    """60,000 pictures of 32×32 px as one numpy file; picture i is of class i % 10."""
    path = home / "thumbnails.npy"
    if not path.exists():
        pixels = np.empty((THUMBNAILS, THUMBNAIL_SIDE, THUMBNAIL_SIDE, 3), np.uint8)
        tiles = 1024  # cut from large pictures, because making them one by one takes minutes
        for start in range(0, THUMBNAILS, tiles):
            block = picture(start, 32 * THUMBNAIL_SIDE, 32 * THUMBNAIL_SIDE)
            cut = block.reshape(32, THUMBNAIL_SIDE, 32, THUMBNAIL_SIDE, 3).swapaxes(1, 2)
            pixels[start : start + tiles] = cut.reshape(tiles, THUMBNAIL_SIDE, THUMBNAIL_SIDE, 3)[: THUMBNAILS - start]
        unfinished = home / "thumbnails.unfinished.npy"
        np.save(unfinished, pixels)
        unfinished.rename(path)
    return path


class Thumbnails:
    """A numpy array as a source: all that an own source needs."""

    def __init__(self, path: Path) -> None:
        self.pixels: NDArray[np.uint8] = np.load(path, mmap_mode="r")
        self.schema = ps.Schema((ps.Field("image", "image"), ps.Field("label", "class")), _class_names())

    def __len__(self) -> int:
        return len(self.pixels)

    def read(self, index: int) -> ps.Raw:
        return ps.Raw(index, self.pixels[index])

    def decode(self, raw: ps.Raw) -> dict[str, object]:
        return {"image": np.ascontiguousarray(raw.data), "label": raw.index % CLASSES}


def _class_names() -> tuple[str, ...]:
    return tuple(f"class_{number}" for number in range(CLASSES))


def thumbnail_pack(home: Path) -> Path:
    return _packed(
        home / "thumbnails.pack",
        lambda path: ps.pack(Thumbnails(thumbnails(home)), path, split="everything", codec="raw"),
    )


def original_videos(home: Path) -> tuple[Path, int]:
    """H.264 files of 640×480 px with a key frame every 250 frames, and how many frames they have together."""
    folder = home / "recordings"
    return folder, recordings.write(folder)


def video_pack(home: Path, codec: str) -> Path:
    """Every frame at 224×224 px."""
    folder, _ = original_videos(home)
    return _packed(
        home / f"recordings-{codec}.pack",
        lambda path: ps.pack(ps.Videos(folder, size="224x224"), path, split="everything", codec=codec),
    )


def _packed(path: Path, make: Callable[[Path], object]) -> Path:
    if not path.exists():
        make(path)
    return path
