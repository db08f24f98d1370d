"""Small flows for tests, and what their batches hold."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.flow import reference

import penstock as ps
from made_sources import Numbers, Pictures


def pictures(count: int = 20, **options: Any) -> ps.Flow:
    return ps.Flow(Pictures(count), seed=7, **{"executor": "thread", **options})


def numbers(count: int = 20, **options: Any) -> ps.Flow:
    return ps.Flow(Numbers(count), seed=7, **{"executor": "thread", **options})


def indices(batches: Any) -> list[list[int]]:
    return [batch["index"].tolist() for batch in batches]


def flat(batches: Any) -> list[int]:
    return [index for batch in indices(batches) for index in batch]


def doubled(sample: dict[str, Any]) -> dict[str, Any]:
    return {**sample, "value": sample["value"] * 2}


def shaken(value: Any, rng: np.random.Generator) -> Any:
    return value + rng.integers(0, 1000)


def assert_as_reference(flow: ps.Flow, epoch: int = 0) -> None:
    found, expected = list(flow.epoch(epoch)), list(reference.batches(flow, epoch))
    assert len(found) == len(expected) > 0
    for one, other in zip(found, expected, strict=True):
        assert not reference.differences(one, other)
