"""Small videos for tests: every frame shows its own number, so that a wrong frame cannot pass for the right one."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT = 96, 64


def numbered_frame(number: int, *, width: int = WIDTH, height: int = HEIGHT) -> NDArray[np.uint8]:
    """Eight grey bars, white where the number has a 1, on a coloured ramp that moves a little."""
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[:, :, 0] = np.linspace(40, 200, width).astype(np.uint8)[None]
    pixels[:, :, 1] = np.linspace(200, 40, height).astype(np.uint8)[:, None]
    pixels[:, :, 2] = (number * 3) % 200 + 20
    for bit in range(8):
        left = bit * width // 8
        pixels[: height // 2, left : left + width // 8] = 235 if number >> bit & 1 else 20
    return pixels


def number_shown(pixels: NDArray[np.uint8]) -> int:
    """The number that a frame shows, at any size."""
    height, width = pixels.shape[:2]
    middles = [(2 * bit + 1) * width // 16 for bit in range(8)]
    return sum((int(pixels[height // 4, middle].mean()) > 128) << bit for bit, middle in enumerate(middles))


def write_video(
    path: Path,
    count: int = 40,
    *,
    codec: str = "libx264",
    pixel_format: str = "yuv420p",
    options: dict[str, str] | None = None,
    rate: int = 25,
    milliseconds: Sequence[int] | None = None,
    size: tuple[int, int] = (WIDTH, HEIGHT),
) -> Path:
    """Write numbered frames; `milliseconds` gives each its time for a variable frame rate."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=rate, options=options or {})
        stream.width, stream.height = size
        stream.pix_fmt = pixel_format
        if milliseconds is not None:
            stream.time_base = stream.codec_context.time_base = Fraction(1, 1000)
        for number in range(count):
            pixels = numbered_frame(number, width=size[0], height=size[1])
            frame = av.VideoFrame.from_ndarray(pixels).reformat(format=pixel_format)
            if milliseconds is not None:
                frame.pts, frame.time_base = milliseconds[number], Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def packet_places(path: Path) -> list[tuple[int, int]]:
    """Where each packet lies in a file, and how long it is."""
    with av.open(str(path)) as container:
        return [(packet.pos, packet.size) for packet in container.demux(video=0) if packet.size]


def damage_packets(path: Path, numbers: Sequence[int]) -> None:
    """Overwrite the content of some packets with zeros."""
    data = bytearray(path.read_bytes())
    for place, size in (packet_places(path)[number] for number in numbers):
        data[place + 4 : place + size] = bytes(size - 4)
    path.write_bytes(data)


def turn_clockwise(path: Path) -> None:
    """Tell players to turn the picture by 90° clockwise, as a phone held upright does."""
    data = bytearray(path.read_bytes())
    track = data.index(b"tkhd")
    upright = b"\0\1\0\0" + bytes(12) + b"\0\1\0\0"
    place = data.index(upright, track)
    data[place : place + 20] = bytes(4) + b"\0\1\0\0" + bytes(4) + b"\xff\xff\0\0" + bytes(4)
    path.write_bytes(data)


def with_index_first(path: Path) -> Path:
    """The same packets with the table of contents in front, as cameras that stream write it."""
    target = path.with_stem("index_first")
    with av.open(str(path)) as given, av.open(str(target), "w", options={"movflags": "faststart"}) as container:
        stream = container.add_stream_from_template(given.streams.video[0])
        for packet in given.demux(video=0):
            if packet.size:
                packet.stream = stream
                container.mux(packet)
    return target


def cut_off(path: Path, packet: int, behind: int = 0) -> None:
    """End a file so many bytes behind where a packet begins."""
    path.write_bytes(path.read_bytes()[: packet_places(path)[packet][0] + behind])
