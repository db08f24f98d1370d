"""Examples of the common kind are made from ready parts, and have the bytes of those made feature by feature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.codecs.headers import Header
from penstock.formats.exporting.roles import roles_of
from penstock.formats.tfrecord.example_encoding import IMAGE, ExampleEncoder
from penstock.formats.tfrecord.examples import encode_example
from penstock.formats.tfrecord.framing import frame
from penstock.samples import Field, Schema
from penstock.storage.writing.preparing import Row

CLASSES = ("oak", "Kiefer, grün", *(f"tree {number}" for number in range(200)))
JPEG = b"\xff\xd8\xff" + bytes(range(250)) * 90

labels = st.integers(-1, len(CLASSES) - 1)
corners = st.tuples(*[st.floats(-100, 5000, width=32)] * 4)
trees = st.lists(st.tuples(corners, st.integers(-2, len(CLASSES) + 2)), max_size=40)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
sides = st.integers(1, 70_000)


def encoder(*names: str) -> ExampleEncoder:
    fields = {
        "label": Field("label", "class"),
        "boxes": Field("boxes", "boxes"),
        "box_label": Field("box_label", "labels", "int64"),
        "score": Field("score", "number", "float32"),
    }
    return ExampleEncoder(roles_of(Schema((Field("image", "image"), *(fields[name] for name in names)), CLASSES)))


def row(values: dict[str, Any], width: int, height: int, payload: bytes = JPEG, header: Header | None = None) -> Row:
    return Row(values, memoryview(payload), height, width, header=header)


def expected(encoder: ExampleEncoder, one: Row) -> bytes:
    """The record of a row, feature by feature."""
    return frame(encode_example({**encoder.features(one), IMAGE: bytes(one.payload)}))


def records(encoder: ExampleEncoder, rows: list[Row]) -> list[bytes]:
    for one in rows:
        one.before, one.behind = encoder(one)
    encoder.frame(rows)
    return [b"".join((one.before, one.payload, one.behind)) for one in rows]


@given(st.lists(st.tuples(texts, st.none() | texts, labels, trees, sides, sides), min_size=1, max_size=3))
def test_image_class_boxes_and_group_have_the_bytes_of_their_features(several: list[tuple[Any, ...]]) -> None:
    made = encoder("label", "boxes", "box_label")
    rows = []
    for key, group, label, found, width, height in several:
        boxes = np.array([corner for corner, _ in found], np.float32).reshape(-1, 4)
        values = {
            "key": key,
            "label": label,
            "boxes": boxes,
            "box_label": np.array([one for _, one in found], np.int64),
        }
        rows.append(row(values if group is None else {**values, "group": group}, width, height))
    wanted = [expected(made, one) for one in rows]
    assert records(made, rows) == wanted


@pytest.mark.parametrize("names", [(), ("label",), ("boxes",), ("boxes", "box_label"), ("label", "score")])
@pytest.mark.parametrize("group", [{}, {"group": "flight 7"}])
def test_whatever_a_row_has_the_bytes_are_those_of_its_features(names: tuple[str, ...], group: dict[str, str]) -> None:
    values = {"label": 1, "boxes": np.ones((2, 4), np.float32), "box_label": np.array([0, 1]), "score": np.float32(2)}
    made = encoder(*names)
    one = row({"key": "a.jpg", **group, **{name: values[name] for name in names}}, 500, 375)
    wanted = expected(made, one)
    assert records(made, [one]) == [wanted]


def test_the_format_is_that_of_the_bytes_unless_the_file_was_kept() -> None:
    made = encoder()
    kept = row({"key": "a"}, 5, 4, header=Header("jpeg", 5, 4))
    encoded = row({"key": "a"}, 5, 4, payload=b"\x89PNG\r\n\x1a\n")
    assert made.features(kept)["image/format"] == "jpeg"
    assert made.features(encoded)["image/format"] == "png"


def test_boxes_and_labels_of_different_number_are_refused() -> None:
    made = encoder("boxes", "box_label")
    one = row({"key": "a", "boxes": np.ones((2, 4)), "box_label": np.zeros(1, np.int64)}, 5, 4)
    with pytest.raises(ValueError, match="2 boxes and 1 label for"):
        made(one)


def test_samples_without_an_image_are_records_too() -> None:
    made = ExampleEncoder(roles_of(Schema((Field("label", "class"),), CLASSES)))
    one = Row({"key": "a", "label": 3}, b"", 0, 0)
    wanted = frame(encode_example(made.features(one)))
    assert records(made, [one]) == [wanted]
