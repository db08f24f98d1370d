"""Learning rates of every step."""

from __future__ import annotations

import math

import pytest

import penstock as ps
from penstock.training.optimizers import Plateau, learning_rate, rate_factor


def test_auto_follows_the_batch_and_the_optimizer() -> None:
    assert learning_rate(ps.TrainOptions(learning_rate=0.3), 64) == 0.3
    assert learning_rate(ps.TrainOptions(), 64) == 1e-3
    assert learning_rate(ps.TrainOptions(), 256) == 2e-3
    assert learning_rate(ps.TrainOptions(optimizer="sgd"), 128) == 0.05


@pytest.mark.parametrize("schedule", ["constant", "cosine", "step", "plateau"])
def test_every_schedule_warms_up_to_the_top_and_never_goes_beyond(schedule: str) -> None:
    factors = [rate_factor(schedule, step, 100, 10) for step in range(101)]
    assert factors[:10] == sorted(factors[:10]) and 0 < factors[0] < 0.1
    assert factors[10] == 1.0 and max(factors) == 1.0
    assert factors[10:] == sorted(factors[10:], reverse=True)


def test_cosine_ends_at_zero_and_step_goes_down_twice() -> None:
    assert rate_factor("cosine", 100, 100, 0) == pytest.approx(0)
    assert [rate_factor("step", step, 100, 0) for step in (0, 59, 60, 84, 85, 99)] == pytest.approx(
        [1, 1, 0.1, 0.1, 0.01, 0.01]
    )


def test_a_training_without_end_stays_at_the_top() -> None:
    assert rate_factor("cosine", 10**6, math.inf, 0) == 1.0


def test_a_plateau_goes_down_after_some_epochs_that_are_not_better() -> None:
    plateau = Plateau()
    for score in (0.5, 0.6, 0.6, 0.5, 0.6):
        plateau.judged(score, larger_is_better=True)
    assert plateau.factor == 1.0
    plateau.judged(0.59, larger_is_better=True)
    assert plateau.factor == pytest.approx(0.1)
    assert Plateau(**plateau.state()) == plateau
    plateau.judged(0.7, larger_is_better=True)
    assert plateau.best == 0.7 and plateau.waited == 0
