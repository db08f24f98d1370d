"""PyAV behind one module: opening a video, its frames as RGB, and closed GOPs of H.264 for packs.

Frames become RGB in one step, which also changes the size: area along a side that shrinks, bilinear along one that
grows. The kernel does it for planar YUV of 8 bits that shrinks and is not turned (`kernel/reducing.py`), where a trial
has shown that it agrees with swscale about the file (`siting.py`). All else, and everything where the kernel is not
built, goes through swscale by way of planar RGB with full chroma, its one path that is both fast and unbiased: 1.9
times the rate of its packed RGB with full chroma, and 9 dB better than that without. Kernel and swscale differ by at
most two levels of 255, and by 65 dB or more.

On 640×480 to 224×224 swscale runs at 7 times the rate of RGB at full size and OpenCV's INTER_AREA, and the kernel at
1.3 times that of swscale. Both differ from that, done in floating point with chroma where it lies, by 54 dB and
without bias (the full-size integer path has one of −1.1 levels).

| the file says                | is taken as                                                        |
|------------------------------|--------------------------------------------------------------------|
| matrix BT.601, 709, 2020 …   | that                                                               |
| no matrix                    | BT.709 when wider than 1279 or higher than 576 px, else BT.601     |
| full or limited range        | that; limited when it says nothing                                 |
| turned by 90, 180, 270°      | turned upright (phones)                                            |
"""

from __future__ import annotations

import contextlib
import errno
import functools
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.headers import UnreadableImage
from penstock.codecs.kernel.reducing import Look, Siting, reduced_planes, reduction_of
from penstock.codecs.opencv import opencv
from penstock.errors import OptionError, require
from penstock.geometry import Window
from penstock.storage.plain_files import open_file, refuse_special
from penstock.wording import counted

if TYPE_CHECKING:
    from types import ModuleType

Pixels = NDArray[np.uint8]
Frame = Any  # av.VideoFrame, which has no types of its own where av is not installed

# Numbers of ISO/IEC 23091-2, as FFmpeg uses them.
_BT709, _UNSPECIFIED, _BT601 = 1, 2, 5
_LIMITED, _FULL = 1, 2
_HD_WIDTH, _SD_HEIGHT = 1280, 576
_SLICE_TYPES = frozenset({1, 5})
_KEPT_TYPES = frozenset({1, 5, 7, 8})


# Containers that hold their own frames. Playlists (HLS, DASH, concat, SDP) name other files and addresses; texts and
# pictures are no videos. These names are those of FFmpeg's demuxers, each of which may have several.
_CONTAINERS = (
    *("mov", "mp4", "m4a", "3gp", "3g2", "mj2", "matroska", "webm", "avi", "asf", "mpegts", "mpeg", "mpegvideo", "flv"),
    *("ogg", "m4v", "h264", "hevc", "vvc", "av1", "obu", "ivf", "mjpeg", "mjpeg_2000", "nut", "mxf", "dv", "wtv", "rm"),
    *("yuv4mpegpipe", "gif", "apng", "swf", "vc1", "h263", "h261", "cine", "r3d", "lxf", "gxf", "nsv", "live_flv"),
)
_FFMPEG_OPTIONS = {"protocol_whitelist": "file", "format_whitelist": ",".join(_CONTAINERS)}


class UnreadableVideo(UnreadableImage):
    """A file or some bytes are not video that can be read; the text is the short reason."""


class Opened(NamedTuple):
    """An open file and its video stream; `container` is closed by whoever opened it."""

    container: Any
    stream: Any


