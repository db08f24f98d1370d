"""A flow beside another, in turns."""

from __future__ import annotations

from typing import Any

import pytest

from ailing_sources import Distant, Quick, cached_flow_of, flow_of, slow_step
from penstock.diagnosis import comparing
from penstock.diagnosis.comparing import Case, settle, take, times_as_fast


def test_the_same_flow_twice_is_as_fast_as_itself() -> None:
    case = Case(flow_of(Distant(), workers=1))
    assert times_as_fast(case, case, 0.7) == pytest.approx(1.0, rel=0.5)


def test_four_workers_wait_for_a_distant_disk_together() -> None:
    one, four = (Case(flow_of(Distant(), workers=number)) for number in (1, 4))
    assert times_as_fast(four, one, 0.7) > 1.5


def test_one_pair_of_turns_that_others_disturbed_is_not_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = iter([100, 300, 100, 20, 50, 150])  # before and after: a stall in the second pair, a slow machine then
    monkeypatch.setattr(comparing, "take", lambda case, seconds: comparing.Taken(next(rates), 1.0))
    case = Case(flow_of(Quick()))
    assert times_as_fast(case, case, 0.1) == pytest.approx(3.0)


def test_a_model_belongs_to_its_case() -> None:
    flow = flow_of(Quick())
    assert take(Case(flow, slow_step), 0.1).rate <= 8 / 0.05
    assert times_as_fast(Case(flow), Case(flow, slow_step), 0.3) > 1.5


def test_a_cache_is_full_before_anything_counts() -> None:
    source, used = Quick(32), []

    def step(batch: dict[str, Any]) -> None:
        used.extend(batch["index"].tolist())

    settle(Case(cached_flow_of(source), step, warm_samples=32), 0.0)
    assert set(used) == set(range(32))


def test_between_turns_nothing_is_under_way() -> None:
    flow = flow_of(Quick())
    take(Case(flow), 0.05)
    delivered = flow.metrics()["batches"]
    assert take(Case(flow), 0.05).samples > 0 and flow.metrics()["batches"] > delivered
