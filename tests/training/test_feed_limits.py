"""Whether data or compute is the limit, in words."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.training.feeds import TimeEstimate, difference, in_words, limit_line, rate_words

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
    assert line.endswith("Without waiting for data, training would be 2.5 × faster.")


def test_a_feed_that_waits_is_bound_by_compute() -> None:
    line = limit_line(metrics(waited=0.3, used=9.7))
    assert line == "bound by compute: 97% of the time in the network, 3% waiting for data (100 samples/s)."


def test_nothing_is_said_of_nothing() -> None:
    assert "too few steps" in limit_line(metrics(0, 0, batches=0))


@pytest.mark.parametrize(("waited", "used"), [(5.0, 0.0), (0.0, 5.0)])
def test_nothing_is_said_before_there_are_enough_batches(waited: float, used: float) -> None:
    said = "too few steps to say whether data or compute is the limit (it takes 8)."
    assert limit_line(metrics(waited, used, batches=7)) == said
    assert limit_line(metrics(waited, used, batches=8)).startswith("bound by")


def test_the_wait_for_the_first_batch_does_not_count() -> None:
    line = limit_line({**metrics(waited=5.3, used=9.7), "first_wait_seconds": 5.0})
    assert line == "bound by compute: 97% of the time in the network, 3% waiting for data (100 samples/s)."


@pytest.mark.parametrize(
    ("rate", "words"), [(0.0451, "0.045 samples/s"), (2.34, "2.3 samples/s"), (1234.5, "1,234 samples/s")]
)
def test_few_samples_are_not_none(rate: float, words: str) -> None:
    assert rate_words(rate) == words


def test_a_line_while_it_runs_is_about_the_time_since_the_last_one() -> None:
    part = difference(metrics(10, 10, 200), metrics(10, 1, 100))
    assert limit_line(part).startswith("bound by compute: 100%")


@pytest.mark.parametrize(("seconds", "words"), [(12, "12 s"), (300, "5 min"), (3 * 3600, "3.0 h")])
def test_durations_are_told_as_people_do(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


class Told:
    """A training of two epochs of 100 batches, with a clock that goes as fast as the test says."""

    def __init__(self, *, repeat: bool) -> None:
        self.seconds, self.lines = 0.0, list[str]()
        self.estimate = TimeEstimate(self.lines.append, repeat=repeat, clock=lambda: self.seconds)
        self.trainer = SimpleNamespace(
            is_global_zero=True, max_epochs=2, current_epoch=0, num_training_batches=100, sanity_checking=False
        )
        self.estimate.on_train_start(self.trainer, None)

    def batches(self, numbers: range, seconds: float) -> None:
        for number in numbers:
            self.seconds += seconds
            self.estimate.on_train_batch_end(self.trainer, None, None, None, number)

    def validate(self, numbers: range, seconds: float) -> None:
        for number in numbers:
            self.seconds += seconds
            self.estimate.on_validation_batch_end(self.trainer, None, None, None, number)


def test_the_time_to_go_is_told_once_on_a_terminal() -> None:
    told = Told(repeat=False)
    told.batches(range(100), 2.0)
    assert told.lines == ["epoch 1 of 2, batch 11 of 100: 2 s a batch; about 6 min to go."]


def test_a_training_that_writes_into_a_file_tells_how_far_it_is_every_minute() -> None:
    told = Told(repeat=True)
    told.batches(range(11), 2.0)
    told.batches(range(11, 50), 4.0)  # it became slower, so the time to go is another
    assert told.lines == [
        "epoch 1 of 2, batch 11 of 100: 2 s a batch; about 6 min to go.",
        "epoch 1 of 2, batch 26 of 100: 4 s a batch; about 12 min to go.",
        "epoch 1 of 2, batch 41 of 100: 4 s a batch; about 11 min to go.",
    ]
    told.validate(range(40), 3.0)
    assert told.lines[3:] == ["epoch 1, validation, batch 8.", "epoch 1, validation, batch 28."]


def test_steps_of_minutes_are_told_from_the_first_on() -> None:
    told = Told(repeat=True)
    told.batches(range(2), 90.0)
    assert told.lines == [
        "epoch 1 of 2, batch 1 of 100.",
        "epoch 1 of 2, batch 2 of 100: 90 s a batch; about 5.0 h to go.",
    ]
