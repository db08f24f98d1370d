from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.codecs import kernel
from penstock.errors import OptionError
from penstock.formats.tfrecord import example_records
from penstock.formats.tfrecord.example_reading import Place, decode_example, find_features, values_at
from penstock.formats.tfrecord.example_records import records_around
from penstock.formats.tfrecord.examples import (
    bytes_entry,
    counted_text,
    encode_entries,
    encode_example,
    floats_entry,
    integers_entry,
    number_entry,
    texts_entry,
    varint,
)
from penstock.formats.tfrecord.framing import UnreadableRecord, frame

names = st.text(max_size=12)
floats = st.floats(width=32, allow_nan=False)
whole = st.integers(-(2**63), 2**63 - 1)
values = st.one_of(
    st.lists(st.binary(max_size=40), min_size=1, max_size=4),
    st.lists(whole, min_size=1, max_size=40).map(lambda one: np.array(one, np.int64)),
    st.lists(floats, min_size=1, max_size=20).map(lambda one: np.array(one, np.float32)),
)
examples = st.dictionaries(names, values, max_size=5)


def same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and (one == other if isinstance(one, list) else np.array_equal(one, other))


@given(examples)
def test_what_is_encoded_is_decoded(features: dict[str, Any]) -> None:
    found = decode_example(encode_example(features))
    assert found.keys() == features.keys()
    assert all(same(found[name], features[name]) for name in features)


@given(examples)
def test_the_order_of_features_does_not_matter(features: dict[str, Any]) -> None:
    turned = dict(reversed(features.items()))
    assert encode_example(features) == encode_example(turned)


@given(examples, names, st.lists(st.sampled_from([0, 1, 100, 127, 128, 16_383, 16_384, 70_000]), max_size=3))
@example({"a": [b"x"], "c": [b"y"]}, "b", [2_097_151, 2_097_152])
def test_what_stands_around_a_feature_is_the_rest_of_the_record_in_both_ways(
    features: dict[str, Any], name: str, several: list[int]
) -> None:
    others = {other: value for other, value in features.items() if other != name}
    earlier = encode_entries(others, sorted(other for other in others if other < name))
    later = encode_entries(others, sorted(other for other in others if other > name))
    pieces = tuple(piece for size in several for piece in (earlier, memoryview(bytes(size)), later))
    found = records_around(name, pieces)
    with pytest.MonkeyPatch.context() as patch:
        # Here alone: without the kernel the checksums would take seconds.
        patch.setattr(example_records, "kernel", SimpleNamespace(native_extension=lambda: None))
        assert records_around(name, pieces) == found
    records = [before + bytes(size) + behind for size, (before, behind) in zip(several, found, strict=True)]
    assert records == [frame(encode_example({**others, name: bytes(size)})) for size in several]


def test_pieces_that_are_not_three_of_each_are_refused() -> None:
    native: Any = kernel.native_extension()
    if native is None:
        pytest.skip("the extension is not built")
    with pytest.raises(TypeError, match="three pieces"):
        native.frame_examples((b"", b""), b"name")
    with pytest.raises(TypeError):
        native.frame_examples((b"", "text", b""), b"name")


@given(names, st.lists(whole, max_size=40), st.lists(floats, max_size=20), st.lists(st.text(max_size=9), max_size=4))
def test_single_entries_are_those_of_an_example(
    name: str, numbers: list[int], parts: list[float], texts: list[str]
) -> None:
    def entry(value: Any) -> bytes:
        return encode_entries({name: value}, [name])

    array = np.array(parts, np.float32)
    assert bytes_entry(name, name.encode()) == entry(name)
    assert floats_entry(name, array.tobytes()) == entry(array)
    assert integers_entry(name, b"".join(map(varint, numbers))) == entry(np.array(numbers, np.int64))
    assert texts_entry(name, b"".join(map(counted_text, texts))) == entry(texts)
    assert all(number_entry(name, number) == entry([number]) for number in numbers)


