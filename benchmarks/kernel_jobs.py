"""What the contestants of the kernel's benchmark do: images, and for each sample a view and a flip."""

from __future__ import annotations

import struct
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from benchmarks.pictures import write_jpegs
from penstock.codecs import kernel
from penstock.codecs.headers import read_header
from penstock.codecs.images import decode_image

THREADS = 2
C_SOURCES = Path(kernel.__file__).parent / "c"


@dataclass(frozen=True)
class Jobs:
    """Sample i shows the view `crops[i]` of the image of `sources[i]`, or for raw pixels at `places[i]`."""

    sources: list[bytes]
    places: NDArray[np.int64]
    crops: NDArray[np.int64]
    flips: NDArray[np.uint8]
    target: kernel.Target
    batch: int
    is_raw: bool

    def __len__(self) -> int:
        return len(self.flips)

    def batches(self) -> list[slice]:
        return [slice(start, start + self.batch) for start in range(0, len(self), self.batch)]


def random_resized_crop(width: int, height: int, rng: np.random.Generator) -> tuple[int, int, int, int]:
    """8 to 100 % of the area at a ratio of 3:4 to 4:3, as everybody trains with."""
    for _ in range(10):
        area = width * height * rng.uniform(0.08, 1.0)
        ratio = np.exp(rng.uniform(np.log(3 / 4), np.log(4 / 3)))
        w, h = round(np.sqrt(area * ratio)), round(np.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return int(rng.integers(width - w + 1)), int(rng.integers(height - h + 1)), w, h
    return 0, 0, width, height


def resized_crops(sizes: NDArray[np.int64], side: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Views of random-resized-crop, n×8."""
    crops = np.array([random_resized_crop(int(width), int(height), rng) for width, height in sizes])
    return np.concatenate([crops, np.tile([side, side, 0, 0], (len(crops), 1))], axis=1)


def jpeg_jobs(home: Path, count: int, side: int, batch: int) -> Jobs:
    """Photographs of about 500×375 px at 100 KB, random-resized-crop, flip."""
    write_jpegs(home, count, quality=95)
    rng = np.random.default_rng(7)
    sources = [path.read_bytes() for path in sorted(home.rglob("*.jpg"))]
    sizes = np.array([read_header(data)[1:3] for data in sources])
    places = np.concatenate([np.zeros((len(sources), 2), np.int64), sizes], axis=1)
    flips = rng.integers(0, 2, len(sources)).astype(np.uint8)
    target = kernel.Target(side, side)
    return Jobs(sources, places, resized_crops(sizes, side, rng), flips, target, batch, is_raw=False)


def raw_jobs(images: list[NDArray[np.uint8]], side: int, batch: int) -> Jobs:
    """Decoded images in one buffer, random-resized-crop, flip."""
    rng = np.random.default_rng(8)
    sizes = np.array([image.shape[1::-1] for image in images])
    ends = np.cumsum(sizes.prod(axis=1) * 3)
    places = np.stack([ends * 0, ends - sizes.prod(axis=1) * 3, *sizes.T], axis=1)
    flips = rng.integers(0, 2, len(images)).astype(np.uint8)
    whole = b"".join(image.tobytes() for image in images)
    return Jobs([whole], places, resized_crops(sizes, side, rng), flips, kernel.Target(side, side), batch, is_raw=True)


def packed_images(jobs: Jobs, shortest_px: int) -> list[NDArray[np.uint8]]:
    """The images of some jobs as a pack with this shortest side stores them."""
    images = []
    for data in jobs.sources:
        pixels = decode_image(data)
        scale = shortest_px / min(pixels.shape[:2])
        size = (round(pixels.shape[1] * scale), round(pixels.shape[0] * scale))
        images.append(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA))
    return images


def small_jobs(count: int, batch: int) -> Jobs:
    """Raw images of 32×32 px in random order, padded by 4 px and cropped again, flip."""
    rng = np.random.default_rng(9)
    images = rng.integers(0, 256, (count, 32, 32, 3), np.uint8)
    order = rng.permutation(count)
    places = np.stack([order * 0, order * 32 * 32 * 3, order * 0 + 32, order * 0 + 32], axis=1)
    parts = rng.integers(-4, 5, (count, 2))
    crops = np.concatenate([np.tile([0, 0, 32, 32, 32, 32], (count, 1)), parts], axis=1)
    flips = rng.integers(0, 2, count).astype(np.uint8)
    return Jobs([images.tobytes()], places, crops, flips, kernel.Target(32, 32), batch, is_raw=True)


class BareLoop:
    """The kernel's C functions in threads of a program without Python."""

    def __init__(self, program: Path, jobs: Jobs) -> None:
        with tempfile.NamedTemporaryFile(dir=program.parent) as orders:
            _write_orders(Path(orders.name), jobs)
            command = [str(program), orders.name, str(THREADS)]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.seconds("u")  # everything is loaded then

    @staticmethod
    def build(home: Path) -> Path:
        """The program, compiled as the extension is."""
        program = home / "kernel_loop"
        files = [*C_SOURCES.glob("*.c"), Path(__file__).with_name("kernel_loop.c")]
        sources = [str(path) for path in files if not path.name.endswith("module.c")]
        flags = ["-std=gnu99", "-O3", "-ffp-contract=off", f"-I{C_SOURCES}", "-o", str(program)]
        subprocess.run(["cc", *flags, *sources, "-ljpeg", "-lm", "-lpthread"], check=True)
        return program

    def seconds(self, layout: str) -> float:
        """One round over all jobs: u writes uint8, f writes float32."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(layout)
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


def _write_orders(path: Path, jobs: Jobs) -> None:
    lengths = np.array([len(data) for data in jobs.sources])
    offsets = jobs.places[:, 1] if jobs.is_raw else np.cumsum(lengths) - lengths
    sizes = jobs.places[:, 2:].prod(axis=1) * 3 if jobs.is_raw else lengths
    rows = np.column_stack([offsets, sizes, jobs.places[:, 2:], jobs.crops, jobs.flips])
    side = jobs.target
    head = struct.pack("=6q", jobs.is_raw, len(jobs), side.width, side.height, jobs.batch, int(lengths.sum()))
    with path.open("wb") as file:
        file.write(head + rows.astype("=i8").tobytes())
        file.writelines(jobs.sources)