class _PerThread(threading.local):
    """swscale contexts and crop graphs are costly to make and belong to one thread."""

    def __init__(self) -> None:
        self.made: dict[tuple[Any, ...], Any] = {}

    def get(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """What was made for this key, or made now; only a few are kept."""
        found = self.made.get(key)
        if found is None:
            if len(self.made) >= _KEPT_CONTEXTS:
                self.made.clear()
            found = self.made[key] = make()
        return found


# One for each size of video in a set, there and back; each holds a few megabytes.
_KEPT_CONTEXTS = 16
_kept = _PerThread()

_AVX512 = 13  # as OpenCV numbers what processors can do


def pyav() -> ModuleType:
    return require("av", "video", "Reading videos")


def open_video(path: Path, *, parallel: bool) -> Opened:
    """Open a file for decoding, with FFmpeg's own threads (for reading in order) or without (for seeking)."""
    av = pyav()
    try:
        refuse_special(path)
        if path.stat().st_size == 0:
            raise UnreadableVideo("the file is empty")
        # An absolute path after `file:`, because FFmpeg takes 2024-01-01T12:30:00.mp4 as a protocol and http:/… as one
        # to ask. Tags in other encodings than UTF-8 are of no interest.
        container = av.open(f"file:{path.absolute()}", options=_FFMPEG_OPTIONS, metadata_errors="ignore")
    except (av.error.FFmpegError, OSError, UnicodeDecodeError) as error:
        raise UnreadableVideo(_not_opened(path, error)) from error
    stream = container.streams.best("video")
    # A stream of a codec that FFmpeg does not know has no size at all.
    if stream is None or not getattr(stream, "width", 0) or not getattr(stream, "height", 0):
        container.close()
        raise UnreadableVideo("it has no video stream" if stream is None else "its video stream has no frame size")
    stream.codec_context.thread_type = "AUTO" if parallel else "SLICE"
    if not parallel:
        stream.codec_context.thread_count = 1
    return Opened(container, stream)


def _not_opened(path: Path, error: Exception) -> str:
    """Why a file was not opened; FFmpeg does not say that a playlist is one."""
    with contextlib.suppress(OSError), open_file(path) as file:
        start = file.read(512).lstrip(b"\xef\xbb\xbf \r\n\t")
        if start.startswith((b"#EXTM3U", b"ffconcat", b"v=0")) or b"<MPD" in start:
            return "it is a playlist, which names other files or servers; name the videos themselves"
    if getattr(error, "errno", None) == errno.EINVAL:  # what FFmpeg says of a container that is not in the list
        return "it is not a video (expected MP4, Matroska, AVI or another video container)"
    return f"it cannot be opened as a video ({_reason(error)})"


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)


def display_size(frame: Frame) -> tuple[int, int]:
    """Width and height as a player shows the frame, after turning it upright."""
    if frame.rotation % 180:
        return frame.height, frame.width
    return frame.width, frame.height


def frame_to_rgb(
    frame: Frame, window: Window, size: tuple[int, int], *, out: Pixels | None = None, siting: Siting | None = None
) -> Pixels:
    """A window of the upright frame as RGB of this size (width, height); the GIL is released for the work.

    With `out`, contiguous and of that size, the pixels are written there. With `siting` (see penstock.codecs.siting)
    the kernel may do it.
    """
    turns = frame.rotation // 90 % 4
    reduction = None if siting is None or turns else reduction_of(_look_of(frame), siting, window, size)
    if reduction is not None:
        pixels = reduced_planes(frame.planes, reduction, out)
        if pixels is not None:
            return pixels
    part = _cropped(frame, _coded_window(window, frame, turns))
    width, height = size if turns % 2 == 0 else size[::-1]
    planar = _reformatted(part, width, height)
    if not turns:
        return _interleaved(planar, out)
    upright = np.rot90(_interleaved(planar, None), turns)
    if out is None:
        return np.ascontiguousarray(upright)
    out[:] = upright
    return out


def _reformatted(frame: Frame, width: int, height: int) -> Frame:
    key = (frame.width, frame.height, frame.format.name, width, height)
    return _kept.get(key, _reformatter).reformat(
        frame, width, height, "gbrp", src_colorspace=_assumed_matrix(frame), interpolation=_flags(), threads=1
    )


def _reformatter() -> Any:
    from av.video.reformatter import VideoReformatter

    return VideoReformatter()


@functools.cache
def _flags() -> int:
    """How swscale resizes; joining its flags anew for every frame would cost as much as a small frame."""
    from av.video.reformatter import Interpolation

    return int(Interpolation.AREA | Interpolation.ACCURATE_RND | Interpolation.FULL_CHR_H_INT)


