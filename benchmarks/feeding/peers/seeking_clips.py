"""Clips out of the original videos, in threads: seek, decode from the key frame on, resize; three libraries."""

from __future__ import annotations

import json
import random
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from benchmarks.feeding.protocol import Batches, Epoch, Settings, serve

SIDE = 224
PACKAGES = {"pyav": "av", "opencv": "opencv-python-headless", "torchcodec": "torchcodec"}
Read = Callable[[int, int], Any]  # first frame and number of frames of a video


def small(frame: Any) -> Any:
    return cv2.resize(frame, (SIDE, SIDE), interpolation=cv2.INTER_LINEAR)


def with_opencv(path: str) -> Read:
    capture = cv2.VideoCapture(path, cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1])

    def read(start: int, count: int) -> Any:
        capture.set(cv2.CAP_PROP_POS_FRAMES, start)
        return np.stack([small(capture.read()[1])[..., ::-1] for _ in range(count)])

    return read


def with_pyav(path: str) -> Read:
    import av
    from av.video.reformatter import VideoReformatter

    container, reformatter = av.open(path), VideoReformatter()
    stream = container.streams.video[0]
    stream.thread_type = "NONE"  # the threads are those of the loop
    ticks = round(1 / (stream.average_rate * stream.time_base))

    def read(start: int, count: int) -> Any:
        container.seek(start * ticks, stream=stream)
        frames: list[Any] = []
        for frame in container.decode(stream):
            if frame.pts >= start * ticks:
                frames.append(reformatter.reformat(frame, width=SIDE, height=SIDE, format="rgb24").to_ndarray())
            if len(frames) == count:
                break
        return np.stack(frames)

    return read


def with_torchcodec(path: str) -> Read:
    from torchcodec.decoders import VideoDecoder

    decoder = VideoDecoder(path, dimension_order="NHWC", num_ffmpeg_threads=1)

    def read(start: int, count: int) -> Any:
        frames = decoder.get_frames_in_range(start, start + count).data.numpy()
        return np.stack([small(frame) for frame in frames])

    return read


OPENERS = {"pyav": with_pyav, "opencv": with_opencv, "torchcodec": with_torchcodec}


def build(settings: Settings) -> Epoch:
    cv2.setNumThreads(0)
    paths = sorted(str(path) for path in Path(settings["videos"]).glob("*.mp4"))
    per_video, length, batch = settings["video_frames"] // len(paths), settings["frames"], settings["batch"]
    opened = threading.local()

    def reader(number: int) -> Read:
        readers: dict[int, Read] = opened.__dict__
        if number not in readers:
            readers[number] = OPENERS[settings["library"]](paths[number])
        return readers[number]

    def make(places: list[tuple[int, int]]) -> tuple[Any, Any]:
        clips = np.stack([reader(video)(start, length) for video, start in places])
        return clips, np.array([start for _, start in places])

    def epoch_of(epoch: int) -> Batches:
        rng = random.Random(epoch)
        places = [(rng.randrange(len(paths)), rng.randrange(per_video - length)) for _ in range(settings["count"])]
        parts = [places[first : first + batch] for first in range(0, len(places), batch)]
        with ThreadPoolExecutor(settings["workers"]) as pool:
            yield from pool.map(make, parts)

    return epoch_of


if __name__ == "__main__":
    serve([PACKAGES[json.loads(sys.argv[1])["library"]]], build)
