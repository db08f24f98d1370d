"""Settings follow from measured costs: the rules by made-up numbers, the whole by simulated pipelines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.flow.measuring.cost_model import Setup, feed_rate
from penstock.flow.measuring.waits import CoreWait
from penstock.flow.tuning import cores as cores_module
from penstock.flow.tuning.allocating import (
    Limits,
    Measured,
    Settings,
    arranged,
    batches_to_bridge,
    begun,
    changes,
    is_kept,
    is_like,
    needed,
    parts_of_batch,
    worth_having,
)
from penstock.flow.tuning.remembering import Remembered
from penstock.flow.tuning.tuner import Tuner
from simulated_feed import Fixed, Regime, Workers, run

SETTLED = 5.0  # seconds


def constant(value: float) -> Callable[[float], float]:
    return lambda now: value


def steady(value: float) -> Callable[[float, int], float]:
    return lambda now, batch: value


def bursts(quick: float, slow: float, every: int) -> Callable[[float, int], float]:
    return lambda now, batch: slow if batch % every == every - 1 else quick


REGIMES = [
    Regime("decoding binds", constant(1e-3)),
    Regime("decoding binds, samples cost differently", constant(1e-3), spread=0.8),
    Regime("decoding binds on eight cores", constant(1e-3), cores=8),
    Regime("decoding binds, slow samples", constant(20e-3), rows=16),
    Regime("cheap samples", constant(10e-6), rows=512),
    Regime("reads of 5 ms bind", constant(0.5e-3), read=5e-3),
    Regime("reads of 20 ms bind", constant(1e-3), read=20e-3, rows=32),
    Regime("a disk that serves four reads at once", constant(0.2e-3), read=4e-3, readers=4),
    Regime("the consumer is twice as slow", constant(1e-3), consumer=steady(64e-3)),
    Regime("the consumer is ten times as slow", constant(1e-3), consumer=steady(320e-3)),
    Regime("the consumer is as fast as the feed", constant(1e-3), consumer=steady(32e-3), spread=0.3),
    Regime("the consumer takes batches in bursts", constant(1e-3), consumer=bursts(4e-3, 400e-3, 8)),
    Regime("the consumer takes batches in long bursts", constant(1e-3), consumer=bursts(4e-3, 400e-3, 16)),
    Regime("reads bind and the consumer is slow", constant(0.5e-3), read=5e-3, consumer=steady(30e-3)),
    Regime("samples get dearer", lambda now: 1e-3 if now < 2 else 4e-3),
    Regime("the consumer gets faster", constant(1e-3), consumer=lambda now, batch: 0.2 if now < 2 else 0.0),
]


def best_fixed_rate(regime: Regime, start: float, stop: float) -> float:
    grid = [
        Settings(workers, prefetch, task_rows)
        for workers in sorted({1, regime.cores, 4 * regime.cores, 40})
        for prefetch in (2, 16)
        for task_rows in (None, regime.rows, max(regime.rows // 8, 1))
    ]
    return max(run(regime, Fixed(settings), stop).rate(start, stop) for settings in grid)


@pytest.mark.parametrize("regime", REGIMES, ids=lambda regime: regime.name)
def test_within_five_seconds_it_is_within_five_percent_of_the_best_fixed_setting(regime: Regime) -> None:
    stop = SETTLED + 3
    tuned = run(regime, Tuner(None, None, cores=regime.cores), stop).rate(SETTLED, stop)
    assert tuned >= 0.95 * best_fixed_rate(regime, SETTLED, stop)


@pytest.mark.parametrize("regime", REGIMES, ids=lambda regime: regime.name)
def test_pins_are_never_changed(regime: Regime) -> None:
    outcome = run(regime, Tuner(3, 4, cores=regime.cores), 5)
    assert {(settings.workers, settings.prefetch) for settings in outcome.settings} == {(3, 4)}


def test_a_slow_consumer_gets_along_with_one_worker_and_a_fast_one_takes_them_again() -> None:
    regime = Regime("", constant(1e-3), consumer=lambda now, batch: 0.2 if now < 6 else 0.0, cores=8)
    outcome = run(regime, Tuner(None, None, cores=8), 9)
    before = [settings.workers for time, settings in zip(outcome.times, outcome.settings, strict=True) if 5 < time < 6]
    assert set(before) == {1}
    assert outcome.settings[-1].workers == 8


def test_more_threads_than_cores_are_only_kept_where_workers_wait() -> None:
    decoding = run(Regime("", constant(1e-3)), Tuner(None, None, cores=2), 6)
    reading = run(Regime("", constant(0.2e-3), read=4e-3), Tuner(None, None, cores=2), 6)
    assert decoding.settings[-1].workers == 2
    assert reading.settings[-1].workers > 16


def test_what_does_not_help_is_taken_back_and_not_tried_again_at_once() -> None:
    tuner = Tuner(None, None, cores=2)
    outcome = run(Regime("", constant(0.05e-3), read=4e-3, readers=2, rows=16, spread=0.0), tuner, 12)
    assert outcome.settings[-1].workers == 2
    refused = [trial for trial in tuner.history if trial.get("kept") is False]
    assert [trial["workers"] for trial in refused] == [8]


def test_what_did_not_help_is_tried_again_much_later() -> None:
    tuner = Tuner(None, None, cores=2)
    run(Regime("", constant(0.05e-3), read=4e-3, readers=2, rows=16, spread=0.0), tuner, 50)
    first, second, *_ = [trial["seconds"] for trial in tuner.history if trial["workers"] == 8]
    assert first < 5 and second > first + 30


def test_no_more_batches_ahead_than_the_budget_has_room_for() -> None:
    regime = Regime("", constant(1e-3), consumer=bursts(4e-3, 400e-3, 16))
    free = run(regime, Tuner(None, None, cores=2), 8)
    tight = run(regime, Tuner(None, None, cores=2), 8, most_prefetch=3)
    assert max(settings.prefetch for settings in free.settings) >= 8
    assert max(settings.prefetch for settings in tight.settings) == 3


def test_workers_in_the_calling_thread_are_not_tuned() -> None:
    tuner = Tuner(0, None, cores=4)
    assert tuner.settings == Settings(0, 0)


# The rules


def measured(
    *, cpu: float, wait: float = 0.0, waited: float = 1.0, consumer: float = 0.0, samples: int = 1000
) -> Measured:
    """A window in which `samples` were made, each for `cpu` seconds and `wait` seconds of waiting."""
    return Measured(samples // 64, samples, waited, consumer, samples, cpu * samples, wait * samples)


def test_cores_are_worth_as_many_workers_as_keep_them_busy() -> None:
    assert worth_having(measured(cpu=1e-3), 4) == 4
    assert worth_having(measured(cpu=1e-3, wait=1e-3), 4) == 8
    assert worth_having(measured(cpu=1e-3, wait=1.0), 4) == 64
    assert worth_having(measured(cpu=0.0), 4) == 4


def test_waiting_for_a_core_is_no_reason_for_more_workers() -> None:
    contended = Measured(20, 1000, 1.0, 0.0, 1000, cpu_seconds=1.0, wait_seconds=0.0, core_wait_seconds=3.0)
    assert worth_having(contended, 4) == 4
    assert contended.busy(4) == 1.0


def test_core_wait_is_counted_for_its_own_thread_and_leaves_no_file_open() -> None:
    open_files = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0
    with CoreWait() as core_wait:
        first = core_wait.seconds()
        assert 0 <= first <= core_wait.seconds()
    assert core_wait.seconds() == 0.0
    if open_files:
        assert len(list(Path("/proc/self/fd").iterdir())) == open_files


def test_a_consumer_needs_its_rate_times_the_time_of_a_sample_and_a_tenth() -> None:
    assert needed(measured(cpu=1e-3, waited=0.0, consumer=1.0, samples=1000)) == 2
    assert needed(measured(cpu=1e-3, waited=0.0, consumer=1.0, samples=900)) == 1
    assert needed(measured(cpu=1e-3, wait=9e-3, waited=0.0, consumer=1.0, samples=1000)) == 11


def test_what_workers_could_make_is_bound_by_their_number_and_by_cores() -> None:
    cost = measured(cpu=1e-3, wait=1e-3).sample_cost
    assert feed_rate(cost, Setup(4, workers=2)) == pytest.approx(1000)
    assert feed_rate(cost, Setup(4, workers=100)) == pytest.approx(4000)
    contended = Measured(20, 1000, 1.0, 0.0, 1000, cpu_seconds=1.0, wait_seconds=0.0, core_wait_seconds=3.0)
    assert feed_rate(contended.sample_cost, Setup(4, workers=4)) == pytest.approx(1000)  # as they share the cores


def test_cheap_batches_are_one_task_and_dear_ones_are_cut_into_tasks_of_80_ms() -> None:
    assert parts_of_batch(512, 1e-6) == 1
    assert parts_of_batch(64, 0.3e-3) == 1
    assert parts_of_batch(64, 1e-3) == 1
    assert parts_of_batch(64, 2e-3) == 1
    assert parts_of_batch(64, 5e-3) == 4
    assert parts_of_batch(8, 1.0) == 100


def test_the_first_batch_is_shared_by_all_workers() -> None:
    settings = Settings(4, 2, 64)
    assert settings.rows_of_task(64) == 64
    assert settings.rows_of_task(64, is_shared=True) == 16
    assert Settings(4, 2, 3).rows_of_task(64, is_shared=True) == 3
    assert Settings(0, 0).rows_of_task(64) == 64


@pytest.mark.parametrize("workers", [1, 2, 8, 64])
@pytest.mark.parametrize("cpu", [1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("most_prefetch", [1, 3, 32])
def test_all_workers_have_a_task_in_hand_while_the_consumer_is_busy(
    workers: int, cpu: float, most_prefetch: int
) -> None:
    limits = Limits(2, 64, most_prefetch)
    settings = arranged(Settings(2, 1), workers, measured(cpu=cpu), limits)
    tasks = -(-64 // settings.rows_of_task(64))
    assert tasks * settings.prefetch >= min(workers, 64 * settings.prefetch)
    assert settings.prefetch <= most_prefetch


def test_a_batch_of_one_row_is_not_cut() -> None:
    assert arranged(Settings(8, 2), 8, measured(cpu=1.0), Limits(8, 1)).task_rows == 1


def test_idle_workers_and_a_waiting_consumer_ask_for_more_batches_ahead() -> None:
    bursty = measured(cpu=1e-3, waited=1.0, consumer=1.0, samples=2000)
    (change,) = changes(Settings(2, 2, 64), bursty, Limits(2, 64))
    assert change.settings == Settings(2, 4, 64)


def test_a_consumer_that_hardly_waits_asks_for_nothing_more() -> None:
    fed = measured(cpu=1e-3, wait=9e-3, waited=0.02, consumer=0.98, samples=1000)
    assert changes(Settings(11, 8, 22), fed, Limits(2, 64)) == []


def test_batches_ahead_bridge_bursts_as_far_as_they_can_be_won_back() -> None:
    assert batches_to_bridge([0.01] * 100, 0.02) == 1  # always faster: nothing is ever won
    assert batches_to_bridge([0.04] * 100, 0.02) == 1  # always slower: nothing is ever lost
    assert batches_to_bridge([0.0, 0.0, 0.0, 0.0, 1.0] * 10, 0.1) == 5
    assert batches_to_bridge([0.0, 0.0, 0.0, 0.0, 0.3] * 10, 0.1) == 3


def test_more_must_bring_more_and_fewer_must_do() -> None:
    before, after = measured(cpu=1e-3, waited=1.0, samples=6400), measured(cpu=1e-3, waited=0.98, samples=6400)
    assert not is_kept("more", before, after)
    assert is_kept("same", before, after)
    assert is_kept("more", before, measured(cpu=1e-3, waited=0.96, samples=6400))
    assert is_kept("ahead", before, measured(cpu=1e-3, waited=0.9, consumer=0.3, samples=6400))
    assert not is_kept("ahead", before, after)
    assert is_kept("fewer", before, measured(cpu=1e-3, waited=0.02, consumer=0.98))
    assert not is_kept("fewer", before, measured(cpu=1e-3, waited=0.1, consumer=0.9))


def test_what_was_refused_may_be_tried_again_when_costs_change() -> None:
    assert is_like(measured(cpu=1e-3), measured(cpu=1.2e-3))
    assert not is_like(measured(cpu=1e-3), measured(cpu=2e-3))


# What the engine says


def test_a_trial_that_an_epoch_ends_in_is_taken_back() -> None:
    regime = Regime("", constant(0.5e-3), read=5e-3)
    for seconds in (1.8, 2.0):
        tuner = Tuner(None, None, cores=2)
        run(regime, tuner, seconds)
        assert tuner.settings.workers > 2 and len(tuner.history) == 1
        tuner.ended(Workers(regime, 2))
        assert tuner.settings == Settings(2, 2)


def test_the_first_batch_tells_whether_a_worker_has_whole_ones() -> None:
    limits = Limits(2, 64)
    assert begun(Settings(2, 2), 1e-3, limits) == Settings(2, 3, 64)
    assert begun(Settings(2, 2), 1e-2, limits) is None  # more than half a second: nobody knows yet
    assert begun(Settings(8, 2), 1e-3, limits) is None  # eight batches at once would be too much memory
    assert begun(Settings(2, 2), 1e-3, Limits(2, 64, most_prefetch=1)) is None
    assert begun(Settings(2, 4), 1e-3, Limits(2, 64, prefetch=4)) == Settings(2, 4, 64)
    tuner = Tuner(None, None, cores=2)
    run(Regime("", constant(1e-3)), tuner, 0.2)
    assert tuner.settings == Settings(2, 3, 64)


def test_every_trial_is_in_the_history_with_its_outcome() -> None:
    tuner = Tuner(None, None, cores=2)
    run(Regime("", constant(0.5e-3), read=5e-3), tuner, 8)
    first, *trials = tuner.history
    assert first["why"] == "start"
    assert trials
    assert all({"workers", "prefetch", "task_rows", "why", "kept", "gain"} <= set(trial) for trial in trials)
    assert tuner.reasons["workers"].startswith("measured")


def test_remembered_settings_are_where_the_next_run_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    regime = Regime("", constant(0.5e-3), read=5e-3)
    first = Tuner(None, None, cores=2, remembered=Remembered(lambda: "plan"))
    run(regime, first, 6)
    first.ended(Workers(regime, 2))
    second = Tuner(None, None, cores=2, remembered=Remembered(lambda: "plan"))
    second.recall()
    assert second.settings.workers > 8
    assert second.reasons["workers"] == "remembered from an earlier run"
    pinned = Tuner(3, 2, cores=2, remembered=Remembered(lambda: "plan"))
    pinned.recall()
    assert (pinned.settings.workers, pinned.settings.prefetch) == (3, 2)
    assert pinned.reasons["workers"] == "pinned"


def test_what_was_pinned_is_not_remembered_as_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    regime = Regime("", constant(0.5e-3), read=5e-3)
    for workers, prefetch in ((60, None), (None, 30)):
        tuner = Tuner(workers, prefetch, cores=2, remembered=Remembered(lambda: "plan"))
        run(regime, tuner, 6)
        assert len(tuner.history) > 1
        tuner.ended(Workers(regime, 2))
    assert Remembered(lambda: "plan").read() is None


# Cores


def test_a_quota_limits_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores_module, "_allowed", lambda: 16)
    monkeypatch.setattr(cores_module, "_quotas", lambda: [2.5, 8.0])
    assert cores_module.cores.__wrapped__() == 3
    monkeypatch.setattr(cores_module, "_quotas", list)
    assert cores_module.cores.__wrapped__() == 16


@pytest.mark.parametrize(
    ("words", "expected"),
    [("max 100000", None), ("150000 100000", 1.5), ("-1 100000", None), ("", None), ("100000", None), ("1 0", None)],
)
def test_quotas_are_read_as_the_kernel_writes_them(words: str, expected: float | None) -> None:
    assert cores_module.quota_of(words) == expected
