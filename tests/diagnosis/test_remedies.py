"""What is proposed, for what, and how it is spelled."""

from __future__ import annotations

import shlex
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from ailing_sources import Distant, Quick, Throttled, cached_flow_of, flow_of, quick_step, slow_step
from commands import run_here
from diagnosis.patients import MACHINE, feed_run, patient
from made_sources import Pictures
from penstock.diagnosis import trials
from penstock.diagnosis.diagnosis import Remedy
from penstock.diagnosis.hardware import Gpu
from penstock.diagnosis.present import KeptReads
from penstock.diagnosis.reading import measured_reading
from penstock.diagnosis.remedies import (
    MOST_REMEDIES,
    MOST_SPEED_UP,
    WORTH_SAYING,
    disk_remedy,
    executor_remedy,
    model_remedy,
    most_by,
    prefetch_remedy,
    remedies_of,
    workers_remedy,
)
from penstock.diagnosis.spelling import Spelling
from penstock.diagnosis.trials import applied
from penstock.flow.measuring.cost_model import ModelCost, SampleCost, Setup
from penstock.flow.steps import Cache
from penstock.samples import as_store
from picture_making import write_picture

HOLDS_GIL = SampleCost(cpu=0.01, held=0.01)


def test_processes_are_for_what_holds_the_gil_and_bring_what_the_cores_allow() -> None:
    found = executor_remedy(patient(cost=HOLDS_GIL))
    assert found is not None and found.is_cheap
    assert found.speed_up == pytest.approx(4.0)
    assert executor_remedy(patient()) is None
    assert executor_remedy(patient(cost=HOLDS_GIL, setup=Setup(4, None, in_threads=False))) is None


def test_processes_are_not_proposed_for_what_cannot_be_sent_to_them() -> None:
    lock = threading.Lock()
    flow = ps.Flow(Quick()).map(lambda image: image if lock else None, field="image").batch(8)
    assert executor_remedy(patient(flow, cost=HOLDS_GIL)) is None


def test_workers_that_are_pinned_are_let_go() -> None:
    found = workers_remedy(patient(setup=Setup(4, 1)))
    assert found is not None and found.speed_up == pytest.approx(4.0)
    assert workers_remedy(patient()) is None


def test_batches_ahead_are_let_go_where_feed_and_model_wait_for_one_another() -> None:
    pinned = flow_of(Quick()).prefetch(1)
    slow = patient(pinned, model=ModelCost(1 / 400), together=feed_run(200, 5, 5))
    found = prefetch_remedy(slow)
    assert found is not None and found.speed_up == pytest.approx(2.0)
    assert prefetch_remedy(replace(slow, together=feed_run(390, 5, 5))) is None
    assert prefetch_remedy(patient(model=ModelCost(1 / 400), together=feed_run(200, 5, 5))) is None


def test_a_faster_disk_helps_until_the_next_limit() -> None:
    found = disk_remedy(patient(cost=SampleCost(cpu=0.01, reading_rate=100)))
    assert found is not None and found.speed_up == pytest.approx(4.0) and not found.is_cheap
    assert disk_remedy(patient()) is None


def test_a_faster_model_helps_until_the_feed_binds_and_is_warned_of() -> None:
    found = model_remedy(patient(model=ModelCost(1 / 100), together=feed_run(100, 0, 10)))
    assert found is not None and found.speed_up == pytest.approx(4.0) and "accuracy" in found.warning
    assert not found.is_cheap


def test_a_faster_model_brings_nothing_where_it_waits_all_the_time() -> None:
    waits = {"model": ModelCost(1 / 4000), "feed": feed_run(400), "together": feed_run(200, 9.0, 1.0)}
    found = model_remedy(patient(**waits))
    assert found is not None and found.speed_up == pytest.approx(10 / 9)
    shares_cores = model_remedy(patient(**{**waits, "model": ModelCost(1 / 4000, cpu=1 / 4000)}))
    assert shares_cores is not None and shares_cores.speed_up == pytest.approx(2.0)
    assert "waits for data 90%" in found.what and "could give 400" in shares_cores.what


