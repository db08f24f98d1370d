"""Measurements that were never taken: a flow with numbers that say what is to be said of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import penstock as ps
from ailing_sources import Quick, flow_of
from penstock.diagnosis.hardware import Hardware
from penstock.diagnosis.present import Present
from penstock.diagnosis.profiling import Profile
from penstock.diagnosis.reading import Disk
from penstock.diagnosis.runs import FeedRun, Moment
from penstock.diagnosis.spelling import Spelling
from penstock.flow.measuring.cost_model import ModelCost, SampleCost, Setup
from penstock.flow.measuring.metrics import HOPS, Costs
from penstock.flow.measuring.sample_times import HopTimes, SampleTimes

GIGABYTE = 2**30
MACHINE = Hardware(4, 4, 16 * GIGABYTE, 8 * GIGABYTE, 4 * GIGABYTE, (), Disk("solid state"))


def times(threads: int = 1, **hops: tuple[float, float]) -> SampleTimes:
    """CPU and waiting seconds of a sample by hop; decode takes 10 ms where nothing is said."""
    given = hops or {"decode": (0.01, 0.0)}
    return SampleTimes(threads, {hop: HopTimes(*given.get(hop, (0.0, 0.0))) for hop in HOPS}, 0.0, 0.0)


def feed_run(rate: float, waited: float = 1.0, used: float = 0.0) -> FeedRun:
    """A run that delivered so many samples a second."""
    samples = round(rate * (waited + used))
    batch = {"image": np.zeros((8, 16, 16, 3), np.uint8), "index": np.arange(8)}
    return FeedRun((Moment(0.0, waited, used, samples, Costs()),), "thread", 4, 2, batch, 8)


def patient(flow: ps.Flow | None = None, **changes: Any) -> Present:
    """400 samples a second on four cores, all of it decoding; `waited` of ten seconds where there is a model."""
    model: ModelCost | None = changes.pop("model", None)
    waited = changes.pop("waited", 5.0)
    together = None if model is None else feed_run(300, waited, 10.0 - waited)
    flow = flow or flow_of(Quick())
    present = Present(
        flow=flow,
        running=flow,
        step=None,
        profile=Profile(times(), times(4)),
        cost=SampleCost(cpu=0.01),
        setup=Setup(4, None),
        model=model,
        feed=feed_run(400),
        together=together,
        reading=None,
        hardware=MACHINE,
        spelling=Spelling(),
        trial_seconds=0.2,
    )
    return replace(present, **changes)
