"""What is contested: for each workload the data, who takes part, what must come out, and what Penstock must reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps
from benchmarks.feeding import data, loops
from benchmarks.feeding.contest import Expected
from benchmarks.feeding.contestants import Contestant, Entry
from benchmarks.feeding.python_work import calibrated
from benchmarks.tables import BEST_PEER, OURS, Bar
from penstock.codecs.images import decode_image

WORKERS, BATCH = 2, 64
LEVELS_APART = 6.0  # how far the mean of random crops may be from the mean of the images
RED_MEAN, RED_STD = 123.675, 58.395
CLIP_FRAMES, CLIP_BATCH, FEW_CLIPS, MANY_CLIPS = 11, 8, 48, 2048


@dataclass(frozen=True)
class Workload:
    """One row of the table."""

    title: str
    unit: str
    expected: Expected
    entries: list[Entry]
    bars: list[Bar]
    settings: dict[str, Any]
    loops: dict[str, Callable[[], Contestant]] = field(default_factory=dict)


def image_peers(layout: str) -> list[Entry]:
    """Everybody who makes training images out of JPEGs."""
    area = "resizes with an area filter; compiles before the first batch"
    peers = [
        Entry("SPDL + simplejpeg", "spdl_images", "spdl"),
        Entry("torch DataLoader + simplejpeg", "torch_images", "torch", settings={"decoder": "simplejpeg"}),
        Entry("torch DataLoader + OpenCV", "torch_images", "torch", settings={"decoder": "opencv"}),
        Entry(
            "torch DataLoader + torchvision, Pillow", "torchvision_images", "torch", note="Pillow always antialiases"
        ),
        Entry("tf.data, files", "tensorflow_images", "tensorflow", settings={"store": "files"}),
        Entry("tf.data, TFRecord", "tensorflow_images", "tensorflow", settings={"store": "tfrecord"}),
        Entry("Hugging Face datasets", "huggingface_images", "huggingface"),
        Entry("WebDataset", "webdataset_images", "webdataset", note="shuffles in a buffer"),
        Entry("Grain, threads", "grain_images", "grain"),
        Entry("LitData", "litdata_images", "litdata"),
        Entry("DALI, CPU", "dali_images", "dali", note="shuffles in a buffer"),
        Entry("FFCV", "ffcv_images", "ffcv", settings={"raw_share": 0.0}, note=area),
        Entry("FFCV, half raw", "ffcv_images", "ffcv", role="other", settings={"raw_share": 0.5}, note=area),
        Entry("MosaicML Streaming", "streaming_images", "streaming"),
    ]
    return peers if layout == "uint8" else [peer for peer in peers if peer.role == "peer"]


def images(home: Path, layout: str) -> Workload:
    """A and A2: random JPEG, random-resized-crop, flip, batch."""
    pack = data.kept_pack(home)
    ours = Entry(OURS, "penstock_images", role="penstock")
    bare = Entry("bare C loop", "", role="limit", note="the kernel in two threads, no pipeline")
    title, bars = _IMAGE_WORDS[layout]
    return Workload(
        title,
        "images/s",
        expected_images(pack, layout),
        [ours, bare, *image_peers(layout)],
        [Bar(OURS, BEST_PEER, bars[0]), Bar(OURS, "bare C loop", bars[1])],
        _settings(home, folder=str(data.jpegs(home)), pack=str(pack), layout=layout, batch=BATCH),
        {"bare C loop": lambda: loops.crops_loop(home, ps.open(pack), "u" if layout == "uint8" else "f")},
    )


_IMAGE_WORDS = {
    "uint8": ("A: random JPEG → random-resized-crop 224 → flip → batch 64, uint8", (1.3, 0.93)),
    "float32": ("A2: the same, normalised float32, channels first", (1.7, 0.85)),
}


def small_images(home: Path) -> Workload:
    """A-256: the same from smaller images, as JPEG and as raw pixels."""
    jpeg, raw = data.small_pack(home), data.raw_pack(home)
    entries = [
        Entry("Penstock, JPEG", "penstock_images", role="penstock", settings={"pack": str(jpeg)}),
        Entry("bare C loop, JPEG", "", role="limit"),
        Entry("Penstock, raw", "penstock_images", role="penstock", settings={"pack": str(raw)}),
        Entry("bare C loop, raw", "", role="limit"),
    ]
    return Workload(
        "A-256: the same, packed with a shortest side of 256 px",
        "images/s",
        expected_images(jpeg, "uint8"),
        entries,
        [Bar("Penstock, JPEG", "bare C loop, JPEG", 0.9), Bar("Penstock, raw", "bare C loop, raw", 0.8)],
        _settings(home, layout="uint8", batch=BATCH),
        {
            "bare C loop, JPEG": lambda: loops.crops_loop(home, ps.open(jpeg), "u"),
            "bare C loop, raw": lambda: loops.crops_loop(home, ps.open(raw), "U"),
        },
    )


def thumbnails(home: Path) -> Workload:
    """B: small raw images, where the work of a pipeline itself is what costs."""
    side, batch = data.THUMBNAIL_SIDE, 512
    array, pack = data.thumbnails(home), data.thumbnail_pack(home)
    pixels = np.load(array, mmap_mode="r")
    # Looked at are two rows and columns; the first is outside, and black, in four of nine crops.
    inside = ((5 / 9 + 1) / 2) ** 2
    expected = Expected(
        len(pixels), (side, side, 3), "uint8", inside * float(pixels[::50].mean()), 12.0, _label_sum(len(pixels))
    )
    entries = [
        Entry(OURS, "penstock_thumbnails", role="penstock"),
        Entry("bare C loop", "", role="limit", note="gather, crop, flip in two threads"),
        Entry("numpy vectorised, threads", "numpy_thumbnails", role="limit", note="no pipeline"),
        Entry("FFCV", "ffcv_thumbnails", "ffcv"),
        Entry("torch DataLoader, batched", "torch_thumbnails", "torch", settings={"whole_batches": True}),
        Entry("torch DataLoader, per sample", "torch_thumbnails", "torch", settings={"whole_batches": False}),
        Entry("tf.data", "tensorflow_thumbnails", "tensorflow"),
    ]
    return Workload(
        "B: 60,000 raw 32×32×3 → crop with padding 4 → flip → batch 512",
        "images/s",
        expected,
        entries,
        [Bar(OURS, BEST_PEER, 4.0)],
        _settings(home, array=str(array), pack=str(pack), batch=batch),
        {"bare C loop": lambda: loops.thumbnails_loop(home, ps.open(pack), side, batch)},
    )


def clips(home: Path) -> Workload:
    """C: random clips from packs of frames, and by seeking in the original videos."""
    jpeg, raw = str(data.video_pack(home, "jpeg")), str(data.video_pack(home, "raw"))
    folder, frames = data.original_videos(home)
    few = {"count": FEW_CLIPS}
    seeking = [
        Entry(f"seeking in the original, {name}", "seeking_clips", "video", settings={**few, "library": library})
        for name, library in (("PyAV", "pyav"), ("OpenCV", "opencv"), ("torchcodec", "torchcodec"))
    ]
    entries = [
        Entry("Penstock, JPEG", "penstock_clips", role="penstock", settings={"pack": jpeg}),
        Entry("bare Arrow loop, JPEG", "arrow_clips", role="limit", settings={"pack": jpeg}),
        Entry("Penstock, raw", "penstock_clips", role="penstock", settings={"pack": raw}),
        Entry("bare Arrow loop, raw", "arrow_clips", role="limit", settings={"pack": raw}),
        Entry("JPEG in HDF5", "hdf5_clips", "video", role="other", settings={"pack": jpeg}),
        *seeking,
    ]
    shape = (CLIP_FRAMES, 224, 224, 3)
    return Workload(
        "C: random clips of 11 frames, 224×224, batch 8",
        "clips/s",
        Expected(MANY_CLIPS, shape, "uint8", _mean_of(ps.open(jpeg)), 3 * LEVELS_APART),
        entries,
        [
            Bar("Penstock, JPEG", BEST_PEER, 45.0),
            Bar("Penstock, JPEG", "bare Arrow loop, JPEG", 0.95),
            Bar("Penstock, raw", "bare Arrow loop, raw", 0.5),
        ],
        _settings(
            home,
            videos=str(folder),
            video_frames=frames,
            frames=CLIP_FRAMES,
            count=MANY_CLIPS,
            batch=CLIP_BATCH,
        ),
    )


def python_function(home: Path) -> Workload:
    """A user's own function that holds the GIL for five milliseconds."""
    array, pack, count, batch = data.thumbnails(home), data.thumbnail_pack(home), 800, 16
    pixels = np.load(array, mmap_mode="r")[:count]
    entries = [
        Entry(OURS, "penstock_python", role="penstock", note="executor='auto'"),
        Entry("torch DataLoader, 2 processes", "torch_python", "torch"),
        Entry("plain loop, one core", "plain_python", role="limit"),
    ]
    return Workload(
        "own Python function in map that holds the GIL, 5 ms each",
        "samples/s",
        Expected(count, pixels.shape[1:], "uint8", float(pixels.mean()), 12.0, _label_sum(count)),
        entries,
        [Bar(OURS, BEST_PEER, 0.95)],
        _settings(home, array=str(array), pack=str(pack), count=count, batch=batch, rounds=calibrated()),
    )


