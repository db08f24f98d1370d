"""The kernel against the same C functions without Python, and against the usual libraries; two threads each.

python -m benchmarks.kernel                 JPEG   random-resized-crop 224, flip, batches of 64
                                            256    the same from raw pixels with a shortest side of 256 px
                                            small  raw 32×32 px, crop with a padding of 4 px, flip, batches of 512
python -m benchmarks.kernel --json out.json
"""

from __future__ import annotations

import argparse
import io
import statistics
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import simplejpeg
from numpy.typing import NDArray
from PIL import Image

from benchmarks.bare_loop import THREADS, BareLoop
from benchmarks.kernel_jobs import PADDING, Jobs, jpeg_jobs, packed_images, raw_jobs, small_jobs
from benchmarks.rounds import seconds
from benchmarks.tables import Bar, Row, Table, Value, compare, versions_of
from penstock.codecs import kernel

IMAGES, PACKED_IMAGES, SMALL_IMAGES, ROUNDS, BATCH, SMALL_BATCH, SIDE = 1024, 512, 60_000, 5, 64, 512, 224
IMAGENET = {"mean": (123.675, 116.28, 103.53), "std": (58.395, 57.12, 57.375)}

Make = Callable[[Jobs, slice], NDArray[Any]]
Runs = dict[str, Callable[[], float]]
Rates = dict[str, float]  # images a second of every contestant


def with_kernel(*, normalise: bool = False) -> Make:
    slots = threading.local()  # memory of batches goes round, as in a flow

    def make(jobs: Jobs, part: slice) -> NDArray[Any]:
        target = replace(jobs.target, layout="chw-float32", **IMAGENET) if normalise else jobs.target
        crops, flips = jobs.crops[part], jobs.flips[part]
        if not hasattr(slots, "out"):
            slots.out = np.empty((jobs.batch, *target.shape), target.dtype)
        out = slots.out[: len(flips)]
        if jobs.is_raw:
            failures = kernel.pixels_range((jobs.buffer,), jobs.places[part], crops, flips, out, target)
        else:
            failures = kernel.decode_range(jobs.sources[part], crops, flips, out, target, reduced="never")
        assert not failures
        return out

    return make


def sample_by_sample(one: Callable[[bytes, list[int]], NDArray[np.uint8]], *, normalise: bool = False) -> Make:
    """A batch with a library that knows single images."""

    def make(jobs: Jobs, part: slice) -> NDArray[Any]:
        crops, flips = jobs.crops[part, :4].tolist(), jobs.flips[part]
        out = np.empty((len(flips), SIDE, SIDE, 3), np.uint8)
        for row, data, crop, flip in zip(out, _images(jobs, part), crops, flips, strict=True):
            pixels = one(data, crop)
            row[:] = pixels[:, ::-1] if flip else pixels
        if not normalise:
            return out
        mean, std = (np.array(IMAGENET[name], np.float32) for name in ("mean", "std"))
        return np.ascontiguousarray(((out - mean) / std).transpose(0, 3, 1, 2))

    return make


def _images(jobs: Jobs, part: slice) -> list[Any]:
    if not jobs.is_raw:
        return list(jobs.sources[part])
    whole, places = np.frombuffer(jobs.buffer, np.uint8), jobs.places[part].tolist()
    return [whole[at : at + width * height * 3].reshape(height, width, 3) for _, at, width, height in places]


def with_simplejpeg(data: bytes, crop: list[int]) -> NDArray[np.uint8]:
    return resized_pixels(simplejpeg.decode_jpeg(data, "RGB"), crop)


def with_opencv(data: bytes, crop: list[int]) -> NDArray[np.uint8]:
    return resized_pixels(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR_RGB), crop)


def resized_pixels(pixels: Any, crop: list[int]) -> NDArray[np.uint8]:
    x, y, width, height = crop
    return cv2.resize(pixels[y : y + height, x : x + width], (SIDE, SIDE), interpolation=cv2.INTER_LINEAR)


def with_pillow(data: bytes, crop: list[int]) -> NDArray[np.uint8]:
    x, y, width, height = crop
    image = Image.open(io.BytesIO(data)).convert("RGB").crop((x, y, x + width, y + height))
    return np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BILINEAR))


