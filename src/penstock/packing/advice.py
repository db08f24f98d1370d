"""What a user wants to know before packing takes time: warnings about the data, and a codec that suits them better."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from penstock.errors import SHOWN_PROBLEMS, PenstockError
from penstock.geometry import parse_size
from penstock.geometry.frame_sizes import LEGAL_STEP, is_legal, nearest_legal
from penstock.packing.estimating import Estimate, estimate_codecs
from penstock.packing.options import PackOptions
from penstock.samples import Segment, Store
from penstock.storage.writing.options import AUTO


def tell_before(source: Store, options: PackOptions) -> None:
    """Warnings and advice on stderr."""
    for text in [*warnings_of(source), *_codec_lines(source, options)]:
        print(f"penstock: {text}", file=sys.stderr, flush=True)


def warnings_of(source: Store) -> list[str]:
    """The first warnings about a source, how many more there are, and that its frames have a size no network takes."""
    warnings = [f"warning: {problem}" for problem in source.problems() if problem.warning]
    more = len(warnings) - SHOWN_PROBLEMS
    told = [*warnings[:SHOWN_PROBLEMS], *([f"… and {more:,} more; penstock check lists all."] if more > 0 else [])]
    return [*told, *_illegal_size(source)]


def _illegal_size(source: Store) -> list[str]:
    """That training on frames of this size needs another one; said before hours of packing."""
    if not _is_video(source):  # only frames of videos are brought to a size by their source
        return []
    size = source.made_from().get("size")
    width, height = parse_size(size) if size is not None else (LEGAL_STEP, LEGAL_STEP)
    if is_legal(width, height):
        return []
    near = f"{nearest_legal(width)}x{nearest_legal(height)}"
    what = f"warning: frames of {width}x{height} have sides that are not multiples of {LEGAL_STEP}"
    needed = f"which networks for behaviours need: size='{near}' is the nearest, or set task.image_size in training."
    return [f"{what}, {needed}"]


def _is_video(source: Store) -> bool:
    return source.parts is not None and "frame" in source.schema


def codec_estimates(source: Store, options: PackOptions) -> list[Estimate]:
    """What each codec would cost for the frames of a source; empty where none can be had: packing says why."""
    parts, image = readable_parts(source), source.schema.image
    try:
        return estimate_codecs(parts, image.name, options) if parts and image is not None else []
    except PenstockError:
        return []


def readable_parts(source: Store) -> tuple[Segment, ...]:
    """The videos that can be opened; what is wrong with the others, packing says, all at once."""
    return tuple(part for part in source.parts or () if _is_readable(part))


def _is_readable(part: Segment) -> bool:
    try:
        return part.expected > 0
    except PenstockError:
        return False


def better_codec(estimates: Sequence[Estimate], chosen: str) -> str:
    """That a codec without loss is smaller than the chosen one, as it is for drawn or very plain pictures; or nothing.

    It is not chosen by itself: it is read more slowly, and what the first frames are like may not hold for the others.
    """
    by_name = {estimate.codec: estimate for estimate in estimates}
    png, own = by_name.get("png"), by_name.get(chosen)
    if png is None or own is None or own.loss == png.loss or png.bytes > own.bytes:
        return ""
    speed = png.clips_per_second / own.clips_per_second
    slower = f", and is read {speed:.1f} × as fast" if speed < 0.95 else ""
    return f"png is smaller than {chosen} here ({png.bytes / own.bytes:.0%}) and loses nothing{slower}: codec='png'"


def _codec_lines(source: Store, options: PackOptions) -> list[str]:
    """Advice for frames whose codec nobody chose."""
    if options.codec != AUTO or not _is_video(source):
        return []
    found = better_codec(codec_estimates(source, options), source.default_codec)
    return [f"{found}."] if found else []
