"""What a user may choose when packing, checked once, at the door."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from penstock.codecs.images import DEFAULT_QUALITY
from penstock.errors import OptionError, nearest
from penstock.storage.writing.options import AUTO, RUNNING, SampleOptions, between

DEFAULT_SPLIT = "train=0.8,val=0.2"


@dataclass(frozen=True)
class PackOptions:
    """How to pack.

    codec           auto: bytes as they are; frames of videos as jpeg, other pixels as png
    quality         of jpeg, webp and h264, 1 to 100
    longest_side    shrink so that the longest side has this many pixels (never enlarges)
    shortest_side   the same for the shortest side
    size            WIDTHxHEIGHT, exactly, without keeping the proportions
    split           auto: the source's own, else train=0.8,val=0.2 by group; or fractions; or one name for all
    seed            decides which group goes where, and which images the statistics are taken from
    validate        decode every image once while packing
    on_bad_sample   raise, or skip: leave it out, count it, list it with its reason
    shard_mb        shards are closed at this size
    workers         auto: one per core
    executor        thread, or process for sources whose own Python code holds the interpreter lock
    memory          auto: half of what is free; or a size such as "2 GB": what large images may take while decoded
    sync            wait until everything is on the disk before it has its name: a power cut then loses nothing
    """

    codec: str = AUTO
    quality: int = DEFAULT_QUALITY
    longest_side: int | None = None
    shortest_side: int | None = None
    size: str | None = None
    split: str = AUTO
    seed: int = 0
    validate: bool = False
    on_bad_sample: str = "raise"
    shard_mb: int = 128
    workers: int | str = AUTO
    executor: str = "thread"
    memory: int | str = AUTO
    sync: bool = True

    def __post_init__(self) -> None:
        self.preparing()
        between("shard_mb", self.shard_mb, 1, 2048)
        between("seed", self.seed, -(2**63), 2**64 - 1)
        if not isinstance(self.split, str):
            raise OptionError(f"split={self.split!r} must be a text, such as train=0.8,val=0.2.")
        parse_split(self.split)

    def preparing(self) -> SampleOptions:
        """The options that decide how samples are read, resized and encoded."""
        return SampleOptions(**{field.name: getattr(self, field.name) for field in fields(SampleOptions)})

    @property
    def worker_count(self) -> int:
        return self.preparing().worker_count

    @property
    def decoding_bytes(self) -> int:
        """What images may take while they are decoded, in each process."""
        return self.preparing().decoding_bytes

    @property
    def changes_pixels(self) -> bool:
        return self.preparing().changes_pixels

    def content(self) -> dict[str, Any]:
        """The options that decide what is in the pack; these are written into it."""
        return {name: value for name, value in asdict(self).items() if name not in RUNNING}


def make_options(given: Mapping[str, Any]) -> PackOptions:
    """Options from keywords; an unknown one is an error that names the nearest."""
    legal = [field.name for field in fields(PackOptions)]
    for name in given:
        if name not in legal:
            raise OptionError(f"pack has no option {name!r}.{nearest(name, legal)} Options: {', '.join(legal)}.")
    return PackOptions(**given)


def parse_split(text: str) -> dict[str, float]:
    """`train=0.8,val=0.2` as fractions that add up to one; a single name takes everything; auto gives nothing."""
    if text == AUTO:
        return {}
    if "=" not in text:
        return {_split_name(text): 1.0}
    fractions: dict[str, float] = {}
    for piece in text.split(","):
        name, _, number = piece.partition("=")
        try:
            fractions[_split_name(name)] = float(number)
        except ValueError:
            raise OptionError(f"split {text!r}: {piece!r} is not NAME=FRACTION, such as train=0.8.") from None
    total = sum(fractions.values())
    if min(fractions.values()) < 0 or not abs(total - 1) < 1e-6:
        raise OptionError(f"split {text!r}: the fractions add up to {total:g} and must add up to 1.")
    return fractions


def _split_name(name: str) -> str:
    if not name.strip().isidentifier():
        raise OptionError(f"{name!r} is not a name for a split; use letters, digits and _, such as train.")
    return name.strip()
