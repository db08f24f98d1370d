"""The table that `pack videos` prints before it starts: what each codec would cost."""

from __future__ import annotations

from typing import Any

from penstock.errors import PenstockError
from penstock.packing.estimating import Estimate, estimate_codecs
from penstock.packing.options import AUTO, PackOptions
from penstock.reporting.packs import readable_bytes
from penstock.samples import Part


def video_choices(source: Any, codec: str, quality: int) -> str:
    """Size, speed and loss of every codec, with the chosen one marked."""
    chosen = source.default_codec if codec == AUTO else codec
    parts = tuple(part for part in source.parts if _readable(part))
    estimates = _estimates(parts, source.schema.image.name, PackOptions(quality=quality))
    if not estimates:
        return "no frame can be decoded"
    frames = sum(part.expected for part in parts)
    lines = [f"about {frames:,} frames at {estimates[0].size}; expected from the first ones:"]
    lines += [_line(estimate, estimate.codec == chosen) for estimate in estimates]
    return "\n".join(lines)


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
