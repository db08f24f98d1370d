"""The table that `pack videos` prints before it starts: what each codec would cost."""

from __future__ import annotations

from typing import Any

from penstock.cli.wording import in_own_words
from penstock.packing.advice import better_codec, codec_estimates, readable_parts
from penstock.packing.estimating import Estimate
from penstock.packing.options import PackOptions
from penstock.reporting.packs import readable_bytes
from penstock.storage.writing.options import AUTO
from penstock.wording import counted


def video_choices(source: Any, codec: str, quality: int) -> str:
    """Size, speed and loss of every codec, with the chosen one marked; empty where no frame can be had."""
    chosen = source.default_codec if codec == AUTO else codec
    estimates = codec_estimates(source, PackOptions(quality=quality))
    if not estimates:
        return ""  # packing says why
    frames = sum(part.expected for part in readable_parts(source))
    lines = [f"about {counted(frames, 'frame')} at {estimates[0].size}; expected from the first ones:"]
    lines += [_line(estimate, estimate.codec == chosen) for estimate in estimates]
    better = better_codec(estimates, chosen)
    return "\n".join([*lines, *([f"   {in_own_words(better)}"] if better else [])])


def _line(estimate: Estimate, chosen: bool) -> str:
    mark = "→" if chosen else " "
    speed = f"{estimate.clips_per_second:,.0f} clips/s a core"
    return f" {mark} {estimate.codec:<5} {readable_bytes(estimate.bytes):>9}   {speed:>22}   loss: {estimate.loss}"
