"""Randomness as a counter function: fixed for ever, and independent of how it is asked for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.seeds import mixed, name_bits, permutation, random_bits, sample_bits, sample_uniforms

BITS_OF_SEED_0 = [2558736989570252433, 3400964856525257824, 12865742008072950574]
BITS_OF_SEED_7 = [9351301419765037533, 7657004998645395394, 10303578307251109634]


def test_mixing_is_splitmix64() -> None:
    # The published first outputs of splitmix64 from state 0: each state is the one before plus the golden gamma.
    states = np.array([0, 0x9E3779B97F4A7C15, 0x3C6EF372FE94F82A], np.uint64)
    assert mixed(states).tolist() == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def test_bits_never_change() -> None:
    assert random_bits(0, np.arange(3)).tolist() == BITS_OF_SEED_0
    assert random_bits(7, np.arange(3), step=2).tolist() == BITS_OF_SEED_7


def test_a_permutation_never_changes() -> None:
    assert permutation(3, 10).tolist() == [1, 0, 7, 2, 6, 5, 9, 3, 8, 4]


def test_bits_of_a_name_never_change() -> None:
    assert name_bits(0, "mouse_1.mp4") == 14800763686846964651
    assert name_bits(1, "mouse_1.mp4") != name_bits(0, "mouse_1.mp4")


def test_the_numbers_of_a_sample_never_change() -> None:
    numbers = sample_uniforms(7, 3, np.array([0, 1]), np.array([5, 5], np.uint64), 3)
    assert numbers.tolist() == [
        [0.9141345156442555, 0.6273871079207047, 0.323574866803366],
        [0.8575936748696477, 0.601287307498336, 0.42155697381619217],
    ]


def test_the_numbers_of_a_sample_are_the_upper_bits_of_its_counters() -> None:
    epochs, keys = np.arange(20) % 3, np.arange(20).astype(np.uint64) << np.uint64(50)
    numbers = sample_uniforms(-9, 4, epochs, keys, 22)
    for counter in range(22):
        bits = sample_bits(-9, 4, epochs, keys, counter)
        assert numbers[:, counter].tolist() == [(value >> 11) * 2.0**-53 for value in bits.tolist()]
    assert sample_uniforms(-9, 4, epochs, keys, 0).shape == (20, 0)


@given(st.integers(-(2**70), 2**70), st.lists(st.integers(0, 2**40), min_size=1, max_size=20), st.integers(0, 99))
def test_bits_depend_on_the_index_and_not_on_its_neighbours(seed: int, indices: list[int], step: int) -> None:
    together = random_bits(seed, np.array(indices), step)
    alone = [int(random_bits(seed, index, step)[0]) for index in indices]
    assert together.tolist() == alone


@given(st.integers(0, 2**64 - 1), st.integers(0, 300), st.integers(0, 9))
def test_a_permutation_visits_everything_once(seed: int, length: int, step: int) -> None:
    assert sorted(permutation(seed, length, step).tolist()) == list(range(length))


def test_other_seeds_and_steps_give_other_orders() -> None:
    orders = {tuple(permutation(seed, 20, step).tolist()) for seed in range(5) for step in range(5)}
    assert len(orders) == 25


def test_every_bit_is_set_half_of_the_time() -> None:
    bits = random_bits(11, np.arange(4096))
    shares = [float(((bits >> np.uint64(bit)) & np.uint64(1)).mean()) for bit in range(64)]
    assert shares == pytest.approx([0.5] * 64, abs=0.05)


def test_no_global_generator_is_touched() -> None:
    before = np.random.get_state()[1].tolist()  # type: ignore[index]
    permutation(0, 100)
    assert np.random.get_state()[1].tolist() == before  # type: ignore[index]
