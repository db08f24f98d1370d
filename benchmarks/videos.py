"""Long-GOP videos like those of a lab, and the bare loop that no packer of frames can do without."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cv2
import numpy as np

from benchmarks.pictures import picture
from penstock.codecs.images import DEFAULT_QUALITY

RATE = 30
FILES = 6


def write(folder: Path, minutes: int) -> int:
    """Six H.264 files of 640×480, GOP 250, together so many minutes; returns the number of frames."""
    frames = minutes * 60 * RATE // FILES
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(FILES):
        path = folder / f"mouse_{number}.mp4"
        if not path.exists():
            _write_one(path, number, frames)
    return frames * FILES


def _write_one(path: Path, seed: int, frames: int) -> None:
    import av

    floor = picture(seed, 640, 480)
    rng = np.random.default_rng(seed)
    x, y = 320.0, 240.0
    unfinished = path.with_suffix(".unfinished")
    with av.open(str(unfinished), "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=RATE, options={"g": "250", "preset": "veryfast", "crf": "23"})
        stream.width, stream.height, stream.pix_fmt = 640, 480, "yuv420p"
        for _ in range(frames):
            x, y = np.clip([x + rng.normal(0, 5), y + rng.normal(0, 5)], 40, [600, 440])
            frame = floor.copy()
            cv2.ellipse(frame, (int(x), int(y)), (34, 18), 0, 0, 360, (60, 52, 48), -1)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())
    unfinished.rename(path)


def bare_loop(folder: Path, size: tuple[int, int]) -> int:
    """Decode, resize and encode every file, one file a thread on every core; nothing is written."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return sum(pool.map(lambda path: _bare_file(path, size), sorted(folder.glob("*.mp4"))))


_local = threading.local()


def _bare_file(path: Path, size: tuple[int, int]) -> int:
    import av
    import simplejpeg
    from av.video.reformatter import VideoReformatter

    if not hasattr(_local, "reformatter"):
        _local.reformatter = VideoReformatter()
    written = 0
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.thread_type = "NONE"
        for frame in container.decode(stream):
            small = _local.reformatter.reformat(frame, width=size[0], height=size[1], format="rgb24")
            pixels = small.to_ndarray()
            written += len(simplejpeg.encode_jpeg(pixels, quality=DEFAULT_QUALITY, colorsubsampling="420"))
    return written
