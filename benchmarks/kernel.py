"""The JPEG kernel against the same C functions without Python, and against the usual libraries.

python -m benchmarks.kernel                 random-resized-crop 224, flip, batches of 64, two threads
python -m benchmarks.kernel --json out.json
"""

from __future__ import annotations

import argparse
import io
import statistics
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import PIL
import simplejpeg
from numpy.typing import NDArray
from PIL import Image

from benchmarks.bare_loop import THREADS, BareLoop, Orders
from benchmarks.pictures import write_jpegs
from benchmarks.rounds import Result, save, seconds
from penstock.codecs import kernel
from penstock.codecs.headers import read_header

IMAGES, ROUNDS, BATCH, SIDE = 1024, 5, 64, 224
IMAGENET = {"mean": (123.675, 116.28, 103.53), "std": (58.395, 57.12, 57.375)}
UINT8 = kernel.Target(SIDE, SIDE)
NORMALISED = kernel.Target(SIDE, SIDE, "chw-float32", **IMAGENET)

Make = Callable[["Jobs", slice], NDArray[Any]]


@dataclass(frozen=True)
class Jobs:
    """Encoded images, and for each the crop and flip that every contestant uses."""

    sources: list[bytes]
    crops: NDArray[np.int32]
    flips: NDArray[np.uint8]

    def batches(self) -> list[slice]:
        return [slice(start, start + BATCH) for start in range(0, len(self.sources), BATCH)]


def random_resized_crop(width: int, height: int, rng: np.random.Generator) -> tuple[int, int, int, int]:
    """8 to 100 % of the area at a ratio of 3:4 to 4:3, as everybody trains with."""
    for _ in range(10):
        area = width * height * rng.uniform(0.08, 1.0)
        ratio = np.exp(rng.uniform(np.log(3 / 4), np.log(4 / 3)))
        w, h = round(np.sqrt(area * ratio)), round(np.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return int(rng.integers(width - w + 1)), int(rng.integers(height - h + 1)), w, h
    return 0, 0, width, height


def make_jobs(home: Path) -> Jobs:
    write_jpegs(home, IMAGES, quality=95)
    rng = np.random.default_rng(7)
    sources = [path.read_bytes() for path in sorted(home.rglob("*.jpg"))]
    headers = [read_header(data) for data in sources]
    crops = [random_resized_crop(header.width, header.height, rng) for header in headers]
    return Jobs(sources, np.array(crops, np.int32), rng.integers(0, 2, len(sources)).astype(np.uint8))


def with_kernel(target: kernel.Target) -> Make:
    slots = threading.local()  # memory of batches goes round, as in a flow

    def make(jobs: Jobs, part: slice) -> NDArray[Any]:
        sources = jobs.sources[part]
        if not hasattr(slots, "out"):
            slots.out = np.empty((BATCH, *target.shape), target.dtype)
        out = slots.out[: len(sources)]
        failures = kernel.decode_range(sources, jobs.crops[part], jobs.flips[part], out, target, reduced="never")
        assert not failures
        return out

    return make


def sample_by_sample(one: Callable[[bytes, list[int]], NDArray[np.uint8]], *, normalise: bool = False) -> Make:
    """A batch with a library that knows single images."""

    def make(jobs: Jobs, part: slice) -> NDArray[Any]:
        sources = jobs.sources[part]
        out = np.empty((len(sources), SIDE, SIDE, 3), np.uint8)
        for row, data, crop, flip in zip(out, sources, jobs.crops[part].tolist(), jobs.flips[part], strict=True):
            pixels = one(data, crop)
            row[:] = pixels[:, ::-1] if flip else pixels
        if not normalise:
            return out
        mean, std = (np.array(IMAGENET[name], np.float32) for name in ("mean", "std"))
        return np.ascontiguousarray(((out - mean) / std).transpose(0, 3, 1, 2))

    return make


def with_simplejpeg(data: bytes, crop: list[int]) -> NDArray[np.uint8]:
    x, y, width, height = crop
    pixels = simplejpeg.decode_jpeg(data, "RGB")[y : y + height, x : x + width]
    return cv2.resize(pixels, (SIDE, SIDE), interpolation=cv2.INTER_LINEAR)


def with_opencv(data: bytes, crop: list[int]) -> NDArray[np.uint8]:
    x, y, width, height = crop
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR_RGB)[y : y + height, x : x + width]
    return cv2.resize(pixels, (SIDE, SIDE), interpolation=cv2.INTER_LINEAR)


