from __future__ import annotations

import json
import pickle
from contextlib import closing
from typing import Any

import numpy as np
import pytest

import penstock as ps
from made_sources import pixels
from penstock.flow.streams.items import named_item
from penstock.flow.streams.sequences import KEPT_ITEMS, SequenceSamples


class Batches:
    """What Keras calls a Sequence: items are batches of images and numbers."""

    def __init__(self, samples: int = 22, size: int = 4) -> None:
        self.samples, self.size = samples, size
        self.ends = 0
        self.asked: list[int] = []

    def __len__(self) -> int:
        return -(-self.samples // self.size)

    def __getitem__(self, number: int) -> Any:
        self.asked.append(number)
        rows = range(number * self.size, min((number + 1) * self.size, self.samples))
        return np.stack([pixels(row, 8, 6) for row in rows]), np.array(rows)

    def on_epoch_end(self) -> None:
        self.ends += 1


class Uneven(Batches):
    """Items of 1, 2, 3 … samples."""

    def __init__(self, items: int = 5) -> None:
        super().__init__(items)

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, number: int) -> Any:
        self.asked.append(number)
        start = number * (number + 1) // 2
        return {"value": np.arange(start, start + number + 1)}


class Bumpy(Batches):
    """Equal at both ends, and not in between."""

    def __getitem__(self, number: int) -> Any:
        x, y = super().__getitem__(number)
        return (x[:3], y[:3]) if number == 2 else (x, y)


def labels(batches: Any) -> list[list[int]]:
    return [batch["y"].tolist() for batch in batches]


def flat(batches: Any) -> list[int]:
    return [label for batch in labels(batches) for label in batch]


# Items as batches


@pytest.mark.parametrize("workers", [0, 2])
def test_items_are_the_batches_in_their_order(workers: int) -> None:
    sequence = Batches()
    flow = ps.Flow(ps.from_sequence(sequence), workers=workers)
    assert len(flow) == 6
    batches = list(flow)
    for number, batch in enumerate(batches):
        x, y = sequence[number]
        assert set(batch) == {"x", "y", "index"} and batch["index"] == number
        np.testing.assert_array_equal(batch["x"], x)
        np.testing.assert_array_equal(batch["y"], y)


def test_items_are_shuffled_whole_and_differently_in_each_epoch() -> None:
    flow = ps.Flow(ps.from_sequence(Batches(80)), seed=1).shuffle()
    orders = [[batch["index"] for batch in flow.epoch(epoch)] for epoch in range(3)]
    assert all(sorted(order) == list(range(20)) for order in orders)
    assert len({tuple(order) for order in orders}) == 3


