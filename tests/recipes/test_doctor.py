"""`ps.doctor` and `penstock doctor`, on patients with one known fault each."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import penstock as ps
from ailing_sources import Quick, Throttled, cached_flow_of, flow_of, quick_step, slow_function, slow_step
from commands import run_here
from made_sources import EVERY_KIND, EveryKind, Pictures
from penstock.cli.demo_data import write_shapes
from penstock.diagnosis.diagnosis import Applied, Remedy
from penstock.diagnosis.spelling import Spelling
from penstock.diagnosis.variants import usual_flow
from penstock.flow.measuring.metrics import HOPS
from penstock.recipes import doctor
from penstock.recipes.doctor import _written

SECONDS = 1.5


def test_a_throttled_source_is_bound_by_its_disk() -> None:
    found = ps.doctor(flow_of(Throttled()), quick_step, seconds=SECONDS)
    assert (found.verdict.resource, found.verdict.hop) == ("disk", "read")
    assert found.is_input_bound and found.waiting_share is not None and found.waiting_share > 0.5
    assert {"cache", "disk"} <= {remedy.name for remedy in found.remedies}
    assert len(found.remedies) <= 5


def test_a_slow_function_is_bound_by_transform() -> None:
    flow = ps.Flow(Quick(), executor="thread").map(slow_function, field="image").batch(8)
    found = ps.doctor(flow, quick_step, seconds=SECONDS)
    assert found.verdict.hop == "transform" and found.verdict.resource in ("gil", "cores")
    assert found.is_input_bound
    shares = {hop.name: hop.cpu_share for hop in found.hops}
    assert shares["transform"] > 0.5


def test_a_slow_step_is_bound_by_the_model() -> None:
    found = ps.doctor(flow_of(Quick()), slow_step, seconds=SECONDS)
    assert (found.verdict.resource, found.is_input_bound) == ("model", False)
    assert found.model_rate is not None and found.model_rate <= 8 / 0.05
    assert "model" in {remedy.name for remedy in found.remedies}


def test_the_table_has_the_five_hops_the_feed_and_the_model() -> None:
    found = ps.doctor(flow_of(Quick()), slow_step, seconds=1)
    lines = found.table.splitlines()
    assert [line.split()[0] for line in lines] == ["hop", *HOPS, "feed", "model", "together"]
    facts = json.loads(found.json())
    assert facts["input_bound"] is False and [hop["name"] for hop in facts["hops"]] == list(HOPS)
    assert found.seconds < 30 and str(found).startswith("Quick (64 samples): batches of 8")


def test_the_flow_that_is_examined_stays_where_it_is() -> None:
    flow = flow_of(Quick())
    before = flow.state()
    ps.doctor(flow, seconds=1)
    assert flow.state() == before and flow.metrics()["batches"] == 0


def test_apply_puts_cheap_remedies_in_place_and_measures_again() -> None:
    found = ps.doctor(flow_of(Throttled(), workers=1), quick_step, seconds=1, apply=True)
    assert found.applied
    first = found.applied[0]
    assert first.remedy.name == "cache" and first.after > first.before
    assert found.rate == [one.after for one in found.applied if one.is_kept][-1]
    assert "Applied: cache in memory" in str(found)


def test_a_cache_of_the_plan_is_measured_when_it_is_full() -> None:
    found = ps.doctor(cached_flow_of(Throttled()), seconds=1)
    assert found.feed_rate > 150  # the disk gives 100


def test_streams_and_sequences_are_examined_as_far_as_that_goes() -> None:
    sequence = ps.from_sequence([{"x": number} for number in range(40)], items="samples")
    assert ps.doctor(ps.Flow(sequence).batch(4), seconds=1).feed_rate > 0

    def numbers() -> object:
        return iter([(float(number), number) for number in range(400)])

    stream = ps.Flow(ps.from_generator(numbers, names=("x", "y"))).batch(4)
    assert ps.doctor(stream, seconds=1).reading is None


class SomeKinds(EveryKind):
    """Samples of these fields alone; without an image nothing removes a box."""

    def __init__(self, *names: str) -> None:
        super().__init__(20)
        self.schema = ps.Schema(tuple(EVERY_KIND[name] for name in names), EVERY_KIND.classes)

    def decode(self, raw: ps.Raw) -> dict[str, Any]:
        sample = super().decode(raw)
        return {field.name: sample[field.name] for field in self.schema.fields}


@pytest.mark.parametrize("names", [("boxes",), ("box_label",), ("caption",), ("mask",), ("depth",)])
def test_boxes_and_texts_of_any_number_are_batched(names: tuple[str, ...]) -> None:
    source = SomeKinds(*names, "score")
    seen = []
    for batch in usual_flow(source, 4):
        for place, index in enumerate(batch["index"].tolist()):
            expected = source.decode(source.read(index))
            assert all(np.array_equal(batch[name][place], expected[name]) for name in (*names, "score"))
            seen.append(index)
    assert sorted(seen) == list(range(20))


@pytest.mark.parametrize("source", [Pictures(20), SomeKinds("label", "vector", "flags", "score")])
def test_samples_of_one_size_are_batched_as_arrays(source: ps.Source) -> None:
    batch = next(iter(usual_flow(source, 4)))
    assert all(isinstance(value, np.ndarray) and len(value) == 4 for value in batch.values())


@pytest.mark.parametrize(
    ("what", "options", "words"),
    [
        (3, {}, "not int"),
        (Quick(), {"overrides": ["feed.workers=2"]}, "only recipes have keys"),
        (Quick(), {"seconds": 0}, "at least 1"),
        (Quick(), {"timeline": "timeline.png"}, "must be a page"),
        (Quick(), {"step": "x"}, "must be a function of a batch"),
        (Quick(), {"batch_size": 0}, "batch_size=0 must be at least 1"),
        ("pets.yaml", {"batch_size": 8}, "train.batch_size=8 instead"),
    ],
)
def test_what_cannot_be_examined_is_said(what: object, options: dict[str, object], words: str) -> None:
    with pytest.raises(ps.OptionError, match=words):
        ps.doctor(what, **options)  # type: ignore[arg-type]


# As a command


def test_data_are_examined_by_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_shapes(Path("shapes"), count=60)
    outcome = run_here("doctor", "shapes", "--seconds", "1", "--batch-size", "8", "--timeline", "out/time.html")
    assert outcome.exit_code == 0, outcome.err
    assert "The feed is bound by " in outcome.out and "Machine: " in outcome.out
    page = Path("out/time.html").read_text(encoding="utf-8")
    assert "<svg" in page and "Who worked and who waited" in page and "http" not in page.split("</head>")[1]


RECIPE = """\
data: {path: shapes}
task: {kind: classification, size: 32}
model: {backbone: tiny}
train: {epochs: 1, batch_size: 8}
"""


def test_a_recipe_is_examined_with_its_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_shapes(Path("shapes"), count=60)
    Path("shapes.yaml").write_text(RECIPE)
    outcome = run_here("doctor", "shapes.yaml", "feed.workers=1", "--seconds", "1", "--json")
    assert outcome.exit_code in (0, 1), outcome.err
    assert outcome.json["model_rate"] > 0 and outcome.json["training_rate"] > 0
    assert outcome.exit_code == outcome.json["input_bound"]
    assert all("penstock" in remedy["how"] for remedy in outcome.json["remedies"])
    assert not Path("runs").exists()


def test_apply_writes_what_helped_into_the_recipe_and_keeps_the_old_one(tmp_path: Path) -> None:
    file = tmp_path / "shapes.yaml"
    file.write_text(RECIPE)
    found = ps.doctor(flow_of(Quick()), seconds=1)
    done = tuple(
        Applied(Remedy(name, "", 2.0, "", is_cheap=True), 10, after) for name, after in (("cache", 20), ("executor", 9))
    )
    written = _written(replace(found, applied=done), Spelling(str(file)))
    assert yaml.safe_load(file.read_text())["feed"] == {"cache": "memory"}
    assert "feed.cache: memory; the recipe before is" in str(written) and "Tried and taken back" in str(written)
    assert (tmp_path / "shapes.yaml.before").read_text() == RECIPE
    assert _written(written, Spelling()) == written  # data alone have no recipe


@pytest.mark.parametrize(
    ("remedies", "words"),
    [((), "no remedy was found"), ((Remedy("pack", "pack", 2.0, "ps.pack"),), "none of these remedies is a setting")],
)
def test_apply_says_where_there_is_nothing_to_apply(
    tmp_path: Path, remedies: tuple[Remedy, ...], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "shapes.yaml"
    file.write_text(RECIPE)
    found = replace(ps.doctor(flow_of(Quick()), seconds=1), remedies=remedies)
    monkeypatch.setattr(doctor, "diagnose", lambda *arguments, **options: found)
    monkeypatch.setattr(doctor, "_case", lambda *arguments: (flow_of(Quick()), None, Spelling(str(file)), "shapes"))
    assert f"Nothing was applied: {words}" in str(ps.doctor(file, apply=True))
    assert file.read_text() == RECIPE and not Path(f"{file}.before").exists()


def test_apply_leaves_the_recipe_where_what_was_tried_did_not_help(tmp_path: Path) -> None:
    file = tmp_path / "shapes.yaml"
    file.write_text(RECIPE)
    slower = Applied(Remedy("cache", "a cache", 2.0, "", is_cheap=True), 10, 9)
    found = replace(ps.doctor(flow_of(Quick()), seconds=1), applied=(slower,))
    written = str(_written(found, Spelling(str(file))))
    assert "Tried and taken back: a cache" in written and "stays as it is" in written
    assert file.read_text() == RECIPE and not Path(f"{file}.before").exists()


def test_a_training_that_waits_leaves_with_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ps.doctor(flow_of(Throttled()), quick_step, seconds=1)
    monkeypatch.setattr(ps, "doctor", lambda *arguments, **options: found)
    assert run_here("doctor", "some.yaml").exit_code == 1


def test_what_is_not_there_is_said() -> None:
    assert run_here("doctor", "nothing.yaml").exit_code == 2
    assert run_here("doctor", "nothing.pack").exit_code == 4
