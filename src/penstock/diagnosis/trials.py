"""Remedies are tried: a flow with the remedy in place runs for a while, with the model, as the present one did."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from penstock.codecs.headers import UnreadableImage, read_header
from penstock.diagnosis.diagnosis import Remedy, rate_words
from penstock.diagnosis.present import Present
from penstock.diagnosis.spelling import Spelling
from penstock.diagnosis.variants import (
    cached,
    cached_behind,
    can_be_tried,
    device_steps,
    has_cache,
    in_batches,
    is_video,
    on_source,
    output_size,
    resizes,
    without_device_steps,
    without_prefetch,
)
from penstock.flow.budget import process_budget
from penstock.flow.caching.memory_cache import SHARE_OF_BUDGET, MemoryCache
from penstock.flow.explaining.plan_words import size_words
from penstock.flow.flow import Flow
from penstock.flow.measuring.metrics import HOPS
from penstock.packing.reader import Pack
from penstock.packing.writer import pack
from penstock.samples import Store

LOOKED_AT = 64  # images whose sizes stand for all
WORTH_PACKING = 0.3  # of the seconds of a sample that are reading and decoding
ROOM_TO_CROP = 8 / 7  # 256 px are stored for crops of 224, as is the custom
WORTH_SHRINKING = 1.25  # times that
BATCH_FACTOR = 4
SMALL_BATCH = 64  # from here on, larger ones bring a network little
LONGEST_BEGINNING = 0.1  # seconds: what a batch takes longer goes into its samples, and more of them take more


# Settings


def applied(flow: Flow, remedy: Remedy, spelling: Spelling) -> Flow:
    """The flow with a cheap remedy; batches stay the same."""
    if remedy.name == "cache":
        return cached(flow, at_source=spelling.caches_source)
    if remedy.name == "prefetch":
        return without_prefetch(flow)
    changed: dict[str, Any] = {"executor": "process"} if remedy.name == "executor" else {"workers": None}
    return flow.rewrite(**changed)


def confirmed(remedy: Remedy, present: Present) -> Remedy:
    """A remedy with what it really brings, in place of what the cost model says."""
    if remedy.name == "disk":
        return _disk_confirmed(remedy, present)
    return replace(remedy, speed_up=present.times_as_fast(applied(present.running, remedy, present.spelling)))


def _disk_confirmed(remedy: Remedy, present: Present) -> Remedy:
    """A faster disk is the feed without reading: on samples that are in memory."""
    if not can_be_tried(present.flow):
        return remedy
    speed_up = present.times_as_fast(on_source(present.flow, present.stand_ins))
    return replace(remedy, speed_up=speed_up, needs=disk_words(speed_up * present.measured_rate))


def disk_words(rate: float) -> str:
    """What a disk must give."""
    return f"at least {rate_words(rate)} samples/s"


# A cache


def cache_applies(present: Present) -> bool:
    return not has_cache(present.flow)


def cache_remedy(present: Present) -> Remedy | None:
    """Keep decoded samples in memory, where all of them fit."""
    flow = present.flow
    source = flow.plan.source
    assert source is not None
    some = present.stand_ins
    small = present.for_trial(cached(on_source(flow, some), at_source=present.spelling.caches_source))
    caches = [_cache_of(leaf.source) for leaf in small.running.program.leaves]
    speed_up = present.times_as_fast(small, warm_samples=len(some))
    choice = small.running.workers.choice
    kept, count = sum(cache.kept_bytes for cache in caches), sum(cache.kept_samples for cache in caches)
    limit = flow.options.memory or process_budget().limit
    needs, room = kept / max(count, 1) * len(source), min(limit, process_budget().limit) * SHARE_OF_BUDGET
    if (
        not count or needs > room or (choice is not None and choice.kind == "process")
    ):  # each process would keep samples of its own
        return None
    return Remedy(
        "cache",
        "cache in memory, from the second epoch on",
        speed_up,
        present.spelling.cache(cached_behind(flow)),
        needs=f"needs {size_words(needs)} of {size_words(room)}",
        is_cheap=True,
    )


def _cache_of(source: Store) -> MemoryCache:
    """The cache that a source is, or is made of: clips are made of frames that are kept."""
    while not isinstance(source, MemoryCache):
        (source,) = source.below
    return source


# A pack


def pack_applies(present: Present) -> bool:
    """Where reading and decoding are worth something, of what is not packed or is stored larger than it is seen."""
    source = present.flow.plan.source
    if source is None or _read_and_decode_share(present) < WORTH_PACKING:
        return False
    # What is stored as it is comes from the same disk no faster.
    keeps_size = smaller_side(present.flow, source) is None
    return not (keeps_size and (_is_packed(source) or present.binding.resource == "disk"))


def _is_packed(source: Store) -> bool:
    return isinstance(source.images_at(np.zeros(0, np.int64))[0], Pack)


def pack_remedy(present: Present) -> Remedy | None:
    """Pack what is not packed, smaller where images are much larger than what is seen of them."""
    source = present.flow.plan.source
    assert source is not None
    side = smaller_side(present.flow, source)
    with _trial_pack(present.stand_ins, side) as small:
        speed_up = present.times_as_fast(on_source(present.flow, small))
        disk_allows = _packed_reading(present, small) / max(present.measured_rate, 1e-9)
        size = small.bytes / len(small) * len(source)
    return Remedy(
        "pack",
        _pack_words(present.flow, source, side),
        min(speed_up, disk_allows),
        present.spelling.pack(side),
        needs=f"{size_words(size)} of disk",
        warning="" if side is None else "Images are resampled once more, which may change accuracy a little.",
    )


def _pack_words(flow: Flow, source: Store, side: int | None) -> str:
    size = "" if side is None else f" at {side} px"
    if _is_packed(source):
        return f"repack{size}"
    if is_video(flow):
        return f"convert the videos to a pack{size}, in which no frame needs the frames before it"
    return f"pack{size}"


def _read_and_decode_share(present: Present) -> float:
    times = present.profile.crowded
    seconds = {hop: times.hops[hop].cpu_seconds + times.hops[hop].wait_seconds for hop in HOPS}
    return (seconds["read"] + seconds["decode"]) / max(sum(seconds.values()), 1e-12)


def _packed_reading(present: Present, small: Pack) -> float:
    """A disk gives bytes: smaller samples come faster."""
    size = 0.0 if present.reading is None else present.reading.warm.one.bytes
    return present.cost.reading_rate * size / max(small.bytes / len(small), 1.0) if size else math.inf


@contextmanager
def _trial_pack(source: Store, side: int | None) -> Iterator[Pack]:
    with tempfile.TemporaryDirectory(prefix="penstock-doctor-") as folder:
        yield pack(source, Path(folder) / "trial.pack", split="train", shortest_side=side, progress=False)


def smaller_side(flow: Flow, source: Store) -> int | None:
    """The shortest side to store, in px, where images are resized anyway and are much larger."""
    size = output_size(flow)
    if size is None or not resizes(flow):
        return None
    side = 8 * round(max(size) * ROOM_TO_CROP / 8)
    sizes = image_sizes(source)
    if sizes is None or sizes.min(axis=1).mean() < WORTH_SHRINKING * side:
        return None
    return side


def image_sizes(source: Store) -> np.ndarray[Any, np.dtype[np.int64]] | None:
    """Width and height of some images, without decoding where that can be; None where there are none."""
    if source.schema.image is None:
        return None
    looked_at = np.unique(np.linspace(0, len(source) - 1, min(LOOKED_AT, len(source))).astype(np.int64))
    base, indices, frames = source.images_at(looked_at)
    indices = indices[::frames]
    known = base.image_sizes(indices)
    if known is not None:
        return known
    if base.encoded_images:
        return _header_sizes(base, indices.tolist())
    assert base.schema.image is not None
    image = base.decode(base.read(int(indices[0])))[base.schema.image.name]
    return np.array([[image.shape[1], image.shape[0]]], np.int64)


def _header_sizes(base: Store, indices: list[int]) -> np.ndarray[Any, np.dtype[np.int64]] | None:
    sizes = []
    for index in indices:
        try:
            header = read_header(base.read(index).data)
        except (OSError, UnreadableImage):
            continue
        sizes.append((header.width, header.height))
    return np.array(sizes, np.int64) if sizes else None


# The device


def device_applies(present: Present) -> bool:
    return bool(device_steps(present.flow) and present.hardware.gpus)


def device_remedy(present: Present) -> Remedy | None:
    """Leave steps on pixels to the device."""
    steps = device_steps(present.flow)
    names = ", ".join(step.name for step in steps)
    return Remedy(
        "device",
        f"do {names} on the device, on whole batches",
        present.times_as_fast(without_device_steps(present.running)),
        f"leave out .map({names}(…)), and do it in the step",
    )


# Batches


def batch_applies(present: Present) -> bool:
    batch = present.flow.plan.batch
    is_small = batch is not None and batch.size <= SMALL_BATCH
    return is_small and present.step is not None and present.batch_seconds < LONGEST_BEGINNING


def batch_remedy(present: Present) -> Remedy | None:
    """Larger batches, where a model or the feed spends its time on each batch and not on samples."""
    batch = present.flow.plan.batch
    assert batch is not None and present.step is not None
    size = batch.size * BATCH_FACTOR
    try:
        speed_up = present.times_as_fast(in_batches(present.running, size))
    except (RuntimeError, ValueError, TypeError, MemoryError):
        return None  # a step that takes batches of one size, or a device that has no room for more
    return Remedy(
        "batch",
        f"batches of {size}",
        speed_up,
        present.spelling.batch(size),
        warning="This affects accuracy: fewer, larger steps want another learning rate.",
    )
