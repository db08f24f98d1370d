"""Long videos: some recordings in one file, and hours of small frames."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np

import penstock as ps
from benchmarks.feeding import data
from benchmarks.feeding.recordings import FRAMES as FRAMES

HOURLY_FRAMES = 3600 * 2  # two frames a second
SMALL_SIDE = 64
KEY_EVERY = 250


def joined(home: Path, count: int) -> Path:
    """The packets of some recordings one after another, in one file."""
    import av

    path = home / f"recordings-{count}-joined.mp4"
    if path.exists():
        return path
    unfinished = path.with_suffix(".unfinished")
    folder, _ = data.original_videos(home)
    with av.open(str(unfinished), "w", format="mp4") as container:
        stream, shift = None, 0
        for recording in sorted(folder.glob("*.mp4"))[:count]:
            with av.open(str(recording)) as given:
                stream = stream or container.add_stream_from_template(given.streams.video[0])
                latest = shift
                for packet in given.demux(video=0):
                    if packet.size:
                        packet.pts, packet.dts, packet.stream = packet.pts + shift, packet.dts + shift, stream
                        latest = max(latest, packet.pts + packet.duration)
                        container.mux(packet)
                shift = latest
    unfinished.rename(path)
    return path


def shortened(home: Path, frames: int) -> Path:
    """The first frames of a recording, as they are."""
    import av

    path = home / f"recording-{frames}.mp4"
    if path.exists():
        return path
    unfinished = path.with_suffix(".unfinished")
    recording = sorted(data.original_videos(home)[0].glob("*.mp4"))[0]
    with av.open(str(recording)) as given, av.open(str(unfinished), "w", format="mp4") as container:
        stream = container.add_stream_from_template(given.streams.video[0])
        for packet in itertools.islice(given.demux(video=0), frames):
            packet.stream = stream
            container.mux(packet)
    unfinished.rename(path)
    return path


def mean_level(home: Path, count: int) -> float:
    """The mean level of the frames of the first recordings."""
    pack = ps.open(data.video_pack(home, "jpeg"))
    return float(np.mean([pack[index]["image"].mean() for index in range(0, count * FRAMES, 50)]))


def hours_of_video(home: Path, hours: int) -> Path:
    """Small frames, two a second, with a disc that wanders."""
    import av
    import cv2

    path = home / f"{hours}-hours.mp4"
    if path.exists():
        return path
    unfinished = path.with_suffix(".unfinished")
    options = {"g": str(KEY_EVERY), "preset": "ultrafast", "crf": "30"}
    with av.open(str(unfinished), "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=2, options=options)
        stream.width, stream.height, stream.pix_fmt = SMALL_SIDE, SMALL_SIDE, "yuv420p"
        for number in range(hours * HOURLY_FRAMES):
            frame = np.full((SMALL_SIDE, SMALL_SIDE, 3), 200, np.uint8)
            cv2.circle(frame, (number * 3 % SMALL_SIDE, number * 2 % SMALL_SIDE), 8, (60, 52, 48), -1)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())
    unfinished.rename(path)
    return path