@pytest.mark.parametrize("waited", [0.0, 0.06, 0.3])
def test_what_a_faster_model_brings_is_the_feed_beside_it_however_busy_the_machine_was(waited: float) -> None:
    # A model that has a core for a fraction of the time, and waits for one now and then: 0.3 and 213 samples/s.
    slow = patient(model=ModelCost(1 / 0.3, cpu=0.5), feed=feed_run(213), together=feed_run(0.3, waited, 10 - waited))
    ((model,), _) = remedies_of(slow, deadline=0.0)
    assert "could give 213 samples/s" in model.what
    assert model.speed_up == pytest.approx(slow.feed.rate / slow.measured_rate)


def test_no_remedy_promises_more_than_the_next_limit_that_is_printed_beside_it() -> None:
    bound = patient(setup=Setup(4, 1), model=ModelCost(1 / 150), together=feed_run(100, 9, 1), feed=feed_run(120))
    lucky = [Remedy(name, "", 3.9, "") for name in ("workers", "pack", "cache", "model", "batch")]
    limits = {"workers": 1.5, "pack": 1.5, "cache": 1.5, "model": 1.2, "batch": MOST_SPEED_UP}
    assert {one.name: most_by(one, bound) for one in lucky} == pytest.approx(limits)
    assert most_by(lucky[0], patient()) == MOST_SPEED_UP  # without a model nothing else binds


def test_what_brings_less_than_a_tenth_is_not_said_and_the_best_come_first() -> None:
    found, notes = remedies_of(patient(setup=Setup(4, 1)), deadline=0.0)
    assert [one.name for one in found] == ["workers"]
    assert [one.speed_up for one in found] == sorted((one.speed_up for one in found), reverse=True)
    assert all(one.speed_up >= WORTH_SAYING for one in found) and len(found) <= MOST_REMEDIES
    assert notes == ("not tried, because the time was over: a cache, a pack",)  # there is no device, and no model


# Trials


def test_a_cache_that_does_not_fit_is_not_proposed() -> None:
    fits = trials.cache_remedy(patient(flow_of(Pictures(40))))
    assert fits is not None and fits.is_cheap and "needs" in fits.needs
    small = flow_of(Pictures(40), memory=20_000)
    assert trials.cache_remedy(patient(small)) is None


def test_a_plan_with_a_cache_gets_no_second_one() -> None:
    assert not trials.cache_applies(patient(cached_flow_of(Pictures(40))))
    assert trials.cache_applies(patient())


def test_each_process_would_keep_samples_of_its_own_so_they_get_no_cache() -> None:
    assert trials.cache_remedy(patient(flow_of(Pictures(40), executor="process"))) is None


def test_images_are_stored_smaller_where_they_are_resized_anyway() -> None:
    large = as_store(Pictures(20, "jpeg"))
    flow = ps.Flow(large).map(ps.augment.RandomResizedCrop(8)).batch(4)
    assert trials.smaller_side(flow, large) == 8  # of 32 × 24, with room to crop
    cropped = ps.Flow(large).map(ps.augment.RandomCrop(8)).batch(4)
    assert trials.smaller_side(cropped, large) is None  # pixels would be others
    about = ps.Flow(large).map(ps.augment.RandomResizedCrop(24)).batch(4)
    assert trials.smaller_side(about, large) is None


def test_a_trial_packs_a_few_samples_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    flow = ps.Flow(Pictures(60, "jpeg")).map(ps.augment.RandomResizedCrop(8)).batch(4)
    found = trials.pack_remedy(patient(flow))
    assert found is not None and found.what == "pack at 8 px" and "of disk" in found.needs
    assert "shortest_side=8" in found.how and not found.is_cheap
    assert list(tmp_path.iterdir()) == []


def test_steps_on_pixels_go_to_a_device_only_where_there_is_one() -> None:
    flow = ps.Flow(Pictures(20)).map(ps.augment.Resize(8)).map(ps.augment.Grey()).batch(4)
    assert not trials.device_applies(patient(flow))
    with_gpu = patient(flow, hardware=replace(MACHINE, gpus=(Gpu("a GPU", 8 * 2**30),)))
    found = trials.device_remedy(with_gpu)
    assert trials.device_applies(with_gpu) and found is not None and "Grey" in found.what


def test_larger_batches_are_suggested_with_a_warning_and_never_applied() -> None:
    present = replace(patient(model=ModelCost(1.0)), step=quick_step)
    found = trials.batch_remedy(present)
    assert found is not None and "accuracy" in found.warning and not found.is_cheap
    assert found.how == ".batch(32)"