def test_functions_on_items_say_batched() -> None:
    def noisy(batch: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        return {**batch, "noise": rng.random()}

    def flow(workers: int) -> ps.Flow:
        return ps.Flow(ps.from_sequence(Batches()), workers=workers).map(noisy, batched=True).take(4).repeat(2)

    first, second = list(flow(2)), list(flow(0))
    assert [batch["noise"] for batch in first] == [batch["noise"] for batch in second]
    assert [batch["index"] for batch in first] == [0, 1, 2, 3] * 2


@pytest.mark.parametrize(
    "add",
    [
        lambda flow: flow.batch(4),
        lambda flow: flow.map(len),
        lambda flow: flow.map(ps.augment.Resize(4)),
        lambda flow: flow.filter(len),
        lambda flow: flow.where(label=1),
        lambda flow: flow.clips(3),
        lambda flow: flow.shard(0, 2, keep_all=True),
        lambda flow: ps.mix([flow]),
    ],
)
def test_steps_on_samples_are_refused_on_items_with_a_way_out(add: Any) -> None:
    with pytest.raises(ps.OptionError, match="unbatch=True|batched already"):
        add(ps.Flow(ps.from_sequence(Batches())))


@pytest.mark.parametrize("world", [1, 2, 3])
def test_ranks_take_turns_with_the_items(world: int) -> None:
    parts = [list(ps.Flow(ps.from_sequence(Batches(48)), seed=2).shuffle().shard(rank, world)) for rank in range(world)]
    assert {len(part) for part in parts} == {12 // world}
    assert sorted(batch["index"] for part in parts for batch in part) == list(range(12))


@pytest.mark.parametrize("unbatch", [False, True])
def test_a_state_at_every_batch_goes_on_with_exactly_the_next(unbatch: bool) -> None:
    def flow(workers: int) -> ps.Flow:
        made = ps.Flow(ps.from_sequence(Batches(), unbatch=unbatch), seed=5, workers=workers).shuffle()
        return made.batch(5) if unbatch else made

    whole = [labels(flow(0).epoch(epoch)) for epoch in range(2)]
    running = flow(2)
    for number, _ in enumerate(running.epoch(0)):
        state = json.loads(json.dumps(running.state()))
        later = flow(0)
        later.restore(state)
        assert labels(later) == (whole[0][number + 1 :] or whole[1])


def test_names_of_items_follow_from_what_they_are() -> None:
    x, y, weight = np.zeros((2, 3)), np.ones(2), np.ones(2)
    assert set(named_item((x, y), None, 0)) == {"x", "y"}
    assert set(named_item((x, y, weight), None, 0)) == {"x", "y", "weight"}
    assert set(named_item((x, y, None), None, 0)) == {"x", "y"}
    assert set(named_item(x, None, 0)) == {"x"}
    assert set(named_item((x, y), ("image", "label"), 0)) == {"image", "label"}
    assert set(named_item(([x, x], y), None, 0)) == {"x_0", "x_1", "y"}
    assert set(named_item(({"left": x, "right": x}, y), None, 0)) == {"left", "right", "y"}
    assert set(named_item({"image": x, "label": y}, None, 0)) == {"image", "label"}
    for item, names in ((({"y": x}, y), None), ((x, y, y, y), None), ({"a": x}, ("b",)), ((x, y), ("a",))):
        with pytest.raises(ps.OptionError, match="item 3"):
            named_item(item, names, 3)


def test_a_bad_item_is_named_or_replaced() -> None:
    class Failing(Batches):
        def __getitem__(self, number: int) -> Any:
            if number == 3:
                raise OSError("gone")
            return super().__getitem__(number)

    with pytest.raises(ps.HopError, match="item 3 of Failing: read failed: OSError: gone"):
        list(ps.Flow(ps.from_sequence(Failing())))
    flow = ps.Flow(ps.from_sequence(Failing()), on_bad_sample="substitute")
    assert len(list(flow)) == 6
    assert [bad.index for bad in flow.bad_samples] == [3]


def at_two(bad: Any) -> Batches:
    """A sequence whose item 2 is `bad`."""

    class Odd(Batches):
        def __getitem__(self, number: int) -> Any:
            return bad if number == 2 else super().__getitem__(number)

    return Odd()


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ((np.zeros((4, 2)), np.zeros(3)), "its parts have different numbers of samples: x 4, y 3"),
        ((np.zeros((2, 2)), [np.zeros(2), np.zeros(5)]), "x 2, y_0 2, y_1 5. A list stands for several inputs"),
        ({"x": np.zeros((2, 2)), "y": [[1, 2], [3]]}, "the rows of y have different sizes"),
        ((np.zeros((0, 2)), np.zeros(0)), "there are no samples in it"),
        (None, "there is no array in it"),
        ("text", "there is no array in it"),
        ({}, "there is no array in it"),
    ],
)
@pytest.mark.parametrize("workers", [0, 2])
def test_a_ragged_or_empty_item_is_named_after_those_before_it(bad: Any, words: str, workers: int) -> None:
    delivered = []
    with pytest.raises(ps.HopError, match=f"item 2: decode failed: .*{words}"):
        for batch in ps.Flow(ps.from_sequence(at_two(bad)), workers=workers):
            delivered.append(batch["index"])
    assert delivered == [0, 1]
    flow = ps.Flow(ps.from_sequence(at_two(bad)), workers=workers, on_bad_sample="substitute")
    assert len(list(flow)) == 6
    assert [one.index for one in flow.bad_samples] == [2]