def _settings(home: Path, **more: Any) -> dict[str, Any]:
    return {"home": str(home), "workers": WORKERS, **more}


def _label_sum(count: int) -> int:
    return int((np.arange(count) % data.CLASSES).sum())


def _mean_of(pack: ps.Pack) -> float:
    """The mean level of some images of a pack."""
    indices = range(0, len(pack), max(1, len(pack) // 200))
    return float(np.mean([decode_image(pack.read(index).data).mean() for index in indices]))


def expected_images(path: Path, layout: str) -> Expected:
    """What training images of a pack of photographs look like."""
    pack = ps.open(path)
    mean, labels = _mean_of(pack), _label_sum(len(pack))
    if layout == "uint8":
        return Expected(len(pack), (224, 224, 3), "uint8", mean, LEVELS_APART, labels)
    # The few pixels that are looked at are of the red channel here.
    normalised = (mean - RED_MEAN) / RED_STD
    return Expected(len(pack), (3, 224, 224), "float32", normalised, LEVELS_APART / RED_STD, labels)


WORKLOADS: dict[str, Callable[[Path], Workload]] = {
    "A": lambda home: images(home, "uint8"),
    "A2": lambda home: images(home, "float32"),
    "A256": small_images,
    "B": thumbnails,
    "C": clips,
    "gil": python_function,
}
