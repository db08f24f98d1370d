"""What is measured of sources whose costs are known."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from ailing_sources import Distant, Quick, Throttled, flow_of, quick_step, slow_function, slow_step
from made_sources import Pictures
from penstock.diagnosis.comparing import Case
from penstock.diagnosis.diagnosing import Options, measured
from penstock.diagnosis.present import cost_of
from penstock.diagnosis.profiling import GilShare, Profile, profile
from penstock.diagnosis.reading import measured_reading
from penstock.diagnosis.runs import run_feed, run_model
from penstock.diagnosis.spelling import Spelling
from penstock.errors import OptionError
from penstock.flow.measuring.metrics import Costs, HopCost, Metrics
from penstock.flow.measuring.sample_times import SampleTimes
from penstock.flow.measuring.waits import Waiting
from penstock.samples import as_store


def test_a_disk_that_serves_one_after_another_has_a_limit() -> None:
    found = measured_reading(as_store(Throttled()), 0.4)
    assert found.warm.most_per_second <= 100  # 10 ms each
    assert found.warm.many.is_waiting and found.cold is None


def test_a_distant_disk_that_serves_many_has_none() -> None:
    assert math.isinf(measured_reading(as_store(Distant()), 0.4).warm.most_per_second)


def test_reading_that_only_computes_is_not_limited_by_a_disk() -> None:
    assert math.isinf(measured_reading(as_store(Pictures(20)), 0.2).warm.most_per_second)


def test_bytes_of_mapped_files_are_touched_when_they_are_read(tmp_path: Path) -> None:
    packed = ps.pack(Pictures(30), tmp_path / "some.pack")
    found = measured_reading(packed, 0.2)
    assert found.warm.one.bytes == pytest.approx(
        np.mean([len(packed.read(index).data) for index in range(30)]), rel=0.3
    )
    assert {file.suffix for file in found.files} == {".arrow"}


def test_a_sample_that_cannot_be_read_does_not_stop_reading() -> None:
    class Broken(Quick):
        def read(self, index: int) -> ps.Raw:
            raise OSError("gone")

    assert measured_reading(as_store(Broken()), 0.1).warm.one.bytes == 0


def test_the_cost_of_a_sleep_is_waiting_and_not_cpu() -> None:
    found = profile(flow_of(Distant()).running.program, 0.3)
    assert found.alone.hops["read"].wait_seconds > 0.5 * 0.01
    assert found.alone.cpu_seconds < 0.01


def test_time_without_a_core_is_no_waiting() -> None:
    costs = Costs(core_wait_seconds=3.0)
    costs.hops["decode"].add(HopCost(10, 1.0, 4.0, 0))
    found = SampleTimes.of(costs, 10, 1)
    assert found.wait_seconds == pytest.approx(0.1) and found.core_wait_seconds == pytest.approx(0.3)
    assert found.core_share == pytest.approx(0.25)


def test_delivering_is_no_cost_of_the_workers_and_its_waiting_is_for_them() -> None:
    costs = Costs(core_wait_seconds=1.0)
    costs.hops["decode"].add(HopCost(10, 1.0, 2.0, 0))
    costs.hops["deliver"].add(HopCost(10, 3.0, 50.0, 0))
    found = SampleTimes.of(costs, 10, 1)
    assert (found.cpu_seconds, found.wait_seconds) == (pytest.approx(0.1), pytest.approx(0.1))
    metrics = Metrics()
    metrics.made(costs, 10)
    assert metrics.work()[1:] == pytest.approx((1.0, 1.0, 1.0))  # the same, for the tuner and explanations


def test_what_hands_over_the_batches_of_a_stream_is_counted_once() -> None:
    flow = ps.Flow(ps.from_generator(lambda: iter([(np.zeros(2), 1)] * 2000), names=("x", "y")), workers=1).batch(8)
    present = measured(flow, Case(flow, None, 0), Options(seconds=1), Spelling())
    workers = present.feed.costs.worker_cpu_seconds / present.feed.samples
    assert present.cost.deliver > 0 and present.cost.cpu == pytest.approx(workers)
    assert present.cost.wait == pytest.approx(present.feed.costs.worker_wait_seconds / present.feed.samples)


def test_a_lock_is_held_while_reading() -> None:
    costs = Costs()
    costs.hops["read"].add(HopCost(10, 1.0, 1.0, 0))
    times = SampleTimes.of(costs, 10, 1)
    assert Profile(times, times, has_lock=True).locked_seconds == pytest.approx(0.2)
    assert Profile(times, times).locked_seconds == 0


def test_who_holds_the_gil_is_found_out() -> None:
    held = profile(ps.Flow(Quick()).map(slow_function, field="image").batch(8).running.program, 1.0)
    assert held.gil_share > 0.5 and held.held_seconds > 0.5 * held.alone.cpu_seconds
    assert profile(flow_of(Distant()).running.program, 0.5).gil_share < 0.5


def test_the_gil_is_held_for_a_part_of_the_time_and_not_of_the_questions() -> None:
    share = GilShare()
    for _ in range(10):  # 20 ms in which it is free, and 70 ms in which each question waits for it
        share._note(0.002)
        share._note(0.007)
    assert share.share == pytest.approx(7 / 9)


def test_a_library_that_holds_the_gil_while_it_has_its_lock_is_said_to_hold_the_lock() -> None:
    costs = Costs()
    costs.hops["read"].add(HopCost(10, 1.0, 0.0, 0))
    times = SampleTimes.of(costs, 10, 1)
    found = cost_of(Profile(times, times, gil_share=1.0, has_lock=True), 0.0, math.inf)
    assert (found.locked, found.held) == (pytest.approx(0.1), 0.0)
    assert cost_of(Profile(times, times, gil_share=1.0), 0.0, math.inf).held == pytest.approx(0.1)


def test_functions_of_whole_batches_are_measured_with_whole_batches() -> None:
    flow = ps.Flow(Quick()).batch(8).map(lambda batch: batch, batched=True)
    assert profile(flow.running.program, 0.1).alone.cpu_seconds > 0


def test_an_error_of_a_sample_is_raised() -> None:
    flow = ps.Flow(Pictures(8, broken=(0,))).batch(8)
    with pytest.raises(ps.HopError, match="sample 0"):
        profile(flow.running.program, 0.1)


def test_a_model_that_sleeps_takes_its_time_and_no_core() -> None:
    found = run_model(slow_step, {}, 10, 0.1)
    assert found.seconds >= 0.005 and found.cpu < found.seconds


def test_the_consumer_of_a_feed_waits_or_uses() -> None:
    found = run_feed(flow_of(Throttled()), 0.3, quick_step)
    assert found.waiting.is_bound_by_data
    assert found.rate <= 110 and found.rows == 8
    assert not run_feed(flow_of(Quick()), 0.3, slow_step).waiting.is_bound_by_data


def test_a_stream_that_ends_at_once_is_measured_too() -> None:
    flow = ps.Flow(ps.from_generator(lambda: iter([(np.zeros(2), 1)] * 20), names=("x", "y"))).batch(8)
    assert run_feed(flow, 0.5).samples > 0


def test_a_flow_of_nothing_is_an_error() -> None:
    with pytest.raises(OptionError, match="no batch"):
        run_feed(flow_of(Quick(0)), 0.1)


@pytest.mark.parametrize(("waited", "used", "binds"), [(0.99, 9.01, False), (1.0, 9.0, True), (0.0, 0.0, False)])
def test_a_tenth_of_the_time_is_where_data_begins_to_bind(waited: float, used: float, binds: bool) -> None:
    assert Waiting(waited, used).is_bound_by_data is binds


def test_the_gain_of_never_waiting_has_an_end() -> None:
    assert Waiting(5.0, 5.0).gain == 2.0
    assert Waiting(5.0, 0.0).gain == 100.0
