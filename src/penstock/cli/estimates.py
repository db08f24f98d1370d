"""The table that `pack videos` prints before it starts: what each codec would cost."""

from __future__ import annotations

from typing import Any

from penstock.packing.estimating import Estimate, estimate_codecs
from penstock.packing.options import AUTO, PackOptions
from penstock.reporting.packs import readable_bytes


def video_choices(source: Any, codec: str, quality: int) -> str:
    """Size, speed and loss of every codec, with the chosen one marked."""
    chosen = getattr(source, "default_codec", "jpeg") if codec == AUTO else codec
    estimates = estimate_codecs(tuple(source.parts), source.schema.image.name, PackOptions(quality=quality))
    if not estimates:
        return "no frame can be decoded"
    frames = sum(part.expected for part in source.parts)
    lines = [f"about {frames:,} frames at {estimates[0].size}; expected from the first ones:"]
    lines += [_line(estimate, estimate.codec == chosen) for estimate in estimates]
    return "\n".join(lines)


def _line(estimate: Estimate, chosen: bool) -> str:
    mark = "→" if chosen else " "
    speed = f"{estimate.clips_per_second:,.0f} clips/s a core"
    return f" {mark} {estimate.codec:<5} {readable_bytes(estimate.bytes):>9}   {speed:>22}   loss: {estimate.loss}"
