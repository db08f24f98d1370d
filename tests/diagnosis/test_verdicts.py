"""One sentence for each thing that can bind."""

from __future__ import annotations

from dataclasses import replace

import penstock as ps
from ailing_sources import Quick, slow_function
from diagnosis.patients import feed_run, patient, times
from penstock.diagnosis.profiling import Profile
from penstock.diagnosis.verdicts import verdict_of
from penstock.flow.measuring.cost_model import ModelCost, SampleCost, Setup


def test_without_a_model_the_dearest_hop_is_named_and_nothing_waits() -> None:
    found = verdict_of(patient())
    assert (found.resource, found.hop, found.is_input_bound) == ("cores", "decode", False)
    assert str(found) == "the feed is bound by decode: it gives 400 samples/s"


def test_a_model_that_waits_is_bound_by_the_feed() -> None:
    found = verdict_of(patient(model=ModelCost(1 / 980), waited=5.0))
    assert (found.hop, found.is_input_bound) == ("decode", True)
    assert str(found) == "training is bound by decode: the feed gives 400 samples/s, the model could take 980"


def test_a_model_that_hardly_waits_is_the_limit_itself() -> None:
    found = verdict_of(patient(model=ModelCost(1 / 100), waited=0.9))
    assert (found.resource, found.hop, found.is_input_bound) == ("model", "model", False)
    assert "it takes 100 samples/s, and the feed could give 400" in str(found)


def test_a_tenth_of_the_time_is_waiting() -> None:
    assert verdict_of(patient(model=ModelCost(1 / 100), waited=1.0)).is_input_bound


def test_cores_that_are_shared_with_the_model_are_said_to_be() -> None:
    found = verdict_of(patient(model=ModelCost(0.0025, cpu=0.01), waited=3.0))
    assert found.is_input_bound and "cores that feed and model share" in str(found)


def test_a_feed_that_alone_is_enough_is_not_blamed() -> None:
    found = verdict_of(patient(model=ModelCost(1 / 350, cpu=1 / 350), setup=Setup(4, 1), waited=3.0))
    assert found.is_input_bound and "alone the feed gives 400 samples/s and the model takes 350" in str(found)
    on_a_device = verdict_of(patient(model=ModelCost(1 / 350), setup=Setup(4, 1), waited=3.0))
    assert on_a_device.resource == "workers"


def test_a_model_that_hardly_waits_may_share_the_cores_too() -> None:
    found = verdict_of(patient(model=ModelCost(0.0025, cpu=0.01), waited=0.5))
    assert found.resource == "model" and "which shares the cores with the feed" in str(found)


def test_a_slow_disk_is_no_slow_decoder() -> None:
    found = verdict_of(patient(cost=SampleCost(cpu=0.01, reading_rate=30)))
    assert (found.resource, found.hop) == ("disk", "read")
    assert "waits for its bytes" in str(found)


def test_the_function_that_holds_the_gil_is_named() -> None:
    function = ps.Flow(Quick()).map(slow_function, field="image").batch(8)
    found = verdict_of(patient(function, cost=SampleCost(cpu=0.01, held=0.009)))
    assert (found.resource, found.hop) == ("gil", "transform")
    assert "slow_function holds the GIL" in str(found)


def test_a_lock_is_told_from_the_gil() -> None:
    profile = Profile(times(read=(0.01, 0.0)), times(4, read=(0.01, 0.03)), has_lock=True)
    found = verdict_of(patient(profile=profile, cost=SampleCost(cpu=0.01, locked=profile.locked_seconds)))
    assert (found.resource, found.hop) == ("lock", "read")


def test_pinned_workers_are_counted() -> None:
    found = verdict_of(patient(setup=Setup(4, 1)))
    assert found.resource == "workers" and "with 1 worker on 4 cores" in str(found)


def test_the_calling_thread_works_alone() -> None:
    assert "workers=0" in str(verdict_of(patient(setup=Setup(4, 0))))


def test_handing_over_may_be_all_there_is() -> None:
    found = verdict_of(patient(cost=SampleCost(cpu=0.0001, deliver=0.001)))
    assert (found.resource, found.hop) == ("deliver", "deliver")


def test_other_programs_are_mentioned_where_they_have_the_cores() -> None:
    crowded = replace(times(4), core_wait_seconds=0.05)
    found = verdict_of(patient(profile=Profile(times(), crowded), feed=feed_run(100)))
    assert "other programs use most of the cores, with all of them it could give 400" in str(found)