def test_a_step_that_takes_no_larger_batch_is_no_error() -> None:
    def picky(batch: dict[str, Any]) -> None:
        if len(batch["index"]) > 8:
            raise ValueError("eight, please")

    assert trials.batch_remedy(replace(patient(model=ModelCost(1.0)), step=picky)) is None


def test_what_the_cost_model_says_of_a_setting_is_replaced_by_what_it_brings() -> None:
    present = patient(flow_of(Distant(), workers=1), setup=Setup(4, 1), trial_seconds=0.5)
    remedies, _ = remedies_of(present, deadline=time.perf_counter() + 60)
    found = next(one for one in remedies if one.name == "workers")
    assert found.speed_up > 1.5
    assert found.speed_up != workers_remedy(present).speed_up  # type: ignore[union-attr]


def test_a_faster_disk_is_the_feed_on_samples_that_were_read_before() -> None:
    source = Throttled()
    present = patient(
        flow_of(source),
        cost=SampleCost(cpu=0.005, reading_rate=100),
        feed=feed_run(100),
        reading=measured_reading(as_store(source), 0.3),
        trial_seconds=0.3,
    )
    found = trials.confirmed(disk_remedy(present), present)  # type: ignore[arg-type]
    assert found.speed_up > 8  # 8 is what the cost model says
    assert found.needs == f"at least {found.speed_up * 100:,.0f} samples/s"


def test_samples_of_trials_are_read_before_only_where_reading_waits() -> None:
    waiting, quick = (
        patient(flow_of(source), reading=measured_reading(as_store(source), 0.2), feed=feed_run(100))
        for source in (Throttled(), Quick())
    )
    assert isinstance(waiting.stand_ins.images_at(np.arange(1)).store, KeptReads)
    assert quick.stand_ins.images_at(np.arange(1)).store.kind is Quick
    assert waiting.stand_ins is waiting.stand_ins  # read once for all trials


def test_the_same_bytes_on_the_same_disk_are_not_packed() -> None:
    flow = flow_of(Pictures(40))
    assert trials.pack_applies(patient(flow))
    slow_disk = SampleCost(cpu=0.01, reading_rate=100)
    assert not trials.pack_applies(patient(flow, cost=slow_disk))
    smaller = ps.Flow(Pictures(40, "jpeg")).map(ps.augment.RandomResizedCrop(8)).batch(4)
    assert trials.pack_applies(patient(smaller, cost=slow_disk))


def test_nothing_of_the_feed_is_tried_where_the_model_would_not_go_faster() -> None:
    bound = patient(model=ModelCost(1 / 100), together=feed_run(98, 0, 10), step=slow_step)
    assert bound.most_by_feed == pytest.approx(100 / 98)
    found, notes = remedies_of(bound, deadline=0.0)
    assert notes == ("not tried, because the time was over: larger batches",)
    assert [one.name for one in found] == ["model"]
    assert patient(model=ModelCost(1 / 100, cpu=1.0)).most_by_feed < 1  # a model that needs all cores


def test_a_slow_model_is_not_run_again_to_see_that_it_is_slow() -> None:
    def never(batch: dict[str, Any]) -> None:
        raise AssertionError("it was seen long enough")

    slow = patient(model=ModelCost(1.0), together=feed_run(1, 0, 10), step=never)
    assert not trials.batch_applies(slow)
    remedies, _ = remedies_of(slow, deadline=time.perf_counter() + 60)
    assert [one.name for one in remedies] == ["model"]


# Put in place


@pytest.mark.parametrize("name", ["executor", "workers", "prefetch", "cache"])
def test_cheap_remedies_leave_batches_as_they_are(name: str) -> None:
    flow = flow_of(Quick(20), workers=1).prefetch(1)
    cured = applied(flow, Remedy(name, "", 2.0, "", is_cheap=True), Spelling())
    before = [batch["image"].copy() for batch in flow.epoch(0)]
    after = [batch["image"].copy() for batch in cured.epoch(0)]
    cured.close()
    assert all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))
    assert (cured.plan, cured.options) != (flow.plan, flow.options)


