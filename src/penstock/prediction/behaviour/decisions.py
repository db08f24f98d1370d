"""What stands between probabilities and answers, counted: frames that a rule changed, frames that were close calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

from penstock.errors import OptionError
from penstock.results.ethograms import NEAR, Ethogram
from penstock.wording import counted

OFF = "off"
# From this share of the frames on, close calls of a behaviour are worth a warning.
MANY = 0.1


class Decisions(NamedTuple):
    """Of one video or of several.

    frames           how many there are
    changed_frames   those in which the rule of shortest bouts changed an answer
    near_threshold   for each behaviour, frames with a probability close to its threshold
    """

    frames: int
    changed_frames: int
    near_threshold: Mapping[str, int]

    @classmethod
    def of(cls, ethogram: Ethogram) -> Self:
        near = dict(zip(ethogram.behaviours, ethogram.near_threshold.tolist(), strict=True))
        return cls(len(ethogram), ethogram.changed_frame_count, near)

    @classmethod
    def together(cls, several: Iterable[Decisions]) -> Self:
        found = list(several)
        near: Counter[str] = Counter()
        for one in found:
            near.update(one.near_threshold)
        return cls(sum(one.frames for one in found), sum(one.changed_frames for one in found), dict(near))

    def facts(self) -> dict[str, Any]:
        """As programs get them."""
        return {**self._asdict(), "near_threshold": dict(self.near_threshold)}


def decision_lines(facts: Mapping[str, Any], how_to_keep: str) -> list[str]:
    """What a person should know of them; `how_to_keep` says how the rule of shortest bouts is turned off."""
    frames, changed = facts["frames"], facts["changed_frames"]
    lines = []
    if changed:
        what = f"bouts shorter than min_bout_frames, or gaps in them, changed {changed:,} of {counted(frames, 'frame')}"
        lines.append(f"{what}; {how_to_keep} keeps them as they are.")
    close = {
        name: count / frames for name, count in facts["near_threshold"].items() if frames and count > MANY * frames
    }
    if close:
        shares = ", ".join(f"{name} in {share:.0%}" for name, share in close.items())
        lines.append(
            f"warning: many probabilities lie within {NEAR} of a threshold ({shares} of the frames): answers and "
            "scores there may change with the precision, or with how frames were compressed."
        )
    return lines


def min_bouts(given: Any, behaviours: tuple[str, ...]) -> tuple[int, ...]:
    """The shortest bout of each behaviour, of one number for all, a number for each, or off."""
    values = (1,) if given == OFF else given if isinstance(given, (tuple, list)) else (given,)
    if any(isinstance(value, bool) or not isinstance(value, int) or value < 1 for value in values):
        raise OptionError(f"min_bout_frames={given!r} must be a whole number from 1, one for each behaviour, or {OFF}.")
    if len(values) not in (1, len(behaviours)):
        count = f"{len(values)} numbers for {counted(len(behaviours), 'behaviour')}"
        raise OptionError(f"min_bout_frames has {count} ({', '.join(behaviours)}). Give one for each, or one for all.")
    return tuple(values) * (len(behaviours) if len(values) == 1 else 1)