def _interleaved(frame: Frame, out: Pixels | None) -> Pixels:
    """Planar RGB as H×W×3; OpenCV does it faster than PyAV and without the GIL."""
    green, blue, red = (
        np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)[: frame.height, : frame.width]
        for plane in frame.planes
    )
    pixels: Pixels = opencv().merge((red, green, blue), out)
    return pixels


def _look_of(frame: Frame) -> Look:
    return Look(frame.format.name, _assumed_matrix(frame) or frame.colorspace, frame.color_range)


def _assumed_matrix(frame: Frame) -> int | None:
    """What a file means that does not name its matrix, as players decide it; None where it names one."""
    if frame.colorspace != _UNSPECIFIED:
        return None
    return _BT709 if frame.width >= _HD_WIDTH or frame.height > _SD_HEIGHT else _BT601


def _coded_window(window: Window, frame: Frame, turns: int) -> Window:
    """A window of the upright picture in the axes that the frame is stored in; rot90(stored, turns) is upright."""
    x, y, width, height = window
    if turns == 1:
        return Window(frame.width - y - height, x, height, width)
    if turns == 2:
        return Window(frame.width - x - width, frame.height - y - height, width, height)
    if turns == 3:
        return Window(y, frame.height - x - width, height, width)
    return window


def _cropped(frame: Frame, window: Window) -> Frame:
    """A window without copying; odd corners of subsampled video keep luma exact and move chroma by half a pixel."""
    if window == (0, 0, frame.width, frame.height):
        return frame
    if window.x + window.width > frame.width or window.y + window.height > frame.height:
        size = f"{frame.width}×{frame.height} px"
        raise UnreadableVideo(f"a frame has {size}, and {window.width}×{window.height} px of it were expected")
    key = (frame.width, frame.height, frame.format.name, *window)
    try:
        graph = _kept.get(key, lambda: _crop_graph(frame, window))
        graph.push(frame)
        return graph.pull()
    except pyav().error.FFmpegError as error:  # such as a window of no pixels, by a damaged header
        what = f"{window.width}×{window.height} px of a frame of {frame.width}×{frame.height} px"
        raise UnreadableVideo(f"{what} cannot be cut out ({error.strerror})") from error


def _crop_graph(frame: Frame, window: Window) -> Any:
    from av.filter import Graph

    graph = Graph()
    # A crop does not look at the clock, but FFmpeg wants one, and the last frames of a decoder come without.
    clock = Fraction(1, 1000)
    entry = graph.add_buffer(width=frame.width, height=frame.height, format=frame.format, time_base=clock)
    crop = graph.add("crop", f"{window.width}:{window.height}:{window.x}:{window.y}:exact=1")
    leave = graph.add("buffersink")
    entry.link_to(crop)
    crop.link_to(leave)
    graph.configure()
    return graph


