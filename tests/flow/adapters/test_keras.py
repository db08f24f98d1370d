"""Keras is given the batches of the flow, in its order, each once, on every backend."""

from __future__ import annotations

from typing import Any

import pytest
from tests.flow.adapters.keras_process import keras_answers
from tests.flow.small_flows import indices, numbers

SAMPLES, BATCH, STEPS = 11, 2, 6  # as in keras_runs


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    """What a small network saw; here with the backend that the default environment has."""
    return keras_answers("torch")


def epochs(count: int) -> list[list[int]]:
    flow = numbers(SAMPLES).shuffle().batch(BATCH)
    return [row for epoch in range(count) for row in indices(flow.epoch(epoch))]


def test_fit_gets_the_order_of_the_flow_whatever_keras_permutes(answers: dict[str, Any]) -> None:
    assert answers["plain_fit"] == epochs(3)


def test_workers_of_keras_change_nothing(answers: dict[str, Any]) -> None:
    assert answers["fit_with_workers"] == epochs(3)


def test_epochs_of_keras_may_be_shorter(answers: dict[str, Any]) -> None:
    assert answers["fit_in_steps"] == epochs(2)


def test_a_second_fit_goes_on_with_the_next_epoch(answers: dict[str, Any]) -> None:
    assert answers["fit_twice"] == epochs(2)


def test_validation_sees_everything_after_each_epoch(answers: dict[str, Any]) -> None:
    trained, validated = epochs(2), [[0, 1], [2]]
    assert answers["fit_with_validation"] == [*trained[:STEPS], *validated, *trained[STEPS:], *validated]


def test_evaluate_and_predict_see_everything_once(answers: dict[str, Any]) -> None:
    assert answers["evaluated_and_predicted"] == [*epochs(1), [], *epochs(1), [SAMPLES, 1]]


def test_inputs_and_targets_are_found_by_their_names(answers: dict[str, Any]) -> None:
    losses = {"u_loss": 0.0, "v_loss": 25.0}
    assert answers["named_targets"] == {"dict": losses, "generator": losses, "list": losses, "keras": losses}


def test_it_is_a_generator_without_end(answers: dict[str, Any]) -> None:
    assert answers["from_next"] == epochs(2)


def test_a_network_learns_images_with_their_labels(answers: dict[str, Any]) -> None:
    first, last, accuracy = answers["an_image_network_learns"]
    assert last < first / 10 and accuracy == 1.0