def numpy_gather(jobs: Jobs) -> Make:
    """Small images with numpy alone: all images padded once, then windows of them gathered for a whole batch."""
    images = np.frombuffer(jobs.buffer, np.uint8).reshape(-1, 32, 32, 3)
    padded = np.pad(images, ((0, 0), (PADDING, PADDING), (PADDING, PADDING), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (32, 32), axis=(1, 2)).transpose(0, 1, 2, 4, 5, 3)

    def make(jobs: Jobs, part: slice) -> NDArray[Any]:
        x, y = (jobs.crops[part, 6:] + PADDING).T
        out = windows[jobs.images[part], y, x]
        flipped = jobs.flips[part].astype(bool)
        out[flipped] = out[flipped, :, ::-1]
        return out

    return make


def batch_seconds(jobs: Jobs, make: Make) -> float:
    """All batches in two threads; what comes out is counted."""

    def run() -> None:
        with ThreadPoolExecutor(THREADS) as pool:
            delivered = sum(pool.map(lambda part: make(jobs, part).shape[0], jobs.batches()))
        assert delivered == len(jobs)

    return seconds(run)


def check_that_all_make_the_same(jobs: Jobs, others: dict[str, Make], most_levels: float) -> None:
    """Filters differ a little above a factor of two; crops, flips and sizes must not."""
    part = slice(0, jobs.batch)
    ours = with_kernel()(jobs, part).astype(int)
    for name, make in others.items():
        difference = np.abs(ours - make(jobs, part)).mean()
        assert difference <= most_levels, f"{name} differs by {difference:.1f} levels"


def jpeg_rates(home: Path, jobs: Jobs, rounds: int) -> Rates:
    singles = {"simplejpeg": with_simplejpeg, "OpenCV": with_opencv, "Pillow": with_pillow}
    others = {name: sample_by_sample(one) for name, one in singles.items()}
    check_that_all_make_the_same(jobs, others, most_levels=3)
    others["simplejpeg, float32"] = sample_by_sample(with_simplejpeg, normalise=True)
    return rates("JPEG", home, jobs, others, rounds, normalise=True)


def packed_rates(home: Path, jobs: Jobs, rounds: int) -> Rates:
    others = {"OpenCV": sample_by_sample(resized_pixels)}
    check_that_all_make_the_same(jobs, others, most_levels=3)
    return rates("256", home, jobs, others, rounds, normalise=True)


def small_rates(home: Path, jobs: Jobs, rounds: int) -> Rates:
    others = {"numpy gather": numpy_gather(jobs)}
    check_that_all_make_the_same(jobs, others, most_levels=0)
    return rates("small", home, jobs, others, rounds, normalise=False)


def rates(what: str, home: Path, jobs: Jobs, others: dict[str, Make], rounds: int, *, normalise: bool) -> Rates:
    """Images per second of every contestant: medians of alternating rounds."""
    loop = BareLoop(home, jobs.orders(), what)
    contestants = {"kernel": with_kernel(), **others}
    letters = {"bare loop": "U" if jobs.is_raw else "u"}
    if normalise:
        contestants["kernel, float32"] = with_kernel(normalise=True)
        letters["bare loop, float32"] = "F" if jobs.is_raw else "f"
    runs: Runs = {name: lambda make=make: batch_seconds(jobs, make) for name, make in contestants.items()}
    runs |= {name: lambda letter=letter: loop.seconds(letter) for name, letter in letters.items()}
    times: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds):
        for name in sorted(runs, reverse=number % 2 == 1):
            times[name].append(runs[name]())
    loop.close()
    return {name: len(jobs) / statistics.median(taken) for name, taken in times.items()}


def measure(home: Path, rounds: int) -> Iterator[Row]:
    jobs = jpeg_jobs(home / "jpegs", IMAGES, SIDE, BATCH)
    yield row("JPEG → random-resized-crop 224 → flip", jpeg_rates(home, jobs, rounds))
    packed = packed_images(replace(jobs, sources=jobs.sources[:PACKED_IMAGES]), 256)
    yield row("the same from raw pixels, shortest side 256", packed_rates(home, raw_jobs(packed, SIDE, BATCH), rounds))
    yield row("raw 32×32 px, crop, flip", small_rates(home, small_jobs(SMALL_IMAGES, SMALL_BATCH), rounds))


# Ours, theirs, and how many times as fast ours must be; by the rows in which both take part.
BARS = {
    "JPEG → random-resized-crop 224 → flip": [
        Bar("kernel", "bare loop", 0.93),
        Bar("kernel, float32", "bare loop, float32", 0.85),
        Bar("kernel", "simplejpeg", 1.3),
        Bar("kernel", "OpenCV", 1.3),
        Bar("kernel", "Pillow", 1.3),
        Bar("kernel, float32", "simplejpeg, float32", 1.7),
    ],
    "the same from raw pixels, shortest side 256": [
        Bar("kernel", "bare loop", 0.9),
        Bar("kernel, float32", "bare loop, float32", 0.85),
        Bar("kernel", "OpenCV", 1.3),
    ],
    "raw 32×32 px, crop, flip": [Bar("kernel", "bare loop", 0.8), Bar("kernel", "numpy gather", 4.0)],
}
VERSIONS = {"simplejpeg": "simplejpeg", "OpenCV": "opencv-python-headless", "Pillow": "pillow", "numpy gather": "numpy"}


def row(title: str, found: Rates) -> Row:
    return compare(title, "images/s", [_value(name, rate) for name, rate in found.items()], BARS[title])


def _value(name: str, rate: float) -> Value:
    if name.startswith("kernel"):
        return Value(name, rate, "penstock", note=kernel.which())
    if name.startswith("bare loop"):
        return Value(name, rate, "limit", note="the same C functions in two threads, without Python")
    library = VERSIONS[name.removesuffix(", float32")]
    return Value(name, rate, "peer", versions=versions_of([library]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    cv2.setNumThreads(0)  # the threads are ours
    table = Table("kernel", options.json)
    with tempfile.TemporaryDirectory() as home:
        for found in measure(Path(home), options.rounds):
            table.add(found)


if __name__ == "__main__":
    main()
