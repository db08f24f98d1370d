from __future__ import annotations

import gc
import math
import os
import threading
import zlib
from collections.abc import Iterator
from itertools import count, islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from made_sources import pixels
from penstock.flow.budget import process_budget
from penstock.flow.order.selection import interleaved
from penstock.flow.streams import stream_running as stream_reading
from penstock.flow.streams.stream_words import promises

Batch = dict[str, Any]


def counted(count: int = 23, start: int = 0) -> Any:
    """A function that gives numbered samples."""

    def samples() -> Iterator[dict[str, Any]]:
        for number in range(start, start + count):
            yield {"value": number, "image": pixels(number, 12, 10)}

    return samples


class Numbered:
    """The same samples with random access."""

    schema = ps.Schema((ps.Field("image", "image"), ps.Field("value", "number", "int64")))

    def __init__(self, count: int = 23) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def read(self, index: int) -> ps.Raw:
        return ps.Raw(index, None)

    def decode(self, raw: ps.Raw) -> dict[str, Any]:
        return {"value": raw.index, "image": pixels(raw.index, 12, 10)}


def values(batches: Any) -> list[list[int]]:
    return [batch["value"].tolist() for batch in batches]


def noisy(sample: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    return {**sample, "noise": rng.random(3)}


def assert_same(first: list[Batch], second: list[Batch]) -> None:
    assert len(first) == len(second)
    for one, two in zip(first, second, strict=True):
        assert set(one) == set(two)
        for name in one:
            np.testing.assert_array_equal(np.asarray(one[name]), np.asarray(two[name]), name)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    gc.collect()
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_a_stream_in_its_order_gives_the_batches_of_a_source_in_its_order(workers: int) -> None:
    def plan(source: Any) -> ps.Flow:
        flow = ps.Flow(source, seed=4, workers=workers).skip(2).map(ps.augment.RandomCrop(8)).map(noisy)
        return flow.take(17).batch(4)

    stream, source = plan(ps.from_generator(counted())), plan(Numbered())
    for epoch in (0, 3):
        assert_same(list(stream.epoch(epoch)), list(source.epoch(epoch)))


# Every step of samples as one plain function of lists, the reference of the test below.
def reference(count: int, steps: list[tuple[Any, ...]], size: int, drop_last: bool, rank: int, world: int) -> Any:
    def run(passes: int, upto: int) -> list[int]:
        if upto < 0:
            return list(range(count))
        name, *options = steps[upto]
        if name == "repeat":
            return [value for _ in range(options[0]) for value in run(passes, upto - 1)]
        inner = run(passes, upto - 1)
        if name == "take":
            return inner[: options[0]]
        if name == "skip":
            return inner[options[0] :]
        if name == "filter":
            return [value for value in inner if value % options[0]]
        return inner

    found = run(1, len(steps) - 1)
    groups = [found[start : start + size] for start in range(0, len(found), size)]
    groups = [group for group in groups if len(group) == size or (not drop_last and len(group) >= world)]
    return [group[rank * len(group) // world : (rank + 1) * len(group) // world] for group in groups]


step = st.one_of(
    st.tuples(st.just("take"), st.integers(0, 20)),
    st.tuples(st.just("skip"), st.integers(0, 20)),
    st.tuples(st.just("repeat"), st.integers(1, 3)),
    st.tuples(st.just("filter"), st.integers(2, 4)),
)


@settings(max_examples=40)
@given(
    count=st.integers(0, 25),
    steps=st.lists(step, max_size=4),
    size=st.integers(4, 9),
    drop_last=st.booleans(),
    ranks=st.integers(1, 4).flatmap(lambda world: st.tuples(st.integers(0, world - 1), st.just(world))),
    workers=st.integers(0, 3),
)
def test_steps_on_a_stream_do_what_a_plain_loop_does(
    count: int, steps: Any, size: int, drop_last: bool, ranks: tuple[int, int], workers: int
) -> None:
    flow = ps.Flow(ps.from_generator(counted(count)), workers=workers)
    for name, option in steps:
        flow = (
            flow.filter(lambda s, by=option: s["value"] % by != 0) if name == "filter" else getattr(flow, name)(option)
        )
    flow = flow.batch(size, drop_last=drop_last).shard(*ranks)
    assert values(flow) == reference(count, steps, size, drop_last, *ranks)


@settings(max_examples=20)
@given(
    lengths=st.lists(st.integers(0, 7), min_size=1, max_size=5),
    cycle_length=st.integers(1, 6),
    block_length=st.integers(1, 3),
)
def test_parts_are_interleaved_as_files_are(lengths: list[int], cycle_length: int, block_length: int) -> None:
    starts = np.cumsum([0, *lengths[:-1]])
    stream = ps.from_generator([counted(length, start) for length, start in zip(lengths, starts.tolist(), strict=True)])
    flow = ps.Flow(stream, workers=0).interleave(cycle_length, block_length=block_length).batch(100)
    expected = interleaved(starts, np.array(lengths), cycle_length=cycle_length, block_length=block_length)
    assert [value for batch in values(flow) for value in batch] == expected.tolist()


def test_several_functions_are_read_in_turn() -> None:
    flow = ps.Flow(ps.from_generator([counted(3), counted(2, 10), counted(4, 20)])).batch(100)
    assert values(flow) == [[0, 10, 20, 1, 11, 21, 2, 22, 23]]


def test_shuffle_gives_every_sample_once_in_another_order_for_each_epoch_and_seed() -> None:
    def orders(seed: int, workers: int) -> list[list[int]]:
        flow = ps.Flow(ps.from_generator(counted(60)), seed=seed, workers=workers).shuffle(window=16).batch(7)
        return [[value for batch in values(flow.epoch(epoch)) for value in batch] for epoch in range(3)]

    first = orders(1, 2)
    assert all(sorted(order) == list(range(60)) for order in first)
    assert first == orders(1, 0) != orders(2, 0)
    assert len({tuple(order) for order in first}) == 3
    assert all(value <= place + 16 for order in first for place, value in enumerate(order))
    assert any(value > place + 8 for order in first for place, value in enumerate(order))


def test_each_epoch_chooses_from_the_buffer_of_a_shuffle_in_its_own_way() -> None:
    """What leaves a full buffer, and not only the last samples, whose order is drawn apart."""
    window = 4
    flow = ps.Flow(ps.from_generator(counted(60)), seed=1, workers=0).shuffle(window=window).batch(60)
    orders = [next(iter(flow.epoch(epoch)))["value"].tolist() for epoch in range(4)]
    assert len({tuple(order[:-window]) for order in orders}) == 4


def test_the_buffer_of_a_shuffle_mixes_all_of_a_short_stream_evenly() -> None:
    first_places = np.zeros(8)
    flow = ps.Flow(ps.from_generator(counted(8)), workers=0).shuffle().batch(8)
    for epoch in range(400):
        first_places[next(iter(flow.epoch(epoch)))["value"].tolist().index(0)] += 1
    assert first_places.min() > 25 and first_places.max() < 80  # 50 each, six deviations


def test_random_steps_follow_the_number_of_a_sample_and_not_its_place() -> None:
    def noises(window: int) -> dict[int, list[float]]:
        flow = ps.Flow(ps.from_generator(counted()), seed=3).shuffle(window=window).map(noisy).batch(4)
        return {int(v): n.tolist() for batch in flow for v, n in zip(batch["value"], batch["noise"], strict=True)}

    assert noises(1) == noises(9)
    assert len({tuple(noise) for noise in noises(1).values()}) == 23


def test_a_function_with_a_parameter_gets_the_number_of_the_epoch() -> None:
    def samples(epoch: int) -> Iterator[dict[str, Any]]:
        yield {"value": epoch}

    flow = ps.Flow(ps.from_generator(samples)).repeat(2).batch(1)
    assert [values(flow.epoch(epoch)) for epoch in range(2)] == [[[0], [1]], [[2], [3]]]


def test_functions_on_batches_and_steps_on_batches_work() -> None:
    flow = ps.Flow(ps.from_generator(counted()), workers=2).batch(4)
    doubled = flow.map(lambda batch: {**batch, "value": batch["value"] * 2}, batched=True).skip(1).take(2).repeat(2)
    assert values(doubled) == [[8, 10, 12, 14], [16, 18, 20, 22]] * 2


@pytest.mark.parametrize("shapes", ["padded", "ragged"])
def test_samples_of_different_sizes_are_padded_or_ragged(shapes: Any) -> None:
    def samples() -> Iterator[Any]:
        for length in (2, 5, 3):
            yield {"values": np.arange(length)}

    [batch] = ps.Flow(ps.from_generator(samples)).batch(3, shapes=shapes)
    if shapes == "ragged":
        assert batch["values"].lengths.tolist() == [2, 5, 3]
    else:
        assert batch["values"].shape == (3, 5) and batch["values_size"].ravel().tolist() == [2, 5, 3]


def test_samples_of_different_sizes_are_an_error_otherwise() -> None:
    def samples() -> Iterator[Any]:
        for length in (2, 5, 3):
            yield {"values": np.arange(length)}

    with pytest.raises(ps.HopError, match=r"sample 1: collate failed: 'values' is 5 int64 here and 2 int64 in other"):
        list(ps.Flow(ps.from_generator(samples)).batch(3))


def test_tuples_have_names_and_arrays_are_images() -> None:
    pairs = ps.from_generator(lambda: ((pixels(n), n) for n in range(4)), names=("image", "label"))
    [batch] = ps.Flow(pairs).map(ps.augment.Resize(6)).batch(4)
    assert batch["image"].shape == (4, 6, 6, 3) and batch["label"].tolist() == [0, 1, 2, 3]
    [batch] = ps.Flow(ps.from_generator(lambda: (pixels(n) for n in range(4)))).map(ps.augment.Grey()).batch(4)
    assert batch["image"].shape == (4, 24, 32, 3)
    with pytest.raises(ps.OptionError, match=r"stream 0 .*sample 0 is a tuple of 2.*names="):
        list(ps.Flow(ps.from_generator(lambda: [(1, 2)])).batch(1))


def test_a_schema_says_what_cannot_be_guessed() -> None:
    def samples() -> Iterator[Any]:
        yield {"image": pixels(0), "where": np.zeros((24, 32), np.int64)}

    schema = ps.Schema((ps.Field("image", "image"), ps.Field("where", "mask")))
    [batch] = ps.Flow(ps.from_generator(samples, schema)).map(ps.augment.Resize(6)).batch(1)
    assert batch["where"].shape == (1, 6, 6)


# What can go wrong


@pytest.mark.parametrize("workers", [0, 2])
def test_a_generator_that_raises_is_named_with_the_sample_and_what_came_before_is_delivered(workers: int) -> None:
    def breaking() -> Iterator[Any]:
        yield from counted(5)()
        raise ConnectionError("the line is dead")

    flow = ps.Flow(ps.from_generator([counted(9), breaking]), workers=workers).batch(2)
    got = []
    taken = process_budget().taken
    with pytest.raises(ps.HopError, match=r"stream 1 \(.*breaking\) sample 5: read failed: ConnectionError: the line"):
        got.extend(flow)
    assert len(got) == 5
    assert process_budget().taken == taken


def test_a_function_that_fails_is_named_with_the_sample() -> None:
    def fails(sample: dict[str, Any]) -> dict[str, Any]:
        return {"value": 1 // (sample["value"] - 6)}

    with pytest.raises(ps.HopError, match="sample 6: transform failed: ZeroDivisionError"):
        list(ps.Flow(ps.from_generator(counted())).map(fails).batch(4))
    with pytest.raises(ps.HopError, match="sample 6: transform failed: ZeroDivisionError"):
        list(ps.Flow(ps.from_generator(counted())).map(fails).filter(lambda sample: True).batch(4))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_generator_is_closed_when_the_epoch_is_left(workers: int) -> None:
    closed = []

    def endless() -> Iterator[Any]:
        try:
            number = 0
            while True:
                yield {"value": number}
                number += 1
        finally:
            closed.append(threading.current_thread())

    flow = ps.Flow(ps.from_generator([endless, endless]), workers=workers).shuffle(window=4).batch(3)
    for _ in range(20):
        batches = iter(flow)
        assert len(list(islice(batches, 3))) == 3
        batches.close()
    assert len(closed) == 40


@pytest.mark.parametrize("workers", [0, 2])
def test_an_iterator_with_a_close_of_its_own_is_closed_even_if_others_hold_it(workers: int) -> None:
    class Reader:
        def __init__(self) -> None:
            self.is_closed = False

        def __iter__(self) -> Reader:
            return self

        def __next__(self) -> dict[str, Any]:
            return {"value": 1}

        def close(self) -> None:
            self.is_closed = True

    readers = []

    def opened() -> Reader:
        readers.append(Reader())
        return readers[-1]

    batches = iter(ps.Flow(ps.from_generator([opened, opened]), workers=workers).batch(3))
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert [reader.is_closed for reader in readers] == [True, True]


def test_a_generator_that_does_not_come_back_is_told_and_does_not_hang_the_loop(monkeypatch: Any) -> None:
    monkeypatch.setattr(stream_reading, "PATIENCE_SECONDS", 0.01)
    waits, closed = threading.Event(), threading.Event()

    def waiting() -> Iterator[Any]:
        try:
            yield {"value": 0}
            waits.wait()
            yield {"value": 1}
        finally:
            closed.set()

    batches = iter(ps.Flow(ps.from_generator(waiting), workers=1).batch(1))
    next(batches)
    with pytest.warns(RuntimeWarning, match="has not come back"):
        batches.close()  # type: ignore[attr-defined]
    waits.set()
    assert closed.wait(60)
    for thread in threading.enumerate():
        if thread.name == "penstock-reader":
            thread.join()


def test_a_function_is_called_by_as_many_workers_at_once_as_it_says() -> None:
    noise = np.random.default_rng(0).bytes(2**20)
    lock, inside, most = threading.Lock(), [0], [0]

    def counting(sample: dict[str, Any]) -> dict[str, Any]:
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        zlib.compress(noise, 1)  # lets go of the GIL for long enough to meet others
        with lock:
            inside[0] -= 1
        return sample

    flow = ps.Flow(ps.from_generator(counted(24)), workers=3).map(counting, workers=1).batch(3)
    assert len(list(flow)) == 8 and most == [1]


def test_leaving_an_epoch_gives_all_bytes_back() -> None:
    gc.collect()
    before = process_budget().taken
    for workers in (0, 2):
        batches = iter(ps.Flow(ps.from_generator(counted(500)), workers=workers).shuffle(window=50).batch(8))
        next(batches)
        assert process_budget().taken > before
        batches.close()
        assert process_budget().taken == before
        list(ps.Flow(ps.from_generator(counted(50)), workers=workers).shuffle(window=20).batch(8))
        assert process_budget().taken == before


def test_a_buffer_that_does_not_fit_is_said_and_never_made_smaller_in_silence() -> None:
    flow = ps.Flow(ps.from_generator(counted(500)), memory=64 * 1024).shuffle(window=400).batch(4)
    with pytest.raises(ps.OptionError, match=r"no room for 400 samples.*shuffle\(window=…\)"):
        list(flow)


def test_reading_ahead_stays_within_the_budget_and_the_batches_that_are_wanted() -> None:
    read = []

    def watched() -> Iterator[Any]:
        for sample in counted(300)():
            read.append(sample["value"])
            yield sample

    flow = ps.Flow(ps.from_generator(watched), workers=1).prefetch(2).batch(4)
    batches = iter(flow)
    next(batches)
    # The window holds three batches, three more may wait, and one is being read.
    assert len(read) <= 7 * 4
    batches.close()


def test_a_batch_that_the_budget_has_no_room_for_is_said() -> None:
    flow = ps.Flow(ps.from_generator(counted(500)), memory=4096).batch(64)
    with pytest.raises(ps.OptionError, match=r"take.* MB, and the memory budget has no room"):
        list(flow)


def test_a_stream_without_samples_has_no_batches() -> None:
    assert list(ps.Flow(ps.from_generator(list)).batch(4)) == []
    with pytest.raises(ps.OptionError, match="nothing to repeat"):
        next(iter(ps.Flow(ps.from_generator(list)).repeat().batch(4)))


def test_the_length_is_known_where_it_was_told() -> None:
    stream = ps.from_generator(counted(), length=23)
    assert len(ps.Flow(stream).batch(4)) == 6
    assert len(ps.Flow(stream).skip(3).repeat(2).take(9).batch(4, drop_last=True).repeat(3)) == 6
    assert len(list(ps.Flow(stream).skip(3).repeat(2).take(9).batch(4, drop_last=True).repeat(3))) == 6
    with pytest.raises(ps.OptionError, match=r"from_generator\(…, length=n\)"):
        len(ps.Flow(ps.from_generator(counted())).batch(4))
    with pytest.raises(ps.OptionError, match="without a filter"):
        len(ps.Flow(stream).filter(lambda sample: True).batch(4))
    with pytest.raises(ps.OptionError, match="no end"):
        len(ps.Flow(stream).repeat().batch(4))


@pytest.mark.parametrize(("length", "words"), [(22, "more than 22 samples"), (24, "23 samples, and length=24")])
def test_a_length_that_is_not_true_is_said(length: int, words: str) -> None:
    with pytest.raises(ps.HopError, match=words):
        list(ps.Flow(ps.from_generator(counted(), length=length)).batch(4))


def test_an_endless_stream_has_one_epoch() -> None:
    flow = ps.Flow(ps.from_generator(counted(5))).repeat().batch(4)
    batches = flow.epoch()
    assert values(islice(batches, 3)) == [[0, 1, 2, 3], [4, 0, 1, 2], [3, 4, 0, 1]]
    batches.close()  # type: ignore[attr-defined]
    with pytest.raises(ps.OptionError, match="one epoch"):
        flow.epoch(1)


@pytest.mark.parametrize("executor", ["process", "subprocess"])
def test_a_generator_under_processes_runs_in_one_place_and_says_so(executor: Any) -> None:
    places = []

    def samples() -> Iterator[dict[str, Any]]:
        for number in range(23):
            places.append((os.getpid(), threading.get_ident()))
            yield {"value": number}

    flow = ps.Flow(ps.from_generator(samples), workers=3, executor=executor).map(dict).batch(4)
    batches = list(flow)
    assert [value for batch in batches for value in batch["value"]] == list(range(23))
    assert len(set(places)) == 1 and places[0][0] == os.getpid()
    assert f"thread, although {executor} was asked for" in flow.explain()
    assert "although" not in ps.Flow(ps.from_generator(samples)).batch(4).explain()


@pytest.mark.parametrize("workers", [0, 2])
def test_an_infinite_generator_is_cut_by_take_and_begins_anew_in_each_epoch(workers: int) -> None:
    closed = []

    def endless(epoch: int) -> Iterator[dict[str, Any]]:
        try:
            for number in count():
                yield {"value": 1000 * epoch + number}
        finally:
            closed.append(epoch)

    for flow in (
        ps.Flow(ps.from_generator(endless), workers=workers).take(10).batch(4),
        ps.Flow(ps.from_generator(endless), workers=workers).batch(4).take(3),
    ):
        epochs = [[value for batch in flow for value in batch["value"]] for _ in range(2)]
        assert [values[:10] for values in epochs] == [list(range(10)), list(range(1000, 1010))]
        assert closed == [0, 1]
        closed.clear()


def test_a_generator_without_end_has_epochs_of_a_known_length_by_take() -> None:
    def endless(epoch: int) -> Iterator[dict[str, Any]]:
        return ({"value": 1000 * epoch + number} for number in count())

    stream = ps.from_generator(endless, length=math.inf)
    flow = ps.Flow(stream).batch(4).take(3)
    assert len(flow) == 3 and len(ps.Flow(stream).take(10).batch(4)) == 3
    assert "samples without end" in flow.explain()
    for epoch in range(2):
        assert [value for batch in flow for value in batch["value"]] == [1000 * epoch + number for number in range(12)]
    with pytest.raises(ps.OptionError, match="no end.*take"):
        len(ps.Flow(stream).batch(4))


def test_a_generator_that_ends_although_it_was_said_not_to_is_said() -> None:
    with pytest.raises(ps.HopError, match="it gave 10 samples, and no end was promised"):
        list(ps.Flow(ps.from_generator(counted(10), length=math.inf)).batch(4).take(5))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_generator_that_ends_before_its_length_is_said_after_the_batches_before(workers: int) -> None:
    flow = ps.Flow(ps.from_generator(counted(10), length=12), workers=workers).batch(4)
    delivered = []
    with pytest.raises(ps.HopError, match="it gave 10 samples, and length=12 was promised"):
        for batch in flow:
            delivered += batch["value"].tolist()
    assert delivered == list(range(8))  # the last batch is not known to be one
    assert len(list(ps.Flow(ps.from_generator(counted(10)), workers=workers).batch(4))) == 3


def batches_of(count: int, size: int) -> Any:
    """A generator as Keras has it: (x, y) of several samples at once."""

    def batches() -> Iterator[Any]:
        for start in range(0, count, size):
            rows = range(start, min(start + size, count))
            yield np.stack([pixels(row, 6, 5) for row in rows]), np.array(rows)

    return batches


@pytest.mark.parametrize("workers", [0, 2])
def test_a_generator_of_batches_is_dealt_anew(workers: int) -> None:
    stream = ps.from_generator(batches_of(22, 4), unbatch=True, names=("image", "label"), length=22)
    batches = list(ps.Flow(stream, workers=workers).batch(5))
    assert [batch["label"].tolist() for batch in batches] == [
        list(range(start, min(start + 5, 22))) for start in range(0, 22, 5)
    ]
    np.testing.assert_array_equal(batches[1]["image"][2], pixels(7, 6, 5))
    (batch,) = ps.Flow(ps.from_generator(batches_of(3, 2), unbatch=True)).batch(5)
    assert set(batch) == {"x", "y", "index"}


def test_a_sample_of_a_batch_does_not_keep_the_batch() -> None:
    stream = ps.from_generator(batches_of(8, 4), unbatch=True)
    assert all(sample["x"].base is None for sample in stream.open(0, 0))


def test_a_ragged_batch_of_a_generator_is_named() -> None:
    def crooked() -> Iterator[Any]:
        yield np.zeros((2, 3)), np.zeros(2)
        yield np.zeros((2, 3)), np.zeros(1)

    with pytest.raises(
        ps.HopError, match="item 1: decode failed: its parts have different numbers of samples: x 2, y 1"
    ):
        list(ps.Flow(ps.from_generator(crooked, unbatch=True)).batch(2))


# What a stream cannot do


def test_what_a_stream_cannot_do_is_said_when_it_is_asked_for() -> None:
    flow = ps.Flow(ps.from_generator(counted()))
    for ask in (
        lambda: flow.where(label=1),
        lambda: flow.sample(),
        lambda: flow.clips(3),
        lambda: flow.cache(),
        lambda: flow.cache("folder"),
        lambda: flow.shuffle().interleave(2),
        lambda: flow.interleave(2, by="label"),
        lambda: ps.mix([flow, flow]),
        lambda: flow.batch(4)[0],
        lambda: flow.batch(4).state(),
        lambda: ps.Flow(ps.from_generator(counted()), on_bad_sample="substitute"),
    ):
        with pytest.raises(ps.OptionError):
            ask()


def test_resume_is_refused_with_what_to_do() -> None:
    flow = ps.Flow(ps.from_generator(counted())).batch(4)
    with pytest.raises(ps.OptionError, match=r"cannot be resumed exactly.*[Pp]ack"):
        flow.state()
    with pytest.raises(ps.OptionError, match="cannot be resumed exactly"):
        flow.restore(ps.Flow(Numbered()).batch(4).state())


@pytest.mark.parametrize("wrong", [3, [], counted()(), [counted()()], "text"])
def test_what_is_no_function_is_refused(wrong: Any) -> None:
    with pytest.raises(ps.OptionError, match="from_generator"):
        ps.from_generator(wrong)


def test_a_stream_says_what_it_does_not_promise() -> None:
    assert any("resume" in line for line in promises(ps.from_generator(counted())))
    assert promises(Numbered()) == []


def test_explain_tells_of_a_stream_what_runs_and_what_is_not_promised() -> None:
    stream = ps.from_generator([counted(), counted()], length=46)
    flow = ps.Flow(stream, workers=2).filter(lambda sample: True).shuffle(window=7).batch(4)
    for _ in range(2):
        text = flow.explain()
        for words in ("2 streams of", "46 samples", "2 of 2 streams in turn", "buffer of 7", "exact resume cannot be"):
            assert words in text, text
        list(flow)
    assert "Measured so far" in flow.explain()