def with_pillow(data: bytes, crop: list[int]) -> NDArray[np.uint8]:
    x, y, width, height = crop
    image = Image.open(io.BytesIO(data)).convert("RGB").crop((x, y, x + width, y + height))
    return np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BILINEAR))


def orders(jobs: Jobs) -> Orders:
    """The same samples for the program without Python."""
    count = len(jobs.sources)
    return Orders(jobs.sources, np.zeros((count, 2)), np.arange(count), jobs.crops, jobs.flips, SIDE, BATCH)


def batch_seconds(jobs: Jobs, make: Make) -> float:
    """All batches in two threads; what comes out is counted."""

    def run() -> None:
        with ThreadPoolExecutor(THREADS) as pool:
            delivered = sum(pool.map(lambda part: make(jobs, part).shape[0], jobs.batches()))
        assert delivered == len(jobs.sources)

    return seconds(run)


def check_that_all_make_the_same(jobs: Jobs) -> None:
    """Filters differ a little above a factor of two; crops, flips and sizes must not."""
    ours = with_kernel(UINT8)(jobs, slice(0, BATCH)).astype(int)
    for one in (with_simplejpeg, with_opencv, with_pillow):
        difference = np.abs(ours - sample_by_sample(one)(jobs, slice(0, BATCH))).mean()
        assert difference < 3, f"{one.__name__} differs by {difference:.1f} levels"


def measure(home: Path) -> dict[str, float]:
    """Images per second of every contestant: medians of alternating rounds."""
    jobs = make_jobs(home / "jpegs")
    check_that_all_make_the_same(jobs)
    loop = BareLoop(home, orders(jobs))
    runs: dict[str, Callable[[], float]] = {
        "kernel": lambda: batch_seconds(jobs, with_kernel(UINT8)),
        "bare loop": lambda: loop.seconds("u"),
        "kernel, float32": lambda: batch_seconds(jobs, with_kernel(NORMALISED)),
        "bare loop, float32": lambda: loop.seconds("f"),
        "simplejpeg": lambda: batch_seconds(jobs, sample_by_sample(with_simplejpeg)),
        "simplejpeg, float32": lambda: batch_seconds(jobs, sample_by_sample(with_simplejpeg, normalise=True)),
        "OpenCV": lambda: batch_seconds(jobs, sample_by_sample(with_opencv)),
        "Pillow": lambda: batch_seconds(jobs, sample_by_sample(with_pillow)),
    }
    times: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(ROUNDS):
        order = list(runs) if number % 2 == 0 else list(runs)[::-1]
        for name in order:
            times[name].append(runs[name]())
    loop.close()
    return {name: len(jobs.sources) / statistics.median(rounds) for name, rounds in times.items()}


def results(rates: dict[str, float]) -> list[Result]:
    def line(ours: str, theirs: str, least: float) -> Result:
        ratio = rates[ours] / rates[theirs]
        figure = f"{ratio:.2f} × ({rates[ours]:,.0f}/s, {rates[theirs]:,.0f}/s)"
        return Result(f"{ours} beside {theirs}", figure, f"≥ {least} ×", ratio >= least)

    return [
        line("kernel", "bare loop", 0.93),
        line("kernel, float32", "bare loop, float32", 0.85),
        line("kernel", "simplejpeg", 1.3),
        line("kernel", "OpenCV", 1.3),
        line("kernel", "Pillow", 1.3),
        line("kernel, float32", "simplejpeg, float32", 1.7),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    cv2.setNumThreads(0)  # the threads are ours
    print(f"{kernel.which()}; simplejpeg {simplejpeg.__version__}, OpenCV {cv2.__version__}, Pillow {PIL.__version__}")
    with tempfile.TemporaryDirectory() as home:
        table = results(measure(Path(home)))
    for result in table:
        print(result.line())
    if options.json:
        save(table, options.json)


if __name__ == "__main__":
    main()
