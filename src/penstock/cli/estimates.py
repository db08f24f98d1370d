"""The table that `pack videos` prints before it starts: what each codec would cost."""

from __future__ import annotations

from typing import Any

from penstock.errors import PenstockError
from penstock.packing.estimating import Estimate, estimate_codecs
from penstock.packing.options import AUTO, PackOptions
from penstock.reporting.packs import readable_bytes
from penstock.samples import Part


def video_choices(source: Any, codec: str, quality: int) -> str:
    """Size, speed and loss of every codec, with the chosen one marked; empty where no frame can be had."""
    chosen = source.default_codec if codec == AUTO else codec
    parts = tuple(part for part in source.parts if _readable(part))
    estimates = _estimates(parts, source.schema.image.name, PackOptions(quality=quality))
    if not estimates:
        return ""  # packing says why
    frames = sum(part.expected for part in parts)
    lines = [f"about {frames:,} frames at {estimates[0].size}; expected from the first ones:"]
    lines += [_line(estimate, estimate.codec == chosen) for estimate in estimates]
    return "\n".join([*lines, *_better(estimates, chosen)])


def _better(estimates: list[Estimate], chosen: str) -> list[str]:
    """That a codec without loss is smaller than the chosen one, as it is for drawn or very plain pictures."""
    by_name = {estimate.codec: estimate for estimate in estimates}
    png, own = by_name["png"], by_name.get(chosen)
    if own is None or own.loss == png.loss or png.bytes > own.bytes:
        return []
    return [f"   png is smaller than {chosen} here, and loses nothing: --codec png"]


def _readable(part: Part) -> bool:
    """Whether a video can be opened; what is wrong with the others, packing says, all at once."""
    try:
        return part.expected > 0
    except PenstockError:
        return False


def _estimates(parts: tuple[Part, ...], image: str, options: PackOptions) -> list[Estimate]:
    try:
        return estimate_codecs(parts, image, options) if parts else []
    except PenstockError:
        return []


def _line(estimate: Estimate, chosen: bool) -> str:
    mark = "→" if chosen else " "
    speed = f"{estimate.clips_per_second:,.0f} clips/s a core"
    return f" {mark} {estimate.codec:<5} {readable_bytes(estimate.bytes):>9}   {speed:>22}   loss: {estimate.loss}"
