"""Plans that the promises are tested on: every kind of source, order, step and way to run, in small numbers."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps
from jpeg_making import jpeg, soft_picture
from made_sources import EveryKind, Pictures, Reels, pixels
from penstock.augment import HorizontalFlip, Normalize, RandomCrop, RandomResizedCrop, Resize, VerticalFlip
from penstock.codecs.images import encode_image

SIZE = 16
KINDS = ("jpeg pack", "raw pack", "png", "split", "clips", "padded", "ragged", "subset of clips", "sequence")
CHAINS = ("cropped", "normalised", "flipped", "own", "noised", "half")


@functools.cache
def _png(index: int) -> bytes:
    return encode_image(_picture(index), "png")


@functools.cache
def _jpeg(index: int) -> bytes:
    subsampling = ("420", "444", "422")[index % 3]
    return jpeg(_picture(index), subsampling=subsampling, progressive=index % 4 == 1)


def _picture(index: int) -> Any:
    return soft_picture(21 + 5 * (index % 4), 19 + 3 * (index % 5), index)


class Photos(Pictures):
    """Images of several sizes in one of several kinds of JPEG, in shards of seven; some may be no image at all."""

    def __init__(self, count: int = 23, codec: str = "jpeg", broken: tuple[int, ...] = ()) -> None:
        super().__init__(count, codec, broken, group_size=4)

    def read(self, index: int) -> ps.Raw:
        if index in self.broken or self.codec != "jpeg":
            return super().read(index) if index in self.broken else ps.Raw(index, _png(index))
        return ps.Raw(index, _jpeg(index))

    def fingerprint(self) -> str:
        return f"{self.count} photos, {self.codec}, without {self.broken}"

    def shard_numbers(self, indices: Any) -> Any:
        return np.asarray(indices) // 7


class Squares(Pictures):
    """Images of one size, as a raw pack holds them."""

    def __init__(self, count: int = 20) -> None:
        super().__init__(count, "png", group_size=3)


class Items:
    """A sequence whose items are batches of four."""

    def __len__(self) -> int:
        return 5

    def __getitem__(self, number: int) -> dict[str, Any]:
        rows = range(number * 4, min(number * 4 + 4, 18))
        return {"image": np.stack([pixels(row, 18, 17) for row in rows]), "label": np.array(rows) % 3}


class Kinds(EveryKind):
    """A field of every kind, in a source that a cache on disk knows again."""

    def fingerprint(self) -> str:
        return f"{self.count} samples of every kind"


def noised(image: Any, rng: np.random.Generator) -> Any:
    """Random, on one field."""
    return image ^ rng.integers(0, 4, image.shape, dtype=image.dtype)


def marked(sample: dict[str, Any]) -> dict[str, Any]:
    """Not random, on a whole sample; gives a field more."""
    return {**sample, "mean": np.float64(sample["image"].mean())}


def picky(sample: dict[str, Any]) -> dict[str, Any]:
    """Fails for some samples, as seen through the steps before."""
    if int(sample["image"].sum()) % 5 == 0:
        raise ValueError("this one is not to my taste")
    return sample


def tall(sample: dict[str, Any]) -> bool:
    return bool(sample["image"].sum() % 4)


def scaled(batch: dict[str, Any]) -> dict[str, Any]:
    """On a whole batch, but row by row, so that it does not matter how many ranks share it."""
    return {**batch, "double": batch["index"] * 2}


def odd(column: Any) -> Any:
    return np.arange(len(column)) % 3 > 0


@dataclass(frozen=True)
class Case:
    """One combination; what is above the line decides what is in a batch, what is below how it is made."""

    kind: str = "png"
    chain: str = "cropped"
    shuffle: str = "whole"  # none, whole, window
    chosen: str = "all"  # all, where, filter, sample, interleave
    counted: tuple[tuple[str, int], ...] = ()  # take, skip and repeat on samples
    counted_batches: tuple[tuple[str, int], ...] = ()  # and on batches
    bad: str = "none"  # none, source, function
    mixed: str = "no"  # no, first, all
    cache: str = "no"  # no, memory, folder
    batch_size: int = 5
    drop_last: bool = False
    on_batches: bool = False
    seed: int = 7
    epoch: int = 0
    # ---
    world_size: int = 1
    executor: str = "thread"
    workers: int | str = "auto"
    memory: str = "auto"
    prefetch: int | str = "auto"

    def run_as(self, **how: Any) -> Case:
        return replace(self, **how)


class Packs:
    """The packs that cases read, made once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.jpeg = ps.pack(Photos(23), folder / "jpeg.pack", split="train=0.7,val=0.3", progress=False)
        self.raw = ps.pack(Squares(), folder / "raw.pack", codec="raw", progress=False)
        self.frames = ps.pack(Reels(6, 4, 5), folder / "frames.pack", codec="jpeg", progress=False)
        self.raw_frames = ps.pack(Reels(5, 8), folder / "raw-frames.pack", codec="raw", progress=False)


