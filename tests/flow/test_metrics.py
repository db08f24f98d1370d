"""What a flow says of itself: sums that are right, text that Prometheus reads, lines of JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.errors import OptionError
from penstock.flow.flow import Flow
from penstock.flow.measuring.metrics import (
    FAMILIES,
    HOP_FAMILIES,
    HOPS,
    Costs,
    HopCost,
    Metrics,
    MetricsLog,
    metrics_text,
)

NUMBER = r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?"
LABELS = r'\{[a-z]+="([^"\\\n]|\\["\\n])*"(,[a-z]+="([^"\\\n]|\\["\\n])*")*\}'
LINE = re.compile(rf"# (HELP|TYPE) penstock_[a-z_]+ .+|penstock_[a-z_]+({LABELS})? {NUMBER}")


class Numbers:
    """Vectors of 100 numbers, read as 800 bytes."""

    schema = ps.Schema((ps.Field("vector", "array", "float64", (100,)),))

    def __len__(self) -> int:
        return 50

    def read(self, index: int) -> ps.Raw:
        return ps.Raw(index, np.full(100, float(index)).tobytes())

    def decode(self, raw: ps.Raw) -> dict[str, Any]:
        return {"vector": np.frombuffer(raw.data)}


def used(workers: int) -> Flow:
    flow = Flow(Numbers(), workers=workers).batch(8)
    for _ in flow.epoch(0):
        pass
    return flow


@pytest.mark.parametrize("workers", [0, 2])
def test_every_hop_counts_every_sample_and_its_bytes(workers: int) -> None:
    report = used(workers).metrics()
    assert report["batches"] == 7
    assert report["samples"] == 50
    assert {hop: cost["items"] for hop, cost in report["hops"].items()} == dict.fromkeys(HOPS, 50)
    assert report["hops"]["read"]["bytes"] == 50 * 800
    assert report["hops"]["deliver"]["bytes"] == 50 * (800 + 8)
    assert all(cost["cpu_seconds"] >= 0 and cost["wait_seconds"] >= 0 for cost in report["hops"].values())
    assert json.loads(json.dumps(report)) == report


def test_what_is_made_in_the_calling_thread_is_not_counted_twice() -> None:
    report = used(0).metrics()
    making = sum(report["hops"][hop]["cpu_seconds"] for hop in HOPS[:-1])
    assert making > 0
    assert report["hops"]["deliver"]["cpu_seconds"] < making
    assert report["settings"]["workers"] == 0


def test_settings_stand_in_the_report_with_their_reasons() -> None:
    flow = Flow(Numbers(), workers=2).batch(8).prefetch(3)
    list(flow.epoch(0))
    settings = flow.metrics()["settings"]
    assert (settings["workers"], settings["prefetch"]) == (2, 3)
    assert settings["reasons"]["workers"] == settings["reasons"]["prefetch"] == "pinned"
    assert flow.metrics()["history"][0]["why"] == "start"


def test_sums_are_sums() -> None:
    metrics = Metrics()
    costs = Costs()
    costs.hops["decode"].add(HopCost(8, 0.5, 0.25, 100))
    costs.core_wait_seconds = 0.125
    metrics.made(costs, 8)
    metrics.made(costs, 8)
    metrics.delivered(HopCost(8, 0.125, 1.0, 64), 3, 1.125)
    metrics.delivered(HopCost(8, 0.125, 0.5, 64), 1, 0.625)
    metrics.used(0.25)
    assert metrics.work() == (16, 1.0, 0.25, 0.25)
    report = metrics.as_dict()
    assert report["running_seconds"] == 2.0
    assert report["batches_per_second"] == 1.0
    assert report["ready_batches"] == {"least": 1, "mean": 2.0}


# Prometheus


def test_each_line_of_the_text_is_one_that_prometheus_takes() -> None:
    text = used(2).metrics_text(name='training "A"\n\\')
    assert text.endswith("\n")
    for line in text.splitlines():
        assert LINE.fullmatch(line), line


def test_each_family_has_its_help_and_type_before_its_values() -> None:
    lines = used(2).metrics_text().splitlines()
    for family in (*FAMILIES, *HOP_FAMILIES):
        start = lines.index(f"# HELP {family.name} {family.help}")
        assert lines[start + 1] == f"# TYPE {family.name} {family.kind}"
        assert lines[start + 2].startswith(family.name)
        assert (family.kind == "counter") == family.name.endswith("_total")
    assert len([line for line in lines if line.startswith("penstock_hop_bytes_total")]) == len(HOPS)


def test_the_values_of_the_text_are_those_of_the_report() -> None:
    report = used(0).metrics()
    text = metrics_text(report, "train")
    assert 'penstock_batches_total{flow="train"} 7\n' in text
    assert 'penstock_hop_bytes_total{flow="train",hop="read"} 40000\n' in text
    assert (
        f'penstock_hop_cpu_seconds_total{{flow="train",hop="read"}} {report["hops"]["read"]["cpu_seconds"]!r}\n' in text
    )


def test_the_parser_of_prometheus_reads_the_text() -> None:
    parser = pytest.importorskip("prometheus_client.parser")
    families = {family.name: family for family in parser.text_string_to_metric_families(used(2).metrics_text("a b"))}
    samples = families["penstock_hop_items"].samples
    assert {sample.labels["hop"]: sample.value for sample in samples} == dict.fromkeys(HOPS, 50.0)


def test_a_flow_that_has_done_nothing_has_metrics() -> None:
    assert "penstock_batches_total 0\n" in Flow(Numbers()).batch(8).metrics_text()


# Lines of JSON


def test_the_log_has_a_line_for_each_interval_and_one_at_the_end(tmp_path: Path) -> None:
    seconds = iter([0.0, 4.0, 10.0, 10.0, 19.9, 20.0, 20.0, 21.0, 21.0])
    log = MetricsLog(tmp_path / "new" / "metrics.jsonl", 10.0, clock=lambda: next(seconds))
    for number in range(4):
        log.batch_used(2, lambda number=number: {"batches": number, "history": []})  # type: ignore[misc]
    log.epoch_left(2, lambda: {"batches": 4, "history": []})
    lines = [json.loads(line) for line in log.path.read_text().splitlines()]
    assert lines == [
        {"time": 10.0, "event": "running", "epoch": 2, "batches": 1},
        {"time": 20.0, "event": "running", "epoch": 2, "batches": 3},
        {"time": 21.0, "event": "left", "epoch": 2, "batches": 4, "history": []},
    ]


def test_a_flow_logs_each_epoch_also_one_that_is_left(tmp_path: Path) -> None:
    flow = Flow(Numbers(), workers=2).batch(8)
    flow.log_metrics(tmp_path / "metrics.jsonl")
    list(flow.epoch(0))
    batches = flow.epoch(1)
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [(line["epoch"], line["event"], line["batches"]) for line in lines] == [(0, "left", 7), (1, "left", 8)]


def test_a_log_that_cannot_be_written_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OptionError, match="cannot be logged"):
        Flow(Numbers()).batch(8).log_metrics(tmp_path / "file" / "metrics.jsonl")
    with pytest.raises(OptionError, match="more than 0"):
        Flow(Numbers()).batch(8).log_metrics(tmp_path / "metrics.jsonl", every_seconds=0)


def test_a_log_that_breaks_later_is_noted_and_the_flow_goes_on(tmp_path: Path) -> None:
    flow = Flow(Numbers(), workers=2).batch(8)
    path = tmp_path / "metrics.jsonl"
    flow.log_metrics(path)
    path.unlink()
    path.mkdir()
    assert len(list(flow.epoch(0))) == 7
    (note,) = flow.metrics()["notes"]
    assert "no longer logged" in note
