"""What each codec will cost for a video, measured on its own first frames before packing starts."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.images import decode_image, encode_image
from penstock.packing.options import PackOptions
from penstock.samples import Segment
from penstock.storage.writing.options import GOP_FRAMES

Pixels = NDArray[np.uint8]
CLIP_FRAMES = 11
MEASURED_RUNS = 4
LOSS = {
    "jpeg": "new artefacts, hardly visible",
    "png": "none",
    "webp": "new artefacts, hardly visible",
    "raw": "none",
    "h264": "new artefacts, finer colours lost",
}


@dataclass(frozen=True)
class Estimate:
    """The expected size of a pack, its loss, and how many random clips of 11 frames one core reads a second."""

    codec: str
    size: str
    bytes: int
    clips_per_second: float
    loss: str


def estimate_codecs(parts: tuple[Segment, ...], image: str, options: PackOptions) -> list[Estimate]:
    """One estimate for each codec, from a group of pictures of the first video; empty when it has no frames."""
    first = parts[0]
    frames = [first.decode(raw)[image] for raw in itertools.islice(first.stream(), GOP_FRAMES)]
    if not frames:
        return []
    count = sum(part.expected for part in parts)
    codecs = ["jpeg", "png", "raw"]
    if frames[0].shape[0] % 2 == 0 and frames[0].shape[1] % 2 == 0:
        codecs.append("h264")
    return [_estimate(codec, frames, count, options.quality) for codec in codecs]


def _estimate(codec: str, frames: list[Pixels], count: int, quality: int) -> Estimate:
    if codec == "h264":
        from penstock.codecs.video import decode_gop, encode_gop

        payload = encode_gop(frames, quality)
        seconds = _seconds(lambda: decode_gop(payload, len(frames)))
        # A clip that begins anywhere touches 1.8 groups of 12 on average.
        clip_seconds = seconds / len(frames) * GOP_FRAMES * (1 + (CLIP_FRAMES - 1) / GOP_FRAMES)
        frame_bytes = len(payload) / len(frames)
    else:
        payloads = [encode_image(frame, codec, quality) for frame in frames]
        frame_bytes = sum(len(payload) for payload in payloads) / len(frames)
        clip_seconds = _seconds(lambda: _decode(codec, payloads, frames[0].shape)) / len(frames) * CLIP_FRAMES
    size = f"{frames[0].shape[1]}x{frames[0].shape[0]}"
    return Estimate(codec, size, int(frame_bytes * count), 1 / clip_seconds, LOSS[codec])


def _decode(codec: str, payloads: list[bytes], shape: tuple[int, ...]) -> list[Any]:
    if codec == "raw":
        batch = np.empty((len(payloads), *shape), np.uint8)
        for number, payload in enumerate(payloads):
            batch[number] = np.frombuffer(payload, np.uint8).reshape(shape)
        return [batch]
    return [decode_image(payload) for payload in payloads]


def _seconds(work: Callable[[], Any]) -> float:
    """The CPU time of the best of some runs: the first also loads libraries and touches fresh memory."""
    times = []
    for _ in range(MEASURED_RUNS):
        start = time.thread_time()
        work()
        times.append(time.thread_time() - start)
    return max(min(times), 1e-6)