def flow_of(case: Case, packs: Packs, rank: int = 0) -> ps.Flow:
    """The flow of a case, for one rank."""
    flow = _samples(case, packs)
    flow = flow.batch(case.batch_size, shapes=_shapes(case), fill=3, drop_last=case.drop_last)
    for name, number in case.counted_batches:
        flow = getattr(flow, name)(number)
    if case.on_batches:
        flow = flow.map(scaled, batched=True)
    if case.prefetch != "auto" and case.mixed != "no":
        flow = flow.prefetch(case.prefetch)
    return flow.shard(rank, case.world_size) if case.world_size > 1 else flow


def _samples(case: Case, packs: Packs) -> ps.Flow:
    flow = _ordered(_start(case, packs), case)
    flow = _chained(flow, case, packs.folder)
    if case.mixed != "no":
        other = ps.Flow(Photos(11, "png"), case.seed + 1).shuffle()
        other = _chained(other, case, packs.folder)
        flow = ps.mix([flow, other], [2, 1], seed=case.seed + 2, until=case.mixed)
    for name, number in case.counted:
        flow = getattr(flow, name)(number)
    return flow


def _start(case: Case, packs: Packs) -> ps.Flow:
    how = {
        "workers": case.workers,
        "executor": case.executor,
        "memory": case.memory,
        "fast_decode": False,
        "on_bad_sample": "raise" if case.bad == "none" else "substitute",
    }
    source = _source(case, packs)
    flow = ps.Flow(source, case.seed, **how)
    if case.prefetch != "auto" and case.mixed == "no":
        flow = flow.prefetch(case.prefetch)
    if "clips" in case.kind:
        label = "middle" if case.kind == "clips" else "all"
        return flow.clips(frames=3, stride=2, label=label, edge="repeat" if case.kind == "clips" else "drop")
    return flow


def _source(case: Case, packs: Packs) -> Any:
    broken = (2, 9, 10) if case.bad == "source" else ()
    match case.kind:
        case "jpeg pack":
            return packs.jpeg
        case "raw pack":
            return packs.raw
        case "png":
            return Photos(19, "png", broken)
        case "split":
            return packs.jpeg.split("train")
        case "clips":
            return packs.frames
        case "sequence":
            return ps.from_sequence(Items(), unbatch=True)
        case "subset of clips":
            return ps.Subset(packs.raw_frames, np.arange(1, 13))
    return Kinds(17)


def _ordered(flow: ps.Flow, case: Case) -> ps.Flow:
    match case.chosen:
        case "where":
            flow = flow.where(group=odd)
        case "filter":
            flow = flow.filter(tall)
        case "sample":
            return flow.sample("balanced", count=13)
        case "interleave":
            flow = flow.interleave(2, block_length=2, by="group")
    match case.shuffle:
        case "whole":
            return flow.shuffle()
        case "window":
            return flow.shuffle(window=2)
    return flow


def _chained(flow: ps.Flow, case: Case, folder: Path) -> ps.Flow:
    before, after = _steps(case)
    for step in before:
        flow = _mapped(flow, step)
    if case.cache != "no":
        flow = flow.cache("memory" if case.cache == "memory" else folder / "cache")
    for step in after:
        flow = _mapped(flow, step)
    return flow.map(picky) if case.bad == "function" else flow


def _mapped(flow: ps.Flow, step: Any) -> ps.Flow:
    return flow.map(step, field="image") if step is noised else flow.map(step)


def _steps(case: Case) -> tuple[list[Any], list[Any]]:
    """The steps that a cache may follow, and those behind it."""
    if case.kind in ("padded", "ragged"):
        return {
            "cropped": ([], [RandomCrop(20, padding=2), HorizontalFlip()]),
            "normalised": ([Resize(SIZE)], [VerticalFlip(), Normalize()]),
            "own": ([marked], [HorizontalFlip()]),
            "noised": ([], [noised]),
        }.get(case.chain, ([], []))
    return {
        "cropped": ([], [RandomResizedCrop(SIZE), HorizontalFlip()]),
        "normalised": ([Resize((SIZE, SIZE + 3))], [HorizontalFlip(), Normalize()]),
        "flipped": ([Resize((SIZE, SIZE))], [VerticalFlip(), HorizontalFlip(0.3)]),
        "own": ([Resize((SIZE, SIZE)), marked], [HorizontalFlip(), noised]),
        "noised": ([], [RandomCrop(SIZE, padding=3), noised]),
        "half": ([], [RandomResizedCrop(SIZE, scale=(0.5, 1.0)), marked, HorizontalFlip()]),
    }[case.chain]


def _shapes(case: Case) -> Any:
    return case.kind if case.kind in ("padded", "ragged") else "fixed"
