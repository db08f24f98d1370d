"""Slow models and slow samples: nobody waits for many of their batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from ailing_sources import Quick, flow_of
from diagnosis.patients import feed_run, patient
from made_sources import Pictures
from penstock.codecs.images import encode_image
from penstock.diagnosis import diagnosing, runs, trials
from penstock.diagnosis.comparing import Case
from penstock.diagnosis.diagnosing import Options, measured
from penstock.diagnosis.reading import files_of
from penstock.diagnosis.remedies import _in_order
from penstock.diagnosis.spelling import Spelling
from penstock.diagnosis.variants import cached
from penstock.flow.measuring.cost_model import ModelCost
from video_making import write_video


class Clock:
    """A clock that only a model moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    process_time = perf_counter


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(runs, "time", clock)
    return clock


@pytest.mark.parametrize(("step_seconds", "calls"), [(3.0, 2), (0.5, 5), (0.25, 6)])
def test_a_slow_model_is_called_twice_and_a_fast_one_often(clock: Clock, step_seconds: float, calls: int) -> None:
    seen: list[float] = []

    def step(batch: Any) -> None:
        seen.append(clock.now)
        clock.now += step_seconds

    cost = runs.run_model(step, {}, 1, 1.0)
    assert cost.seconds == pytest.approx(step_seconds)
    assert len(seen) == calls


@pytest.mark.parametrize(("step_seconds", "batches"), [(30.0, 1), (3.0, 2), (0.5, 7)])
def test_a_run_of_slow_batches_ends_with_the_first_that_counts(clock: Clock, step_seconds: float, batches: int) -> None:
    def step(batch: Any) -> None:
        clock.now += step_seconds

    found = runs.run_feed(flow_of(Quick()), 3.0, step)
    assert clock.now == batches * step_seconds
    assert found.rate == pytest.approx(found.rows / step_seconds)


def test_trials_beside_a_slow_model_leave_it_out_and_take_small_batches() -> None:
    called: list[int] = []
    flow = ps.Flow(Pictures(64), workers=0).shuffle().map(ps.augment.Resize(8)).batch(32)
    model = ModelCost(0.05, 0.0)  # 1.6 s for a batch
    step, run = (lambda batch: called.append(len(batch["index"]))), feed_run(10)
    present = patient(flow, model=model, step=step, feed=run, together=run)
    assert present.is_slow
    factor = present.times_as_fast(ps.Flow(Pictures(64), workers=0).shuffle().map(ps.augment.Resize(8)).batch(32))
    assert called == [] and factor <= model.rate / present.modelled_rate


def test_samples_that_are_slow_come_in_smaller_batches_where_there_is_no_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flow = ps.Flow(Pictures(64)).batch(32)
    monkeypatch.setattr(diagnosing, "seconds_of_sample", lambda program: 1e9)
    assert diagnosing._in_quick_batches(flow, 0.4).plan.batch.size == 1  # type: ignore[union-attr]
    monkeypatch.setattr(diagnosing, "seconds_of_sample", lambda program: 1e-9)
    assert diagnosing._in_quick_batches(flow, 0.4) is flow


def test_the_batches_that_are_told_of_are_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosing, "seconds_of_sample", lambda program: 1e9)
    found, one = (ps.doctor(ps.Flow(Pictures(64)).batch(size), seconds=1) for size in (32, 1))
    assert found.rows == 32 and found.memory.batch == 32 * one.memory.batch


def test_a_model_is_never_slower_alone_than_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosing, "run_model", lambda *given: ModelCost(1e9))
    flow = flow_of(Quick())
    present = measured(flow, Case(flow, lambda batch: None), Options(seconds=1), Spelling())
    assert present.model is not None and present.together is not None
    assert present.model.rate == pytest.approx(present.together.rate)


def test_the_files_of_a_cached_source_are_those_of_the_source(tmp_path: Path) -> None:
    path = tmp_path / "a" / "0.png"
    path.parent.mkdir()
    path.write_bytes(encode_image(np.zeros((8, 8, 3), np.uint8), "png"))
    leaf = cached(ps.Flow(ps.Images(tmp_path)).batch(1), at_source=True).running.program.leaves[0].source
    assert files_of(leaf, [0]) == [path]


def test_the_frames_of_clips_are_kept_where_a_recipe_has_a_cache(tmp_path: Path) -> None:
    flow = ps.Flow(ps.Videos(write_video(tmp_path / "a.mp4", 40))).clips(3).batch(2)
    found = trials.cache_remedy(patient(flow, spelling=Spelling(caches_source=True)))
    assert found is not None and found.needs.startswith("needs ")


def test_videos_are_packed_before_a_cache_is_tried(tmp_path: Path) -> None:
    videos = patient(ps.Flow(ps.Videos(write_video(tmp_path / "a.mp4", 40))).batch(4))
    assert [trial.name for trial in _in_order(videos)][:2] == ["a pack", "a cache"]
    assert [trial.name for trial in _in_order(patient())][:2] == ["a cache", "a pack"]