def test_one_number_for_a_whole_batch_is_no_ragged_item() -> None:
    item = {"x": np.zeros((2, 3)), "temperature": 0.5}
    assert float(list(ps.Flow(ps.from_sequence(at_two(item))))[2]["temperature"]) == 0.5


class Changing(Batches):
    """Another length from item 1 on, or from the second epoch on."""

    def __init__(self, later: int, *, at_end: bool) -> None:
        super().__init__()
        self.later, self.at_end = later, at_end

    def __getitem__(self, number: int) -> Any:
        if number == 1 and not self.at_end:
            self.samples = self.later
        return super().__getitem__(number)

    def on_epoch_end(self) -> None:
        if self.at_end:
            self.samples = self.later


@pytest.mark.parametrize("later", [9, 40])
@pytest.mark.parametrize("unbatch", [False, True])
def test_a_sequence_that_changes_its_length_is_said(later: int, unbatch: bool) -> None:
    words = f"Changing had 6 items when this flow began, and has {-(-later // 4)} now.*make a new flow"

    def flow_of(sequence: Changing) -> ps.Flow:
        flow = ps.Flow(ps.from_sequence(sequence, unbatch=unbatch), workers=0)
        flow = flow.batch(4) if unbatch else flow
        assert len(flow) == 6
        return flow

    with pytest.raises(ps.OptionError, match=words):
        list(flow_of(Changing(later, at_end=False)))
    flow = flow_of(Changing(later, at_end=True))
    assert flat(flow) == list(range(22))
    with pytest.raises(ps.OptionError, match=words):
        list(flow)


def test_a_new_flow_has_the_new_length() -> None:
    sequence = Changing(9, at_end=True)
    list(ps.Flow(ps.from_sequence(sequence)))
    assert flat(ps.Flow(ps.from_sequence(sequence))) == list(range(9))


def test_explain_tells_that_items_are_batches() -> None:
    flow = ps.Flow(ps.from_sequence(Batches()), workers=2).shuffle().map(dict, batched=True)
    assert "an item of the sequence" in flow.explain() and "item_of_sequence" not in flow.explain()
    list(flow)
    assert "Measured so far" in flow.explain()


# Samples out of items


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("unbatch", [True, "measured"])
def test_samples_are_dealt_anew(workers: int, unbatch: Any) -> None:
    sequence = Batches()
    flow = ps.Flow(ps.from_sequence(sequence, unbatch=unbatch, names=("image", "y")), workers=workers).batch(5)
    batches = list(flow)
    assert labels(batches) == [list(range(start, min(start + 5, 22))) for start in range(0, 22, 5)]
    images = np.concatenate([batch["image"] for batch in batches])
    np.testing.assert_array_equal(images, np.stack([pixels(row, 8, 6) for row in range(22)]))


def test_samples_are_shuffled_over_all_items_and_know_their_images() -> None:
    source = ps.from_sequence(Batches(), unbatch=True, names=("image", "y"))
    flow = ps.Flow(source, seed=3).shuffle().map(ps.augment.RandomCrop(4)).batch(5)
    for epoch in range(2):
        batches = list(flow.epoch(epoch))
        assert sorted(flat(batches)) == list(range(22))
        assert labels(batches)[0] != [0, 1, 2, 3, 4]
        assert batches[0]["image"].shape == (5, 4, 4, 3)


def test_items_of_different_sizes_are_measured_once() -> None:
    sequence = Uneven()
    flow = ps.Flow(ps.from_sequence(sequence, unbatch=True), workers=0).batch(4)
    assert len(flow) == 4
    measured = len(sequence.asked)
    assert [value for batch in flow for value in batch["value"]] == list(range(15))
    assert measured <= 3 + 5 + 1 and len(sequence.asked) <= measured + 6


def test_an_item_in_the_middle_that_is_not_as_long_as_thought_is_said() -> None:
    with pytest.raises(ps.OptionError, match='item 2 has 3 samples, and 4 were expected.*unbatch="measured"'):
        list(ps.Flow(ps.from_sequence(Bumpy(), unbatch=True)).batch(4))
    flow = ps.Flow(ps.from_sequence(Bumpy(), unbatch="measured")).batch(100)
    assert labels(flow) == [[*range(11), *range(12, 22)]]