@given(st.lists(examples, min_size=1, max_size=4), names)
def test_features_are_found_where_they_are_in_both_ways(several: list[dict[str, Any]], absent: str) -> None:
    contents = [b"?" + encode_example(features) for features in several]
    ends = np.cumsum([len(content) for content in contents])
    places = np.array([[end - len(one) + 1, len(one) - 1] for one, end in zip(contents, ends, strict=True)], np.int64)
    data, wanted = b"".join(contents), tuple({*(name for one in several for name in one), absent})
    found, is_example = find_features(data, places, wanted)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "native_extension", lambda: None)
        plain, is_plain = find_features(data, places, wanted)
    np.testing.assert_array_equal(found, plain)
    assert is_example.all() and is_plain.all()
    for row, features in enumerate(several):
        for number, name in enumerate(wanted):
            place = Place(*found[row, number].tolist())
            payload = (int(places[row, 0]), int(places[row, 1]))
            assert place.count == len(features.get(name, []))
            if name in features:
                assert same(values_at(memoryview(data), payload, name, place), features[name])


@given(st.binary(max_size=80))
def test_any_bytes_are_an_example_or_an_error_in_both_ways(data: bytes) -> None:
    place, wanted = np.array([[0, len(data)]], np.int64), ("", "a", "image")
    is_example = find_features(data, place, wanted)[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "native_extension", lambda: None)
        assert find_features(data, place, wanted)[1].tolist() == is_example.tolist()


def changed(data: bytes, position: int, value: int) -> bytes:
    return data[:position] + bytes([value]) + data[position + 1 :]


@given(examples, st.integers(0, 10**6), st.integers(0, 255))
def test_damaged_examples_give_the_same_in_both_ways(features: dict[str, Any], position: int, value: int) -> None:
    data = encode_example({**features, "a": [b"x" * 20], "n": [1, -1, 300], "f": [1.5]})
    data = changed(data, position % len(data), value)
    place, wanted = np.array([[0, len(data)]], np.int64), ("a", "n", "f")
    found, is_example = find_features(data, place, wanted)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "native_extension", lambda: None)
        plain, is_plain = find_features(data, place, wanted)
    assert is_example.tolist() == is_plain.tolist()
    if is_example[0]:
        np.testing.assert_array_equal(found[..., [0, 3, 4]], plain[..., [0, 3, 4]])


def test_numbers_that_stand_in_pieces_are_joined() -> None:
    # float_list { value: [1.0] } unpacked, then packed [2.0]; int64_list: 5 alone, then packed 6 and 7
    floats_apart = b"\x0d" + np.float32(1).tobytes() + b"\x0a\x04" + np.float32(2).tobytes()
    whole_apart = b"\x08\x05" + b"\x0a\x02\x06\x07"
    data = b""
    for name, tag, content in ((b"f", b"\x12", floats_apart), (b"n", b"\x1a", whole_apart)):
        feature = tag + bytes([len(content)]) + content
        entry = b"\x0a\x01" + name + b"\x12" + bytes([len(feature)]) + feature
        data += b"\x0a" + bytes([len(entry)]) + entry
    data = b"\x0a" + bytes([len(data)]) + data
    found, _ = find_features(data, np.array([[0, len(data)]], np.int64), ("f", "n"))
    for number, (name, expected) in enumerate({"f": [1.0, 2.0], "n": [5, 6, 7]}.items()):
        place = Place(*found[0, number].tolist())
        assert place.size == -1
        assert np.asarray(values_at(memoryview(data), (0, len(data)), name, place)).tolist() == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("té", ["té".encode()]),
        (b"x", [b"x"]),
        (["a", b"b"], [b"a", b"b"]),
        (7, [7]),
        (True, [1]),
        (1.5, [1.5]),
        (np.arange(6, dtype=np.uint8).reshape(2, 3), [0, 1, 2, 3, 4, 5]),
        (np.array(["a", "bc"]), [b"a", b"bc"]),
        ([], []),
        (None, []),
        (np.zeros(0), []),
    ],
)
def test_values_of_many_kinds_are_taken(value: Any, expected: list[Any]) -> None:
    assert list(decode_example(encode_example({"v": value}))["v"]) == expected


@pytest.mark.parametrize("value", [np.array([2**64 - 1], np.uint64), np.array([1j]), [b"x", 3], object()])
def test_values_that_an_example_cannot_hold_are_refused(value: Any) -> None:
    with pytest.raises(OptionError, match="feature 'v'"):
        encode_example({"v": value})


@pytest.mark.parametrize("data", [b"\x0a\x05abc", b"\x0b", b"\xff" * 11, b"\x0a\x03\x0a\x09x"])
def test_what_is_no_example_says_so(data: bytes) -> None:
    with pytest.raises(UnreadableRecord, match="not a tf.train.Example"):
        decode_example(data)
