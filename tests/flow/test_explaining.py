"""`explain` says what was written, what runs, and what binds; its lines must be true."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import penstock as ps
from made_sources import EveryKind, Pictures, pixels
from penstock.augment import (
    CenterCrop,
    Grey,
    HorizontalFlip,
    Normalize,
    RandomCrop,
    RandomResizedCrop,
    Resize,
    VerticalFlip,
)
from penstock.codecs import kernel
from penstock.codecs.images import encode_image
from penstock.flow.explaining.explanation import Held, binding_words
from penstock.flow.explaining.plan_words import size_words, step_words
from penstock.flow.measuring.metrics import HOPS, HopCost
from penstock.flow.tuning.allocating import Measured, Settings
from penstock.wording import counted


class OfManySizes(Pictures):
    def read(self, index: int) -> ps.Raw:
        return ps.Raw(index, encode_image(pixels(index, 32 + index % 3, 24 + index % 2), self.codec))


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> ps.Pack:
    folder = tmp_path_factory.mktemp("explained")
    ps.pack(OfManySizes(30, "jpeg"), folder / "a.pack")
    return ps.open(folder / "a.pack")


def noise(sample: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    return sample


def halved(batch: dict[str, Any]) -> dict[str, Any]:
    return batch


def section(text: str, name: str) -> list[str]:
    """The lines that stand under a name of the plan as run."""
    lines = text.splitlines()
    found: list[str] = []
    current = ""
    for line in lines[lines.index("The plan as run") + 1 :]:
        if not line.strip():
            break
        current = line[2:11].strip() or current
        if current == name:
            found.append(line[11:])
    return found


# As written


def test_steps_stand_as_they_were_written(pack: ps.Pack) -> None:
    flow = (
        ps.Flow(pack, seed=7)
        .where(label=[0, 1])
        .shuffle(window=2)
        .map(RandomResizedCrop(8, scale=(0.5, 1.0)))
        .map(Resize(16, side="shortest"))
        .map(noise)
        .map(abs, field="image", workers=2)
        .take(5)
        .batch(4, drop_last=True)
        .map(halved, batched=True)
        .repeat(3)
        .prefetch(2)
        .shard(0, 2)
    )
    assert [step_words(step) for step in flow.plan.steps] == [
        "where(label=(0, 1))",
        "shuffle(window=2)",
        "map(RandomResizedCrop(8, scale=(0.5, 1.0)))",
        "map(Resize(16, side='shortest'))",
        "map(noise)",
        "map(abs, field='image', workers=2)",
        "take(5)",
        "batch(4, drop_last=True)",
        "map(halved, batched=True)",
        "repeat(3)",
        "prefetch(2)",
        "shard(0, 2)",
    ]


def test_the_plan_as_written_has_the_counts(pack: ps.Pack) -> None:
    count = len(pack)
    text = ps.Flow(pack, seed=7).shuffle().take(10).map(Resize(8)).batch(4, drop_last=True).repeat(3).explain()
    assert f"a.pack ({count} samples), seed 7" in text
    assert any(line.split() == [".take(10)", "10", "samples"] for line in text.splitlines())
    assert any(line.strip().endswith("2 batches, 2 samples left out") for line in text.splitlines())
    assert any(line.split() == [".repeat(3)", "6", "batches"] for line in text.splitlines())


def test_a_plan_without_batches_can_be_explained(pack: ps.Pack) -> None:
    text = ps.Flow(pack).shuffle().explain()
    assert ".shuffle()" in text
    assert "add .batch(size)" in text


def test_a_mix_shows_its_members(pack: ps.Pack) -> None:
    one, other = ps.Flow(pack, seed=1).shuffle().map(Resize(8)), ps.Flow(pack, seed=2).map(Resize(8))
    text = ps.mix([one, other], [3, 1]).batch(4).explain()
    assert "mix of 2 flows, weights 3, 1, until 'first'" in text
    assert "seed 1" in text and "seed 2" in text
    assert section(text, "order") == ["flows in turn by their weights, each in its own order"]


# As run


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([Resize(8), HorizontalFlip(), Normalize()], None),
        ([Resize(8, side="shortest"), CenterCrop(8)], None),
        ([], "no step gives them one; add a Resize or a crop"),
        ([VerticalFlip()], "no step gives them one; add a Resize or a crop"),
        ([VerticalFlip(), Resize(8)], "VerticalFlip comes before the resize Resize; put it behind"),
        ([Resize(16), RandomResizedCrop(8)], "then RandomResizedCrop step by step: Resize resizes already"),
        ([RandomCrop(8, padding=2), Resize(8)], "then Resize step by step: RandomCrop may pad before the resize"),
        (
            [Resize(8), CenterCrop(4), CenterCrop(6)],
            "then CenterCrop step by step: CenterCrop may pad what was cropped",
        ),
        ([Resize(8), Grey(), Normalize()], "then Grey and Normalize step by step: Grey works on finished pixels"),
        ([Resize(8), noise, HorizontalFlip()], "then noise and HorizontalFlip step by step: noise is a function"),
        ([noise, Resize(8)], "step by step: noise is a function of yours"),
    ],
)
def test_it_says_what_is_not_fused_and_why(pack: ps.Pack, steps: list[Any], expected: str | None) -> None:
    flow = ps.Flow(pack)
    for step in steps:
        flow = flow.map(step)
    text = flow.batch(4, shapes="ragged").explain()
    unfused = [line for line in section(text, "make") if "step by step" in line]
    if expected is None:
        assert unfused == []
        assert f"straight into the batch — {kernel.which()}" in text
    else:
        assert len(unfused) == 1 and expected in unfused[0]


def test_what_it_says_of_fusion_is_what_the_program_does(pack: ps.Pack) -> None:
    whole = ps.Flow(pack).map(Resize(8)).map(Normalize()).batch(4)
    half = ps.Flow(pack).map(Resize(8)).map(Grey()).batch(4)
    assert "with Resize and Normalize in one pass, straight into the batch" in whole.explain()
    assert whole.running.program.leaves[0].fusion.links == 2  # type: ignore[union-attr]
    assert "with Resize in one pass — " in half.explain()
    assert half.running.program.leaves[0].fusion.links == 1  # type: ignore[union-attr]


def test_sources_that_decode_by_themselves_are_named() -> None:
    text = ps.Flow(EveryKind()).batch(4, shapes="ragged").explain()
    assert section(text, "make") == ["step by step: image and mask must be seen alike"]


@pytest.mark.parametrize(("fast_decode", "count"), [(False, 0), ("auto", 1), (True, 2)])
def test_approximate_decoding_is_stated_where_it_may_happen(pack: ps.Pack, fast_decode: Any, count: int) -> None:
    text = ps.Flow(pack, fast_decode=fast_decode).map(Resize(8)).batch(4).explain()
    lines = [line for line in section(text, "make") if "reduced scale" in line or "DCT" in line]
    assert len(lines) == count
    cropped = ps.Flow(pack, fast_decode=fast_decode).map(CenterCrop(8)).batch(4).explain()
    assert "reduced scale" not in cropped


def test_the_order_and_how_well_it_mixes_are_stated(pack: ps.Pack) -> None:
    def order(flow: ps.Flow) -> str:
        return section(flow.map(Resize(8)).batch(4).explain(), "order")[0]

    assert order(ps.Flow(pack)).startswith("as the source has it")
    assert order(ps.Flow(pack).shuffle()).startswith("shuffled as a whole")
    assert "drawn with replacement" in order(ps.Flow(pack).sample("balanced"))
    windowed = ps.Flow(pack).shuffle(window=1)
    assert f"{windowed.map(Resize(8)).batch(4).running.planned.order.mixing:.1%} of the data" in order(windowed)  # type: ignore[attr-defined]


def test_the_layout_of_a_batch_and_its_bytes_are_stated(pack: ps.Pack) -> None:
    text = ps.Flow(pack).map(Resize(8)).batch(4).explain()
    (line,) = section(text, "batch")
    assert line.startswith("image uint8 4×8×8×3, label int64 4")
    assert line.endswith(f": {size_words(768 + 64 + 64)}")


def test_settings_stand_there_with_their_reasons(pack: ps.Pack) -> None:
    flow = ps.Flow(pack, workers=2, executor="thread", memory="100 MB").map(Resize(8)).batch(4).prefetch(3)
    text = flow.explain()
    workers = section(text, "workers")
    assert workers[0].startswith("2 on") and workers[0].endswith("pinned")
    assert workers[1:3] == ["thread — pinned", "3 batches ahead — pinned"]
    assert "of at most 100 MB (given by memory=)" in section(text, "memory")[0]
    assert "calling thread" in ps.Flow(pack, workers=0).map(Resize(8)).batch(4).explain()


def test_functions_on_batches_are_said_to_need_whole_batches(pack: ps.Pack) -> None:
    text = ps.Flow(pack).map(Resize(8)).batch(4).map(halved, batched=True).explain()
    assert "whole batches, for map(halved, batched=True): they are not shared by workers" in text
    assert "a whole batch a task" in section(text, "workers")


def test_bad_samples_are_said_to_be_errors_or_replaced(pack: ps.Pack) -> None:
    assert "an error that names it" in ps.Flow(pack).map(Resize(8)).batch(4).explain()
    lenient = ps.Flow(pack, on_bad_sample="substitute", max_bad=0.01).map(Resize(8)).batch(4)
    assert "replaced by another one, at most 0.01; so far 0" in lenient.explain()


# As measured


def test_after_some_batches_there_is_a_row_for_each_hop(pack: ps.Pack) -> None:
    flow = ps.Flow(pack, workers=2).map(Resize(8)).batch(4).repeat()
    assert "Measured" not in flow.explain()
    batches = flow.epoch(0)
    for _ in range(10):
        next(batches)
    text = flow.explain()
    batches.close()  # type: ignore[attr-defined]
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("Measured so far: 10 batches"))
    assert [line.split()[0] for line in lines[start + 2 : start + 7]] == list(HOPS)
    assert "binds" in lines[start + 7] or "use the cores" in lines[start + 7]  # others may, on a busy machine


def test_before_it_can_know_it_does_not_say_what_binds(pack: ps.Pack) -> None:
    flow = ps.Flow(pack, workers=0).map(Resize(8)).batch(4)
    next(flow.epoch(0))
    assert "What binds is said after 8 batches." in flow.explain()


def held(
    *,
    cpu: float,
    wait: float = 0.0,
    hop: str = "decode",
    waited: float = 1.0,
    workers: int = 2,
    is_pinned: bool = False,
) -> Held:
    """One second in which 1000 samples were made, on two cores, with these seconds of workers in one hop."""
    measured = Measured(20, 1000, waited, 1.0 - waited, 1000, cpu, wait)
    hops = {name: HopCost() for name in HOPS}
    hops[hop] = HopCost(1000, cpu, wait)
    return Held(measured, hops, Settings(workers, 2), 2, is_pinned)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (held(cpu=1.9), "decode on 2 of 2 cores binds; one more core would give ≈ +50%"),
        (held(cpu=1.9, waited=0.2), "decode on 2 of 2 cores binds; one more core would give ≈ +25%"),
        (
            held(cpu=0.95, workers=1, is_pinned=True, hop="transform"),
            "transform on 1 of 2 cores binds (workers=1 is pinned); workers=2 would give ≈ +100%",
        ),
        (held(cpu=0.5, wait=1.45, hop="read"), "reading binds: a worker waits 1.4 ms for the bytes of a sample"),
        (
            replace(held(cpu=0.5, wait=1.45, hop="read"), lock_wait_seconds=1.0),
            "the lock of the library that reads the files binds: only one thread of a process reads at a time, and a "
            "worker waits 1 ms a sample for it. Pack the files, or",
        ),
        (replace(held(cpu=0.5, wait=1.45, hop="read"), lock_wait_seconds=0.2), "reading binds"),
        (held(cpu=0.5, wait=1.45, hop="transform"), "waiting in transform binds (1.4 ms a sample)"),
        (
            replace(held(cpu=0.5, wait=1.45), measured=Measured(20, 1000, 1.0, 0.0, 1000, 0.5, 0.1, 1.4)),
            "other processes use the cores: a sample waits 1.4 ms for one",
        ),
        (held(cpu=0.5, waited=0.01), "the consumer binds: batches wait for it. It takes 1,000 samples/s"),
        (held(cpu=0.5, waited=0.5), "nothing binds all the time: workers were idle for 75%"),
        (held(cpu=0.9, workers=0), "samples are made in the calling thread (workers=0); decode takes most of it"),
    ],
)
def test_the_constraint_that_binds_follows_from_the_numbers(state: Held, expected: str) -> None:
    assert binding_words(state).startswith(expected)


# A cache


def explained_after_work(flow: ps.Flow) -> str:
    for _ in flow.epoch(0):
        pass
    flow.running.metrics.costs.hops["decode"].cpu_seconds += 1e6  # decoding is nearly all of the work
    return flow.explain()


def test_a_cache_is_proposed_where_what_it_holds_fits(pack: ps.Pack) -> None:
    text = explained_after_work(ps.Flow(pack, workers=0).map(Resize(8)).map(HorizontalFlip()).batch(1))
    assert f"A cache would pay: .cache() behind Resize takes ≈ {size_words(8 * 8 * 3 * len(pack))} of memory" in text


def test_no_cache_is_proposed_where_the_decoder_only_makes_what_is_seen(pack: ps.Pack) -> None:
    assert "A cache" not in explained_after_work(ps.Flow(pack, workers=0).map(RandomResizedCrop(8)).batch(1))


def test_no_cache_is_proposed_where_there_is_one(pack: ps.Pack) -> None:
    flow = ps.Flow(pack, workers=0).map(Resize(8)).cache().map(HorizontalFlip()).batch(1)
    assert "A cache" not in explained_after_work(flow)


# Words


def test_numbers_are_written_for_people() -> None:
    assert [counted(1, "batch"), counted(2, "batch"), counted(1234, "sample"), counted(None, "batch")] == [
        "1 batch",
        "2 batches",
        "1,234 samples",
        "batches without end",
    ]
    assert [size_words(0), size_words(2048), size_words(9.6e6), size_words(3 * 2**30)] == [
        "0 bytes",
        "2.0 KB",
        "9.2 MB",
        "3.0 GB",
    ]


@pytest.mark.parametrize(
    ("count", "size", "words"),
    [
        (40, 10, "batch(10) is not a multiple of 4 ranks: they get 2 or 3 samples"),
        (22, 8, "the last batch has 6 samples for 4 ranks, and averaging over ranks weighs them differently"),
        (24, 8, ""),
        (20, 8, ""),
        (18, 8, ""),  # too few for all ranks: left out
    ],
)
def test_shares_of_different_sizes_are_named(count: int, size: int, words: str) -> None:
    flow = ps.Flow(Pictures(count), workers=0).map(Resize(8)).batch(size)
    said = str(flow.shard(1, 4).explain())
    assert (words in said) if words else ("weighs them differently" not in said)
    assert "weighs them differently" not in str(flow.shard(1, 4, keep_all=True).explain())