def test_parts_of_different_lengths_are_said() -> None:
    class Crooked(Batches):
        def __getitem__(self, number: int) -> Any:
            return np.zeros((4, 2)), np.zeros(3)

    words = "item 0: decode failed: its parts have different numbers of samples: x 4, y 3"
    with pytest.raises(ps.HopError, match=words):
        len(ps.Flow(ps.from_sequence(Crooked(), unbatch=True)).batch(4))
    with pytest.raises(ps.HopError, match=words):
        list(ps.Flow(ps.from_sequence(Crooked())))


def test_items_are_read_once_for_samples_that_follow_one_another() -> None:
    sequence = Batches(40)
    flow = ps.Flow(ps.from_sequence(sequence, unbatch=True), workers=0).batch(3)
    len(flow)
    sequence.asked.clear()
    list(flow)
    assert len(sequence.asked) <= 10 + 1


def test_a_window_of_items_is_read_item_by_item() -> None:
    sequence = Batches(400)
    source = ps.from_sequence(sequence, unbatch=True)
    flow = ps.Flow(source, workers=0, seed=1).shuffle(window=KEPT_ITEMS).batch(16)
    len(flow)
    sequence.asked.clear()
    order = flat(flow)
    assert sorted(order) == list(range(400)) and order != sorted(order)
    assert len(sequence.asked) <= 100 + 1


def test_samples_of_an_item_that_is_kept_cannot_be_spoiled() -> None:
    def spoil(sample: dict[str, Any]) -> dict[str, Any]:
        total = sample["x"].sum()
        sample["x"][:] = 0
        return {"total": total}

    [batch] = ps.Flow(ps.from_sequence(Batches(8), unbatch=True), workers=0).repeat(2).map(spoil).batch(16)
    np.testing.assert_array_equal(batch["total"][:8], batch["total"][8:])
    assert batch["total"].all()


def test_a_sequence_of_samples_can_be_sent_to_another_process() -> None:
    source = ps.from_sequence(Batches(), unbatch=True)
    assert isinstance(source, SequenceSamples)
    source.decode(source.read(3))
    copy = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(copy.decode(copy.read(3))["x"], pixels(3, 8, 6))


@pytest.mark.parametrize("executor", ["thread", "subprocess", "process"])
@pytest.mark.parametrize("unbatch", [False, True])
def test_every_executor_gives_the_same(executor: Any, unbatch: bool) -> None:
    def flow(**how: Any) -> ps.Flow:
        made = ps.Flow(ps.from_sequence(Batches(), unbatch=unbatch), seed=5, **how).shuffle()
        return made.batch(5) if unbatch else made

    there = flow(executor=executor, workers=2)
    first, second = list(flow(workers=0)), list(there)
    there.close()
    assert len(first) == len(second)
    for one, two in zip(first, second, strict=True):
        np.testing.assert_array_equal(one["x"], two["x"])
        np.testing.assert_array_equal(one["index"], two["index"])


# The end of an epoch


@pytest.mark.parametrize("unbatch", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
def test_on_epoch_end_is_called_once_for_each_epoch_that_was_delivered(workers: int, unbatch: bool) -> None:
    sequence = Batches()
    flow = ps.Flow(ps.from_sequence(sequence, unbatch=unbatch), workers=workers).shuffle()
    flow = flow.batch(5) if unbatch else flow
    for epoch in range(3):
        for batch in flow:
            assert sequence.ends == epoch and len(batch["y"])
        assert sequence.ends == epoch + 1
    left = iter(flow)
    next(left)
    left.close()  # type: ignore[attr-defined]
    assert sequence.ends == 3


def test_a_loop_that_is_left_at_the_last_batch_has_had_its_epoch() -> None:
    sequence = Batches()
    flow = ps.Flow(ps.from_sequence(sequence))
    batches = iter(flow)
    for _ in range(len(flow)):
        next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert sequence.ends == 1


def test_a_sequence_that_shuffles_itself_in_place_does_not_spoil_the_last_batch() -> None:
    class Own(Batches):
        def __init__(self) -> None:
            super().__init__(12)
            self.x = np.arange(12)

        def __getitem__(self, number: int) -> Any:
            return self.x[number * 4 : number * 4 + 4], self.x[number * 4 : number * 4 + 4]

        def on_epoch_end(self) -> None:
            self.x[:] = self.x[::-1].copy()

    for unbatch in (False, True):
        flow = ps.Flow(ps.from_sequence(Own(), unbatch=unbatch), workers=0)
        flow = flow.batch(4) if unbatch else flow
        seen = [[batch["y"].tolist() for batch in flow] for _ in range(2)]
        assert seen == [[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]], [[11, 10, 9, 8], [7, 6, 5, 4], [3, 2, 1, 0]]]


