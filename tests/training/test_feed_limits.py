"""Whether data or compute is the limit, in words."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.training.feed_limits import difference, in_words, limit_line

HOPS = {hop: {"cpu_seconds": 1.0, "wait_seconds": 0.0} for hop in ("read", "transform", "collate", "deliver")}


def metrics(waited: float, used: float, batches: int = 100) -> dict[str, Any]:
    hops = {**HOPS, "decode": {"cpu_seconds": 5.0, "wait_seconds": 0.0}}
    samples = batches * 10
    return {
        "waited_seconds": waited, "consumer_seconds": used, "batches": batches, "samples": samples, "hops": hops,
    }  # fmt: skip


def test_a_network_that_waits_is_bound_by_data_and_the_slow_hop_is_named() -> None:
    line = limit_line(metrics(waited=6, used=4))
    assert line.startswith("bound by data: 60% of the time waiting for it, most of it for decode (100 samples/s).")
    assert "2.5 × as fast" in line


def test_a_feed_that_waits_is_bound_by_compute() -> None:
    line = limit_line(metrics(waited=0.3, used=9.7))
    assert line == "bound by compute: 97% of the time in the network, 3% waiting for data (100 samples/s)."


def test_nothing_is_said_of_nothing() -> None:
    assert "too few steps" in limit_line(metrics(0, 0, batches=0))


def test_a_line_while_it_runs_is_about_the_time_since_the_last_one() -> None:
    part = difference(metrics(10, 10, 200), metrics(10, 1, 100))
    assert limit_line(part).startswith("bound by compute: 100%")


@pytest.mark.parametrize(("seconds", "words"), [(12, "12 s"), (300, "5 min"), (3 * 3600, "3.0 h")])
def test_durations_are_told_as_people_do(seconds: float, words: str) -> None:
    assert in_words(seconds) == words
