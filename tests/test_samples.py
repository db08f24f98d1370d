"""The words that everything meets in: fields, schemas, subsets and joined sources."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import penstock as ps
from made_sources import Pictures
from penstock.errors import Problem
from penstock.problems import raise_problems
from penstock.samples import as_store, checked_index


class Numbers:
    """A source of labelled numbers that decodes only what was read."""

    schema = ps.Schema((ps.Field("value", "number", "int64"), ps.Field("label", "class")), ("odd", "even"))

    def __init__(self, values: list[int], classes: tuple[str, ...] = ("odd", "even")) -> None:
        self.values = values
        self.schema = ps.Schema(Numbers.schema.fields, classes)

    def __len__(self) -> int:
        return len(self.values)

    def read(self, index: int) -> ps.Raw:
        return ps.Raw(index, self.values[index])

    def decode(self, raw: ps.Raw) -> dict[str, Any]:
        parity = "even" if raw.data % 2 == 0 else "odd"
        label = self.schema.classes.index(parity) if parity in self.schema.classes else -1
        return {"value": raw.data, "label": label, "key": f"n{raw.data}"}

    def column(self, name: str) -> np.ndarray[Any, Any]:
        return np.array([self.decode(self.read(index))[name] for index in range(len(self))])


class Missing(Numbers):
    """Its files went away; its annotations did not."""

    def read(self, index: int) -> ps.Raw:
        raise FileNotFoundError(2, "No such file or directory", "gone.jpg")

    def annotations(self, index: int) -> dict[str, Any]:
        return {"key": f"picture {index}"}


@pytest.mark.parametrize("name", ["key", "group", "split", "origin"])
def test_a_field_cannot_take_a_reserved_name(name: str) -> None:
    with pytest.raises(ps.OptionError, match=name):
        ps.Field(name, "text")


def test_an_array_needs_type_and_shape() -> None:
    with pytest.raises(ps.OptionError, match="'depth': an array needs dtype and shape"):
        ps.Field("depth", "array", "float32")
    with pytest.raises(ps.OptionError, match="'depth': an array needs dtype and shape"):
        ps.Field("depth", "array", shape=(3,))
    assert ps.Field("depth", "array", "float32", (None, 3)).shape == (None, 3)


@pytest.mark.parametrize("dtype", ["complex64", "object", "datetime64[s]", "U5"])
def test_a_field_holds_numbers_that_a_pack_can_store(dtype: str) -> None:
    with pytest.raises(ps.OptionError, match="not a number type"):
        ps.Field("x", "labels", dtype)


def test_a_schema_finds_its_fields_by_name() -> None:
    schema = Numbers.schema
    assert schema["label"].kind == "class"
    assert "value" in schema and "image" not in schema
    with pytest.raises(KeyError, match="no field 'lable'; there are value, label. Did you mean 'label'?"):
        schema["lable"]


def test_the_first_image_of_a_schema_is_its_payload() -> None:
    left, right = ps.Field("left", "image"), ps.Field("right", "image")
    assert ps.Schema((ps.Field("x", "text"), left, right)).image == left
    assert Numbers.schema.image is None


def test_an_index_counts_from_both_ends_and_no_further() -> None:
    assert [checked_index(index, 3) for index in (0, 2, -1, -3)] == [0, 2, 2, 0]
    for index in (3, -4):
        with pytest.raises(IndexError, match=f"sample {index} does not exist: there are 3 samples"):
            checked_index(index, 3)


def test_a_sample_that_cannot_be_read_is_named_with_its_hop() -> None:
    with pytest.raises(ps.HopError, match=r"sample 1 \(picture 1\): read failed: .*gone.jpg") as caught:
        as_store(Missing([1, 2]))[1]
    assert isinstance(caught.value.__cause__, FileNotFoundError)


def test_a_sample_without_a_key_is_named_by_its_number() -> None:
    assert as_store(Numbers([5])).describe(0) == "sample 0"


def test_annotations_come_without_pixels_even_from_a_source_that_must_decode() -> None:
    class Pictured(Numbers):
        schema = ps.Schema((ps.Field("image", "image"), *Numbers.schema.fields), ("odd", "even"))

        def __init__(self) -> None:
            self.values = [4]

        def decode(self, raw: ps.Raw) -> dict[str, Any]:
            return {"image": np.zeros((2, 2, 3), np.uint8), **super().decode(raw)}

    assert as_store(Pictured()).annotations(0) == {"value": 4, "label": 1, "key": "n4"}


def test_a_subset_is_these_samples_in_this_order() -> None:
    subset = ps.Subset(Numbers([10, 11, 12, 13]), [3, 1, 1])
    assert len(subset) == 3
    assert [subset[index]["value"] for index in range(3)] == [13, 11, 11]
    assert subset[-1]["value"] == 11
    assert subset.column("value").tolist() == [13, 11, 11]
    assert subset.classes == ("odd", "even")
    assert subset.annotations(0)["key"] == "n13"
    with pytest.raises(IndexError, match="there are 3 samples"):
        subset[3]


def test_a_subset_of_a_subset_and_of_a_joined_source_keeps_its_samples() -> None:
    joined = ps.concat([Numbers([1, 2]), Numbers([3, 4, 5])])
    inner = ps.Subset(ps.Subset(joined, [4, 3, 1]), [2, 0])
    assert [inner[index]["value"] for index in range(len(inner))] == [2, 5]


@pytest.mark.parametrize(
    ("indices", "words"),
    [
        (np.array([True, False, True]), r"these are True and False. For a mask pass np.flatnonzero\(mask\)"),
        ([True, False, True], "these are True and False"),
        ([1.7], "a list of whole numbers, and this is 1-dimensional float64"),
        ([[0, 1]], "a list of whole numbers, and this is 2-dimensional"),
        ([0, -1], "there is no sample -1"),
        ([0, 3], "there is no sample 3: there are 3, from 0 to 2"),
    ],
)
def test_a_subset_refuses_what_are_no_numbers_of_samples(indices: Any, words: str) -> None:
    with pytest.raises(ps.OptionError, match=words):
        ps.Subset(Pictures(3), indices)


def test_an_empty_subset_has_no_samples() -> None:
    subset = ps.Subset(Numbers([1]), [])
    assert len(subset) == 0 and subset.column("value").tolist() == []


def test_joined_sources_follow_one_another() -> None:
    joined = ps.concat([Numbers([1, 2]), Numbers([]), Numbers([3])])
    assert len(joined) == 3
    assert [joined[index]["value"] for index in (0, 1, 2, -1)] == [1, 2, 3, 3]
    assert [joined.annotations(index)["key"] for index in range(3)] == ["n1", "n2", "n3"]


def test_joined_classes_are_matched_by_name() -> None:
    joined = ps.concat([Numbers([1, 2]), Numbers([3, 4], ("even", "prime", "odd"))])
    assert joined.classes == ("odd", "even", "prime")
    names = [joined.classes[joined[index]["label"]] for index in range(4)]
    assert names == ["odd", "even", "odd", "even"]
    assert joined.column("label").tolist() == [0, 1, 0, 1]
    assert [joined.annotations(index)["label"] for index in range(4)] == [0, 1, 0, 1]


def test_no_label_stays_no_label_when_sources_are_joined() -> None:
    joined = ps.concat([Numbers([1, 2]), Numbers([3, 4], ("even",))])
    assert joined.column("label").tolist() == [0, 1, -1, 1]
    assert joined[2]["label"] == -1


def test_classes_of_boxes_are_renumbered_too() -> None:
    class Boxed:
        def __init__(self, classes: tuple[str, ...], numbers: list[int]) -> None:
            fields = (ps.Field("boxes", "boxes"), ps.Field("box_label", "labels", "int64"))
            self.schema, self.numbers = ps.Schema(fields, classes), numbers

        def __len__(self) -> int:
            return 1

        def read(self, index: int) -> ps.Raw:
            return ps.Raw(index, None)

        def decode(self, raw: ps.Raw) -> dict[str, Any]:
            return {"boxes": np.zeros((len(self.numbers), 4), np.float32), "box_label": np.array(self.numbers)}

    joined = ps.concat([Boxed(("a", "b"), [0, 1]), Boxed(("c", "a"), [0, 1, 1]), Boxed(("c",), [])])
    assert joined.classes == ("a", "b", "c")
    assert [joined[index]["box_label"].tolist() for index in range(3)] == [[0, 1], [2, 0, 0], []]


def test_only_sources_of_one_kind_can_be_joined() -> None:
    class Other(Numbers):
        def __init__(self) -> None:
            self.values, self.schema = [1], ps.Schema((ps.Field("value", "number", "int64"),))

    with pytest.raises(ps.OptionError, match=r"source 1 has other fields than source 0: value \(number\) and"):
        ps.concat([Numbers([1]), Other()])
    with pytest.raises(ps.OptionError, match="at least one source"):
        ps.concat([])


def test_frame_labels_join_only_with_the_same_classes() -> None:
    class Frames(Numbers):
        def __init__(self, *classes: str) -> None:
            self.values, self.schema = [1], ps.Schema((ps.Field("labels", "labels", "int8", (2,)),), classes)

    with pytest.raises(ps.OptionError, match="pack both with the same classes"):
        ps.concat([Frames("rest", "walk"), Frames("walk", "rest")])
    assert len(ps.concat([Frames("rest", "walk"), Frames("rest", "walk")])) == 2


def test_subsets_and_joined_sources_come_through_pickle() -> None:
    again = pickle.loads(pickle.dumps(ps.Subset(ps.concat([Numbers([1]), Numbers([4])]), [1, 0])))
    assert [again[index]["value"] for index in range(2)] == [4, 1]


def test_warnings_alone_do_not_raise() -> None:
    warning = Problem("a.csv", None, "odd", "Look", warning=True)
    raise_problems([warning])
    with pytest.raises(ps.DataError) as caught:
        raise_problems([warning, Problem("b.csv", None, "wrong", "Fix it")])
    assert [problem.file for problem in caught.value.problems] == ["b.csv"]