@pytest.mark.parametrize("unbatch", [False, True])
def test_what_a_sequence_says_after_the_end_of_an_epoch_is_not_what_was_kept_before(unbatch: bool) -> None:
    class Renewed(Batches):
        def __getitem__(self, number: int) -> Any:
            return {"y": np.full(4, self.ends)}

    flow = ps.Flow(ps.from_sequence(Renewed(8), unbatch=unbatch), workers=0)
    flow = flow.batch(4) if unbatch else flow
    assert [labels(flow) for _ in range(3)] == [[[epoch] * 4] * 2 for epoch in range(3)]


class Growing(Batches):
    """Other numbers in each epoch."""

    def __getitem__(self, number: int) -> Any:
        x, y = super().__getitem__(number)
        return x, y + 100 * self.ends


@pytest.mark.parametrize("executor", ["thread", "subprocess", "process"])
@pytest.mark.parametrize("unbatch", [False, True])
def test_a_sequence_that_changes_at_the_end_of_an_epoch_changes_for_every_executor(
    executor: Any, unbatch: bool
) -> None:
    flow = ps.Flow(ps.from_sequence(Growing(), unbatch=unbatch), workers=2, executor=executor)
    with closing(flow.batch(4) if unbatch else flow) as flow:
        for epoch in range(3):
            assert flat(flow) == [100 * epoch + row for row in range(22)]


def test_on_epoch_end_is_called_once_for_a_sequence_that_is_mixed_with_itself() -> None:
    sequence = Batches()
    source = ps.from_sequence(sequence, unbatch=True)
    list(ps.mix([ps.Flow(source), ps.Flow(source)]).batch(4))
    assert sequence.ends == 1


# Items that are samples


class Pictures:
    """What torch calls a map-style Dataset: an item is one sample."""

    def __init__(self, count: int = 11) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> Any:
        if number >= self.count:
            raise IndexError(number)
        return pixels(number, 12, 10), number


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_a_dataset_of_samples_is_a_source_as_any_other(executor: Any) -> None:
    source = ps.from_sequence(Pictures(), items="samples", names=("image", "label"))
    with closing(ps.Flow(source, seed=2, workers=2, executor=executor)) as flow:
        batches = list(flow.shuffle().map(ps.augment.CenterCrop(8)).batch(4))
    labels_seen = np.concatenate([batch["label"] for batch in batches])
    assert sorted(labels_seen.tolist()) == list(range(11))
    assert labels_seen.tolist() != list(range(11))
    images = np.concatenate([batch["image"] for batch in batches])
    expected = ps.augment.apply(ps.augment.CenterCrop(8), {"image": pixels(int(labels_seen[3]), 12, 10)})
    np.testing.assert_array_equal(images[3], expected["image"])


def test_samples_of_a_dataset_keep_texts_and_numbers_and_take_pictures_of_pillow() -> None:
    from PIL import Image

    items = [{"image": Image.fromarray(pixels(number, 6, 5)), "name": f"n{number}", "y": 1.5} for number in range(3)]
    (batch,) = ps.Flow(ps.from_sequence(items, items="samples")).batch(3)
    assert list(batch["name"]) == ["n0", "n1", "n2"]
    assert batch["y"].tolist() == [1.5] * 3
    np.testing.assert_array_equal(batch["image"][2], pixels(2, 6, 5))


