"""What a user may choose for ethograms, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from penstock.errors import OptionError, nearest, one_of
from penstock.formats.videos.framing import FITS


@dataclass(frozen=True)
class EthogramOptions:
    """How videos are looked at.

    fit         stretch, pad or crop: how frames are brought to the size of the model; by default as in its training
    crop        x,y,width,height of the frame that is looked at; by default as in its training
    fresh       predict again what is there already
    min_bout_frames    the shortest bout: a number of frames for all behaviours, or one for each; off keeps every frame
                as its probabilities say; by default as training decided
    """

    fit: str | None = None
    crop: Any = None
    fresh: bool = False
    min_bout_frames: int | tuple[int, ...] | str | None = None

    def __post_init__(self) -> None:
        if self.fit is not None:
            one_of("fit", self.fit, FITS)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> EthogramOptions:
        names = [field.name for field in fields(cls)]
        for name in given:
            if name not in names:
                raise OptionError(f"predict has no option {name!r} for behaviour.{nearest(name, names)}")
        return cls(**given)
