"""Streams in words: what runs, and what cannot be promised."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from penstock.flow.making.chains import function_name
from penstock.flow.steps import Filter, Interleave, Shuffle
from penstock.flow.streams.feeding import USUAL_WINDOW
from penstock.flow.streams.streams import GeneratorStream, Stream
from penstock.wording import counted

if TYPE_CHECKING:
    from penstock.flow.plans import Plan
    from penstock.flow.tuning.tuner import Tuner


def stream_words(stream: Stream) -> str:
    """What a stream is."""
    names = [function_name(one) for one in stream.functions] if isinstance(stream, GeneratorStream) else []
    name = ", ".join(dict.fromkeys(names)) or type(stream).__name__
    length = "" if stream.length is None else f", {counted(_whole(stream.length), 'sample')}"
    return f"stream of {name}{length}" if stream.parts == 1 else f"{stream.parts} streams of {name}{length}"


def _whole(length: float) -> int | None:
    return None if math.isinf(length) else int(length)


def stream_rows(stream: Stream, plan: Plan, tuner: Tuner, executor: str) -> list[tuple[str, str]]:
    """The plan as run, as names and words."""
    settings = tuner.settings
    how = f"{counted(settings.workers, 'thread')} — {tuner.reasons['workers']}"
    rows = [("order", words) for words in _order(stream, plan)]
    if any(isinstance(step, Filter) for step in plan.steps):
        rows.append(("make", "what stands before a filter is made by the thread that reads, all the rest by workers"))
    rows.append(("workers", how if settings.workers else "none: everything is made in the calling thread (workers=0)"))
    if executor in ("subprocess", "process"):
        rows.append(("executor", _in_one_place(executor)))
    return rows + [("note", words) for words in promises(stream)]


def _in_one_place(executor: str) -> str:
    return (
        f"thread, although {executor} was asked for: a generator that is copied into other processes gives its samples "
        "several times, so it runs here, in one thread, and its samples are made by threads"
    )


def _order(stream: Stream, plan: Plan) -> list[str]:
    cycle = next((step for step in plan.steps if isinstance(step, Interleave)), None)
    shuffle = next((step for step in plan.steps if isinstance(step, Shuffle)), None)
    words = []
    if stream.parts > 1:
        count, block = (stream.parts, 1) if cycle is None else (cycle.cycle_length, cycle.block_length)
        words.append(
            f"{min(count, stream.parts)} of {stream.parts} streams in turn, {counted(block, 'sample')} of each"
        )
    if shuffle is not None:
        words.append(f"shuffled in a buffer of {counted(shuffle.window or USUAL_WINDOW, 'sample')}")
    return words or ["as the samples come"]


def promises(source: Any) -> list[str]:
    """What a flow over this source cannot promise, in words for `explain`."""
    if not isinstance(source, Stream):
        return []
    return [
        "a stream is read in order by one thread of this process, whatever the workers are; every rank reads all of it",
        "exact resume cannot be promised: nobody can ask a generator for its next sample but itself",
        "shuffle mixes samples within a buffer (window=…) and not the whole dataset",
        "the same batches in every run as far as the generators give the same samples in the same order",
    ]