def test_a_state_of_a_dataset_goes_on_with_exactly_the_next() -> None:
    def flow_of() -> ps.Flow:
        return ps.Flow(ps.from_sequence(Pictures(), items="samples"), seed=4).shuffle().batch(3)

    flow = flow_of()
    batches = iter(flow)
    next(batches)
    state = json.loads(json.dumps(flow.state()))
    rest = [batch["y"].tolist() for batch in batches]
    again = flow_of()
    again.restore(state)
    assert [batch["y"].tolist() for batch in again] == rest


def test_a_dataset_that_lies_about_its_length_is_named_with_the_sample() -> None:
    class Short(Pictures):
        def __getitem__(self, number: int) -> Any:
            if number >= 5:
                raise IndexError("list index out of range")
            return super().__getitem__(number)

    with pytest.raises(ps.HopError, match="item 5 of Short: read failed: IndexError: list index out of range"):
        list(ps.Flow(ps.from_sequence(Short(), items="samples")).batch(2))
    with pytest.raises(ps.HopError, match="sample 0: decode failed: there is nothing in it"):
        list(ps.Flow(ps.from_sequence([{}], items="samples")).batch(2))


# What is refused


def words_for(wrong: Any) -> str:
    with pytest.raises(ps.OptionError, match=r"Flow takes a Source") as raised:
        ps.Flow(wrong)
    return str(raised.value)


def test_a_flow_says_how_to_hand_it_what_is_no_source() -> None:
    assert "from_sequence(it)" in words_for(Batches()) and 'items="samples"' in words_for(Pictures())
    assert "from_generator(function)" in words_for(lambda: iter([]))
    assert "every epoch begins anew" in words_for(iter([]))
    assert "from_generator(lambda: iterable)" in words_for({1, 2}.union())
    assert "penstock.open" in words_for(3)


@pytest.mark.parametrize("wrong", [3, iter([]), lambda: None])
def test_what_is_no_sequence_is_refused(wrong: Any) -> None:
    with pytest.raises(ps.OptionError, match=r"from_sequence takes an object with len and \[i\]"):
        ps.from_sequence(wrong)


def test_a_sequence_without_a_length_is_refused() -> None:
    class Endless(Batches):
        def __len__(self) -> int:
            raise NotImplementedError

    with pytest.raises(ps.OptionError, match="has no length"):
        len(ps.Flow(ps.from_sequence(Endless())))


@pytest.mark.parametrize(
    "options", [{"unbatch": "often"}, {"names": "xy"}, {"items": "rows"}, {"items": "samples", "unbatch": True}]
)
def test_wrong_options_are_refused(options: Any) -> None:
    with pytest.raises(ps.OptionError):
        ps.from_sequence(Batches(), **options)


def test_a_real_keras_sequence_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "torch")  # read when Keras is imported
    keras = pytest.importorskip("keras", reason="keras is not installed")

    class Real(keras.utils.PyDataset):  # type: ignore[name-defined,misc]
        def __len__(self) -> int:
            return 3

        def __getitem__(self, number: int) -> Any:
            return np.full((4, 2), number), np.arange(4)

    real = Real(workers=2, use_multiprocessing=True)
    assert [int(batch["x"][0, 0]) for batch in ps.Flow(ps.from_sequence(real))] == [0, 1, 2]
    assert len(list(ps.Flow(ps.from_sequence(real, unbatch=True)).batch(5))) == 3


def test_a_real_torch_dataset_works() -> None:
    data = pytest.importorskip("torch.utils.data", reason="torch is not installed")
    import torch

    real = data.TensorDataset(torch.arange(10).reshape(5, 2), torch.arange(5))
    flow = ps.Flow(ps.from_sequence(real, items="samples"), seed=1).shuffle().batch(2)
    found = [(row.tolist(), int(label)) for batch in flow for row, label in zip(batch["x"], batch["y"], strict=True)]
    assert sorted(found) == [([2 * label, 2 * label + 1], label) for label in range(5)]