def frame_checksum(frame: Frame) -> int:
    """A checksum of the decoded pixels, without the padding that FFmpeg leaves at the end of each line."""
    import xxhash

    state = xxhash.xxh3_64()
    bits = frame.format.padded_bits_per_pixel
    for plane in frame.planes:
        pixel_bytes = -(-bits // 8) if len(frame.planes) == 1 else 1 + (frame.format.components[0].bits > 8)
        lines = np.frombuffer(plane, np.uint8)[: plane.height * plane.line_size].reshape(-1, plane.line_size)
        state.update(np.ascontiguousarray(lines[:, : plane.width * pixel_bytes]).data)
    return int(state.intdigest())


def crf_of(quality: int) -> float:
    """x264's rate factor for a quality of 1 to 100: 18 at 95, the default, and 0.6 more for each step below.

    18 is where most people see no difference; 6 more halves the bytes.
    """
    if not 1 <= quality <= 100:
        raise OptionError(f"quality={quality} must be from 1 to 100.")
    return min(51.0, 18 + 0.6 * (95 - quality))


def check_even(width: int, height: int) -> None:
    """H.264 with 4:2:0 chroma has no odd sides."""
    if width % 2 or height % 2:
        even = f"{width + width % 2}x{height + height % 2}"
        raise OptionError(f"codec h264 needs even sides, and the frames are {width}x{height}. Use size={even!r}.")


def encode_gop(frames: Sequence[Pixels], quality: int) -> bytes:
    """One closed GOP as H.264 Annex B: an IDR frame and P frames; the bytes depend on nothing but the arguments."""
    av = pyav()

    height, width = frames[0].shape[:2]
    check_even(width, height)
    encoder = av.CodecContext.create("libx264", "w")
    encoder.width, encoder.height, encoder.pix_fmt = width, height, "yuv420p"
    encoder.time_base = Fraction(1, 30)
    encoder.colorspace, encoder.color_range = _BT601, _LIMITED
    encoder.thread_count = 1
    encoder.options = {
        "preset": "veryfast",  # beside `fast`: 3 % more bytes at 1.8 times the rate
        "crf": f"{crf_of(quality):.1f}",
        "x264-params": f"keyint={len(frames)}:min-keyint={len(frames)}:scenecut=0:bframes=0:slices=1:"
        # Chroma lies where swscale puts it: in the centre.
        f"threads=1:lookahead-threads=1:open-gop=0:chromaloc=1{_instructions()}",
    }
    packets = [packet for frame in frames for packet in encoder.encode(_to_yuv(frame))]
    packets += encoder.encode(None)
    return b"".join(_units(b"".join(bytes(packet) for packet in packets), _KEPT_TYPES))


@functools.cache
def _instructions() -> str:
    """x264's code for AVX-512 gives other bytes now and then where several threads encode; that for AVX2 does not."""
    return ":asm=avx2" if opencv().checkHardwareSupport(_AVX512) else ""


def _to_yuv(pixels: Pixels) -> Frame:
    av = pyav()
    from av.video.reformatter import Interpolation, VideoReformatter

    height, width = pixels.shape[:2]
    return _kept.get((width, height, "yuv420p"), VideoReformatter).reformat(
        av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels), "rgb24"),
        format="yuv420p",
        dst_colorspace=_BT601,
        src_color_range=_FULL,
        dst_color_range=_LIMITED,
        # Bicubic keeps 5 dB more than area when chroma is halved here and doubled again on the way back.
        interpolation=Interpolation.BICUBIC | Interpolation.ACCURATE_RND | Interpolation.FULL_CHR_H_INP,
        threads=1,
    )


def decode_gop(data: bytes | memoryview, count: int) -> list[Pixels]:
    """The frames of a GOP of `count` frames, as RGB."""
    av = pyav()

    decoder = av.CodecContext.create("h264", "r")
    decoder.thread_count = 1
    try:
        frames = [frame for packet in _access_units(bytes(data)) for frame in decoder.decode(av.Packet(packet))]
        frames += decoder.decode(None)
    except av.error.FFmpegError as error:
        raise UnreadableVideo(f"the H.264 data cannot be decoded ({_reason(error)})") from error
    if len(frames) != count or any(frame.is_corrupt for frame in frames):
        raise UnreadableVideo(f"the H.264 data is damaged: {len(frames)} decode of {counted(count, 'frame')}")
    return [_whole_rgb(frame) for frame in frames]


def _whole_rgb(frame: Frame) -> Pixels:
    return frame_to_rgb(frame, Window(0, 0, frame.width, frame.height), (frame.width, frame.height))


def _units(stream: bytes, kept: frozenset[int]) -> Iterator[bytes]:
    """The NAL units of an Annex B stream, each with its start code; x264's text about itself (type 6) is not kept."""
    starts = [match.start() for match in re.finditer(rb"\x00?\x00\x00\x01", stream)]
    for start, end in zip(starts, [*starts[1:], len(stream)], strict=True):
        unit = stream[start:end]
        if _unit_type(unit) in kept:
            yield unit


def _unit_type(unit: bytes) -> int:
    return unit[unit.index(1) + 1] & 0x1F


def _access_units(stream: bytes) -> Iterator[bytes]:
    """One piece for each frame: parameter sets stay with the slice after them, and a frame has one slice."""
    pending = b""
    for unit in _units(stream, _KEPT_TYPES):
        pending += unit
        if _unit_type(unit) in _SLICE_TYPES:
            yield pending
            pending = b""
