"""What a feed gives is the least of what its resources allow."""

from __future__ import annotations

import math

import pytest

from penstock.flow.measuring.cost_model import (
    ModelCost,
    SampleCost,
    Setup,
    feed_rate,
    limits,
    share_of,
    training_rate,
    workers_that_fill,
    workers_that_give,
)

THREADS = Setup(cores=4, workers=None)
PROCESSES = Setup(cores=4, workers=None, in_threads=False)


def binding(cost: SampleCost, setup: Setup = THREADS) -> tuple[str, float]:
    first = limits(cost, setup)[0]
    return first.resource, first.rate


def test_cores_divide_their_time_by_the_cpu_of_a_sample_and_of_handing_it_over() -> None:
    assert binding(SampleCost(cpu=0.009, deliver=0.001)) == ("cores", pytest.approx(400))


def test_pinned_workers_wait_with_samples_in_hand() -> None:
    cost = SampleCost(cpu=0.001, wait=0.009)
    assert binding(cost, Setup(4, workers=2)) == ("workers", pytest.approx(200))
    assert binding(cost) == ("cores", pytest.approx(4000))


def test_without_workers_everything_is_done_one_after_the_other() -> None:
    cost = SampleCost(cpu=0.004, wait=0.004, deliver=0.002)
    assert binding(cost, Setup(4, workers=0)) == ("calling thread", pytest.approx(100))


def test_a_disk_gives_what_it_gives() -> None:
    assert binding(SampleCost(cpu=0.001, wait=0.001, reading_rate=50)) == ("disk", 50)


def test_a_lock_lets_one_thread_of_a_process_in() -> None:
    cost = SampleCost(cpu=0.005, locked=0.004)
    assert binding(cost) == ("lock", pytest.approx(250))
    assert binding(cost, PROCESSES) == ("cores", pytest.approx(800))


def test_threads_that_wait_for_the_gil_are_not_worth_their_number() -> None:
    cost = SampleCost(cpu=0.01, held=0.008)
    assert binding(cost) == ("gil", pytest.approx(125))
    assert binding(cost, PROCESSES) == ("cores", pytest.approx(400))


def test_a_gil_that_is_held_for_less_than_the_share_of_a_core_does_not_bind() -> None:
    assert binding(SampleCost(cpu=0.01, held=0.002))[0] == "cores"


def test_small_batches_are_handed_over_by_one_thread() -> None:
    assert binding(SampleCost(cpu=0.0001, deliver=0.001)) == ("deliver", pytest.approx(1000))


def test_what_costs_nothing_has_no_limit() -> None:
    assert math.isinf(feed_rate(SampleCost(cpu=0), THREADS))


def test_workers_are_worth_having_until_all_cores_are_busy() -> None:
    cost = SampleCost(cpu=0.002, wait=0.006)
    filled = workers_that_fill(cost, 4)
    assert filled == pytest.approx(16)
    by_cores = feed_rate(cost, THREADS)
    assert feed_rate(cost, Setup(4, workers=16)) == pytest.approx(by_cores)
    assert feed_rate(cost, Setup(4, workers=15)) < by_cores
    assert workers_that_fill(SampleCost(cpu=0, wait=1.0), 4) == 4


def test_so_many_workers_give_so_many_samples() -> None:
    cost = SampleCost(cpu=0.001, wait=0.009)
    assert feed_rate(cost, Setup(4, workers=3)) == pytest.approx(300)
    assert workers_that_give(cost, 300) == pytest.approx(3)


def test_a_training_goes_as_fast_as_the_slower_of_feed_and_model() -> None:
    cost = SampleCost(cpu=0.01)
    assert training_rate(cost, THREADS, None) == pytest.approx(400)
    assert training_rate(cost, THREADS, ModelCost(0.01)) == pytest.approx(100)
    assert training_rate(cost, THREADS, ModelCost(0.0001)) == pytest.approx(400)


def test_a_model_on_the_same_cores_takes_them_from_the_feed() -> None:
    assert training_rate(SampleCost(cpu=0.01), THREADS, ModelCost(0.0025, cpu=0.01)) == pytest.approx(200)


def test_without_workers_nothing_is_made_while_the_model_runs() -> None:
    cost, model = SampleCost(cpu=0.01), ModelCost(0.03)
    assert training_rate(cost, Setup(4, workers=0), model) == pytest.approx(25)


def test_cores_that_others_use_count_by_what_they_leave() -> None:
    quarter = Setup(cores=4, workers=None, share=0.25)
    assert binding(SampleCost(cpu=0.01), quarter) == ("cores", pytest.approx(100))
    assert binding(SampleCost(cpu=0.01, wait=0.06), Setup(4, 1, share=0.25)) == ("workers", pytest.approx(10))
    assert binding(SampleCost(cpu=0.001, reading_rate=50), quarter) == ("disk", 50)
    assert training_rate(SampleCost(cpu=0.01), quarter, ModelCost(0.001, cpu=0.01)) == pytest.approx(50)


def test_the_share_of_the_cores_follows_from_what_the_feed_gave() -> None:
    assert share_of(SampleCost(cpu=0.01), THREADS, 100, core_share=0.9) == pytest.approx(0.25)
    assert share_of(SampleCost(cpu=0.01), THREADS, 500, core_share=0.9) == 1.0
    assert share_of(SampleCost(cpu=0.01, reading_rate=50), THREADS, 50, core_share=0.9) == 0.9
