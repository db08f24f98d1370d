"""Every frame of some videos in order, at 224×224: two videos side by side, or one with the threads of its decoder."""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.feeding.protocol import Batches, Epoch, Settings, serve

SIDE, BLOCK = 224, 64
PACKAGES = {"pyav": "av", "opencv": "opencv-python-headless", "torchcodec": "torchcodec", "decord": "decord"}
Open = Callable[[str, int], Iterator[Any]]  # a file and the threads of its decoder


def small(frame: Any) -> Any:
    import cv2

    return cv2.resize(frame, (SIDE, SIDE), interpolation=cv2.INTER_LINEAR)


def with_opencv(path: str, threads: int) -> Iterator[Any]:
    import cv2

    cv2.setNumThreads(threads)
    capture = cv2.VideoCapture(path, cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, threads])
    while True:
        is_there, frame = capture.read()
        if not is_there:
            return
        yield cv2.cvtColor(small(frame), cv2.COLOR_BGR2RGB)


def with_pyav(path: str, threads: int) -> Iterator[Any]:
    import av
    from av.video.reformatter import VideoReformatter

    reformatter = VideoReformatter()
    with av.open(path) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO" if threads > 1 else "NONE"
        for frame in container.decode(stream):
            yield reformatter.reformat(frame, width=SIDE, height=SIDE, format="rgb24").to_ndarray()


def with_torchcodec(path: str, threads: int) -> Iterator[Any]:
    from torchcodec.decoders import VideoDecoder

    decoder = VideoDecoder(path, dimension_order="NHWC", num_ffmpeg_threads=threads)
    for start in range(0, len(decoder), BLOCK):
        for frame in decoder.get_frames_in_range(start, min(start + BLOCK, len(decoder))).data.numpy():
            yield small(frame)


def with_decord(path: str, threads: int) -> Iterator[Any]:
    import decord

    reader = decord.VideoReader(path, width=SIDE, height=SIDE, num_threads=threads)
    for number in range(len(reader)):
        yield reader[number].asnumpy()


OPENERS: dict[str, Open] = {
    "pyav": with_pyav,
    "opencv": with_opencv,
    "torchcodec": with_torchcodec,
    "decord": with_decord,
}


def blocks(path: str, open_video: Open, threads: int) -> Iterator[Any]:
    """Frames in arrays, as a network would be given them."""
    block, count = np.empty((BLOCK, SIDE, SIDE, 3), np.uint8), 0
    for frame in open_video(path, threads):
        block[count] = frame
        count += 1
        if count == BLOCK:
            yield block
            block, count = np.empty_like(block), 0
    if count:
        yield block[:count]


def side_by_side(paths: list[str], open_video: Open, streams: int) -> Iterator[Any]:
    """As many videos at a time as there are streams, each decoded by one thread."""
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    for path in paths:
        waiting.put(path)
    made: queue.Queue[Any] = queue.Queue(4 * streams)

    def decode() -> None:
        while not waiting.empty():
            for block in blocks(waiting.get(), open_video, 1):
                made.put(block)
        made.put(None)

    for _ in range(streams):
        threading.Thread(target=decode, daemon=True).start()
    running = streams
    while running:
        block = made.get()
        running -= block is None
        if block is not None:
            yield block


def build(settings: Settings) -> Epoch:
    open_video, streams = OPENERS[settings["library"]], settings["streams"]

    def epoch_of(_: int) -> Batches:
        if streams > 1:
            made = side_by_side(settings["paths"], open_video, streams)
        else:
            made = (block for path in settings["paths"] for block in blocks(path, open_video, os.cpu_count() or 1))
        for block in made:
            yield block, np.zeros(len(block), np.int64)

    return epoch_of


if __name__ == "__main__":
    serve([PACKAGES[json.loads(sys.argv[1])["library"]]], build)
