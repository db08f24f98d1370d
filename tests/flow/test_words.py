"""Mistakes of users, and the words that help."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from made_sources import Pictures
from penstock.flow.flow import Flow
from penstock.samples import Field, Raw, Schema

FILE = str(Path(__file__).resolve())


def flow(count: int = 12, **options: Any) -> ps.Flow:
    return ps.Flow(Pictures(count), **options)


def looks_up(sample: dict[str, Any]) -> dict[str, Any]:
    return {**sample, "name": {}["mouse"]}


LINE = inspect.getsourcelines(looks_up)[1] + 1


@pytest.mark.parametrize("options", [{"workers": 0}, {"workers": 1, "executor": "process"}])
def test_an_error_in_a_function_shows_the_line_of_the_user(options: dict[str, Any]) -> None:
    with pytest.raises(ps.HopError, match="KeyError: 'mouse'") as caught:
        list(flow(**options).map(looks_up).batch(2, shapes="ragged"))
    assert f"(in looks_up, {FILE} line {LINE})" in str(caught.value)


def test_an_error_in_a_function_of_batches_in_a_filter_and_in_a_generator_shows_it_too() -> None:
    batched = flow(workers=0).map(ps.augment.Resize(8)).batch(2).map(looks_up, batched=True)
    filtered = flow(workers=0).filter(looks_up).batch(2, shapes="ragged")  # type: ignore[arg-type]
    generated = ps.Flow(ps.from_generator(lambda: (looks_up({}) for _ in range(2))), workers=0).batch(2)
    for one in (batched, filtered, generated):
        with pytest.raises(ps.HopError, match="KeyError: 'mouse'") as caught:
            list(one)
        assert f"{FILE} line {LINE}" in str(caught.value)


def test_a_window_of_samples_is_told_that_it_counts_shards() -> None:
    with pytest.raises(
        ps.OptionError, match=r"shuffle\(window=10,000\) counts shards, not samples.*there are 1 of them"
    ):
        list(flow().shuffle(10_000).batch(2, shapes="ragged"))
    assert len(list(flow().shuffle(8).batch(2, shapes="ragged"))) == 6


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda: ps.mix([flow(), flow()], weights=[1]), "expected 2 weights, one for each flow, got 1"),
        (lambda: ps.mix([flow(), flow()], weights=[1, -1]), "0 or more"),
        (lambda: ps.mix([flow(), flow()], weights=lambda epoch: [1, 1]), "a number for each flow.*not a function"),
        (lambda: ps.mix([flow(), flow()], weights=5), "a number for each flow"),
        (lambda: ps.mix({"a": flow()}), "several flows in a list"),
        (lambda: flow().sample(lambda label: 1.0), "sample takes weights, not a function"),
        (lambda: flow().map(looks_up, num_parallel_calls=4), "no option 'num_parallel_calls'.*leave it out"),
        (lambda: flow().map(looks_up, feild="image"), "it has step, field, batched, workers.* Did you mean 'field'?"),
        (lambda: flow().batch(4, drop_remainder=True), "It is called drop_last"),
        (lambda: flow().batch(4, drop_lsat=True), "Did you mean 'drop_last'?"),
        (lambda: ps.Flow(Pictures(2), worker=2), "Flow has no option 'worker'.* Did you mean 'workers'?"),
        (lambda: ps.mix([flow()], weight=[1]), "Did you mean 'weights'?"),
    ],
)
def test_a_mistake_is_an_error_when_it_is_written(write: Any, words: str) -> None:
    with pytest.raises(ps.OptionError, match=words):
        write()


def test_a_stored_column_called_like_an_option_can_be_asked_for() -> None:
    assert len(flow().where(label=1).batch(1)) == 4


def test_a_flow_shows_its_plan() -> None:
    written = flow(seed=7).shuffle().map(ps.augment.Resize(8)).batch(4, drop_last=True)
    assert repr(written) == "Flow(Pictures (12 samples), seed=7).shuffle().map(Resize(8)).batch(4, drop_last=True)"
    mixed = ps.mix([flow(), flow(3)], weights=[3, 1]).batch(2)
    assert repr(mixed) == "mix([Flow(Pictures (12 samples)), Flow(Pictures (3 samples))], weights=[3, 1]).batch(2)"
    assert repr(ps.Flow(ps.from_generator(lambda: iter(())))) == "Flow(GeneratorStream)"


def test_every_method_still_has_its_own_signature() -> None:
    assert list(inspect.signature(Flow.batch).parameters) == ["self", "size", "shapes", "fill", "drop_last"]


class Bands:
    schema = Schema((Field("image", "array", dtype="uint16", shape=(4, 4, 6)),))

    def __len__(self) -> int:
        return 1

    def read(self, index: int) -> Raw:
        return Raw(index, None)

    def decode(self, raw: Raw) -> dict[str, Any]:
        return {"image": np.zeros((4, 4, 6), np.uint16)}


def test_a_crop_of_what_is_no_image_says_of_which_kind_it_is() -> None:
    with pytest.raises(ps.HopError, match=r"need a field of kind image .* a sample has image \(array\)"):
        ps.Flow(Bands()).map(ps.augment.HorizontalFlip())[0]


def test_ranks_with_uneven_shares_are_explained() -> None:
    uneven = flow().map(ps.augment.Resize(8)).batch(10).shard(1, 4).explain()
    assert "batch(10) is not a multiple of 4 ranks: they get 2 or 3 samples" in " ".join(uneven.split())
    assert "multiple" not in flow().map(ps.augment.Resize(8)).batch(8).shard(1, 4).explain()


def test_a_device_that_is_not_there_is_said_in_our_words() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.raises(ps.OptionError, match="torch sees no CUDA device here"):
        flow().batch(2).to_torch("cuda")
    with pytest.raises(ps.OptionError, match="no such device"):
        flow().batch(2).to_torch("cudaa")
