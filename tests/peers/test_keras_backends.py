"""What holds for Keras on torch holds on TensorFlow and JAX: the same tests, with their answers."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest
from tests.flow.adapters.keras_process import keras_answers
from tests.flow.adapters.test_keras import (  # noqa: F401 - collected here, with the fixture below
    test_a_network_learns_images_with_their_labels,
    test_a_second_fit_goes_on_with_the_next_epoch,
    test_epochs_of_keras_may_be_shorter,
    test_evaluate_and_predict_see_everything_once,
    test_fit_gets_the_order_of_the_flow_whatever_keras_permutes,
    test_inputs_and_targets_are_found_by_their_names,
    test_it_is_a_generator_without_end,
    test_validation_sees_everything_after_each_epoch,
    test_workers_of_keras_change_nothing,
)


@pytest.fixture(scope="module", params=["tensorflow", "jax"])
def answers(request: pytest.FixtureRequest) -> dict[str, Any]:
    if find_spec("keras") is None or find_spec(request.param) is None:
        pytest.skip(f"Keras with {request.param} is not installed; make test-peers has it")
    return keras_answers(request.param)
