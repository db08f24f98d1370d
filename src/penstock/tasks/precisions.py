"""With how many bits a network computes: decided when it is trained, kept in its checkpoint, used ever after."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch

from penstock.errors import RecipeError, one_of

AUTO, FULL = "auto", "32"
HALVES = {"bf16": torch.bfloat16, "16": torch.float16}
PRECISIONS = (AUTO, FULL, *HALVES)


class Precision(NamedTuple):
    """What a model computes with, and why, in words."""

    name: str
    words: str


def short_name(lightning: object) -> str:
    """Our name of a precision of Lightning: 32-true is 32, bf16-mixed is bf16."""
    return str(lightning).split("-", maxsplit=1)[0]


def can_compute(precision: str, device: torch.device) -> bool:
    """Whether a device computes with it; Lightning, too, takes bf16 in place of 16 on a CPU."""
    if precision == FULL:
        return True
    if device.type == "cuda":
        return precision == "16" or (precision == "bf16" and torch.cuda.is_bf16_supported())
    return precision == ("bf16" if device.type == "cpu" else "16")


def computed_precision(lightning: object, device: torch.device) -> str:
    """What a training computes with that asks Lightning for this."""
    asked = short_name(lightning)
    return "bf16" if asked == "16" and not can_compute(asked, device) else asked


def choose_precision(asked: str, trained: str | None, devices: Sequence[torch.device]) -> Precision:
    """What a model answers with: as it was trained, unless a user asks for another, or a device cannot."""
    one_of("precision", asked, PRECISIONS)
    unable = [device.type for device in devices if not can_compute(trained or FULL if asked == AUTO else asked, device)]
    if asked != AUTO:
        if unable:
            raise RecipeError(f"precision={asked!r}: a {unable[0]} does not compute with it. Use 32.")
        other = f"; it was trained with {trained}, so answers and scores may differ a little"
        return Precision(asked, f"precision {asked}, as asked{other if trained not in (None, asked) else ''}.")
    if trained is None:
        return Precision(FULL, f"precision {FULL}; the model does not say with which it was trained.")
    if unable:
        why = f"it was trained with {trained}, with which a {unable[0]} does not compute"
        return Precision(FULL, f"precision {FULL}: {why}, so answers and scores may differ a little from training.")
    return Precision(trained, f"precision {trained}, as in training.")


def autocast(precision: str, device: torch.device) -> AbstractContextManager[Any]:
    """A context in which a network computes so."""
    return torch.autocast(device.type, HALVES[precision]) if precision in HALVES else nullcontext()
