"""TFRecords of TensorFlow read by us, and ours by TensorFlow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from made_sources import pixels
from penstock.formats.tfrecord.example_reading import decode_example
from penstock.formats.tfrecord.examples import encode_example
from penstock.formats.tfrecord.framing import frame, scan
from record_making import classified, detected, image_bytes, write_records

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed; make test-peers has it")
pytestmark = pytest.mark.filterwarnings("ignore")  # of TensorFlow's own


def feature(value: Any) -> Any:
    if isinstance(value, list):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=value))
    if value.dtype == np.int64:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=value))
    return tf.train.Feature(float_list=tf.train.FloatList(value=value))


def theirs(features: dict[str, Any]) -> bytes:
    entries = {name: feature(value) for name, value in features.items()}
    return bytes(tf.train.Example(features=tf.train.Features(feature=entries)).SerializeToString())


values = st.one_of(
    st.lists(st.binary(max_size=40), min_size=1, max_size=4),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=40).map(lambda one: np.array(one, np.int64)),
    st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=20).map(lambda one: np.array(one, np.float32)),
)
examples = st.dictionaries(st.text(max_size=12), values, max_size=5)


@settings(max_examples=60)
@given(examples)
def test_both_write_what_the_other_reads(features: dict[str, Any]) -> None:
    found = decode_example(theirs(features))
    assert found.keys() == features.keys()
    for name, value in features.items():
        np.testing.assert_array_equal(np.asarray(found[name], object), np.asarray(value, object))
    parsed = tf.train.Example.FromString(encode_example(features))
    assert parsed == tf.train.Example.FromString(theirs(features))


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_files_of_tensorflow_are_read(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "theirs.tfrecord"
    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for number in range(7):
            image = tf.io.encode_png(pixels(number, 20 + number, 16)).numpy()
            writer.write(theirs({"image/encoded": [image], "image/class/label": np.array([number % 3], np.int64)}))
    source = ps.TFRecords(path)
    assert source.column("label").tolist() == [number % 3 for number in range(7)]
    for number in range(7):
        np.testing.assert_array_equal(source[number]["image"], pixels(number, 20 + number, 16))


def test_tensorflow_reads_our_files_and_boxes(tmp_path: Path) -> None:
    path = write_records(tmp_path / "ours.tfrecord", [{**classified(n), **detected(n)} for n in range(5)])
    layout = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
        "image/object/bbox/xmin": tf.io.VarLenFeature(tf.float32),
        "image/object/class/text": tf.io.VarLenFeature(tf.string),
    }
    for number, record in enumerate(tf.data.TFRecordDataset(str(path))):
        parsed = tf.io.parse_single_example(record, layout)
        assert int(parsed["image/class/label"]) == number % 3
        assert parsed["image/encoded"].numpy() == image_bytes(number, 40, 30)
        expected = np.array([box + 1 for box in range(number)], np.float32) / np.float32(40)
        np.testing.assert_array_equal(tf.sparse.to_dense(parsed["image/object/bbox/xmin"]).numpy(), expected)
        assert len(tf.sparse.to_dense(parsed["image/object/class/text"]).numpy()) == number


def test_their_checksums_are_ours(tmp_path: Path) -> None:
    path = tmp_path / "sizes.tfrecord"
    contents = [np.random.default_rng(size).bytes(size) for size in (0, 1, 8, 3071, 3072, 5000, 300_000)]
    with tf.io.TFRecordWriter(str(path)) as writer:
        for content in contents:
            writer.write(content)
    assert path.read_bytes() == b"".join(map(frame, contents))
    assert not scan(path.read_bytes()).damage