def test_a_cache_comes_before_what_is_random() -> None:
    flow = ps.Flow(Pictures(20)).shuffle().map(ps.augment.Resize(16)).map(ps.augment.RandomCrop(8)).batch(4)
    remedy = Remedy("cache", "", 2.0, "", is_cheap=True)
    steps = applied(flow, remedy, Spelling()).plan.steps
    assert [step.name for step in steps] == ["shuffle", "Resize", "cache", "RandomCrop", "batch"]
    of_recipe = applied(flow, remedy, Spelling(caches_source=True)).plan.steps
    assert [step.name for step in of_recipe][:2] == ["cache", "shuffle"] and Cache("memory") in steps


# Spelling


def test_remedies_of_recipes_are_commands() -> None:
    spelled = Spelling(recipe="my pets.yaml", data="pets", kind="images")
    assert spelled.setting("executor", "process") == "penstock train 'my pets.yaml' feed.executor=process"
    assert spelled.cache("shuffle") == "penstock train 'my pets.yaml' feed.cache=memory"
    assert spelled.batch(64) == "penstock train 'my pets.yaml' train.batch_size=64"
    assert spelled.pack(256) == (
        "penstock pack images pets -o pets-256.pack --shortest-side 256 && "
        "penstock train 'my pets.yaml' data.path=pets-256.pack"
    )


def test_commands_keep_what_was_given_beside_the_recipe() -> None:
    changes = ("data.path=my pets", "task.size=64")
    spelled = Spelling("p.yaml", changes, "my pets", {"label_from_name": "{label}.*", "allow_outside": True}, "images")
    assert shlex.split(spelled.cache("")) == ["penstock", "train", "p.yaml", *changes, "feed.cache=memory"]
    pack, train = spelled.pack(40).split(" && ")
    options = ["--label-from-name", "{label}.*", "--allow-outside"]
    expected = ["penstock", "pack", "images", "my pets", *options, "-o", "my pets-40.pack", "--shortest-side", "40"]
    assert shlex.split(pack) == expected
    assert shlex.split(train)[2:] == ["p.yaml", "task.size=64", "data.path=my pets-40.pack", "data.options={}"]


def test_a_path_that_begins_with_a_dash_is_not_taken_for_an_option() -> None:
    spelled = Spelling("-p.yaml", data="--pets", kind="images")
    assert spelled.batch(8) == "penstock train ./-p.yaml train.batch_size=8"
    assert spelled.move() == "cp -r ./--pets /a/local/solid-state/disk/"
    assert spelled.pack(None) == (
        "penstock pack images ./--pets -o ./--pets.pack && penstock train ./-p.yaml data.path=./--pets.pack"
    )


def test_the_printed_pack_command_runs_on_a_folder_that_begins_with_a_dash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_picture(tmp_path / "-pets" / "cat" / "a.png")
    monkeypatch.chdir(tmp_path)
    outcome = run_here(*shlex.split(Spelling(data="-pets", kind="images").pack(None))[1:])
    assert outcome.exit_code == 0, outcome.err
    assert len(ps.open("./-pets.pack")) == 1


def test_a_pack_of_many_files_is_named_after_their_folder() -> None:
    spelled = Spelling(data="flights/2018*.tif", kind="rasters").pack(None)
    assert spelled == "penstock pack rasters 'flights/2018*.tif' -o flights.pack"


def test_a_gpu_that_is_not_there_is_for_another_machine() -> None:
    assert (
        Spelling("p.yaml")
        .model(False)
        .endswith("train.accelerator=gpu    # on a machine with a GPU: this one has none")
    )
    assert Spelling("p.yaml").model(True) == "penstock train p.yaml train.precision=bf16"


def test_remedies_of_data_are_commands_and_those_of_flows_python() -> None:
    assert Spelling(data="mice", kind="videos").pack(256) == "penstock pack videos mice -o mice-256.pack --size 256x256"
    assert Spelling(data="big.h5").pack(None) == "penstock pack data big.h5 -o big.pack"
    assert Spelling().pack(256) == 'ps.pack(source, "data-256.pack", shortest_side=256)'
    assert Spelling().setting("workers", "auto") == "ps.Flow(source, workers='auto')"
    assert Spelling().cache("shuffle") == ".cache() behind .shuffle"
    assert Spelling(data="pets").cache("shuffle") == "ps.Flow(ps.open('pets')).shuffle().cache()"
    assert Spelling(data="pets").setting("workers", "auto") == "ps.Flow(ps.open('pets'), workers='auto')"
