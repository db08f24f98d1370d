"""What Penstock exports, as the programs read it that it is made for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from exporting_trips import mice, pets, trees
from made_sources import EveryKind

pytestmark = pytest.mark.filterwarnings("ignore")  # of the peers, each with its own habits


@pytest.fixture
def tensorflow() -> Any:
    return pytest.importorskip("tensorflow", reason="TensorFlow is not installed; make test-peers has it")


def examples(tensorflow: Any, made: ps.Export, features: dict[str, Any]) -> list[dict[str, Any]]:
    """Every record of an export, parsed by TensorFlow."""
    files = [str(path) for path in sorted(made.path.glob("*.tfrecord"))]
    dataset = tensorflow.data.TFRecordDataset(files).map(lambda one: tensorflow.io.parse_single_example(one, features))
    return list(dataset.as_numpy_iterator())


def test_tensorflow_reads_exported_images_and_classes(tensorflow: Any, tmp_path: Path) -> None:
    pack = pets(tmp_path)
    made = ps.export(pack, tmp_path / "out", to="tfrecord", shard_samples=5)
    fixed = tensorflow.io.FixedLenFeature
    features = {
        "image/encoded": fixed([], tensorflow.string),
        "image/format": fixed([], tensorflow.string),
        "image/filename": fixed([], tensorflow.string),
        "image/height": fixed([], tensorflow.int64),
        "image/width": fixed([], tensorflow.int64),
        "image/class/label": fixed([], tensorflow.int64),
        "image/class/text": fixed([], tensorflow.string),
    }
    found = {one["image/filename"].decode(): one for one in examples(tensorflow, made, features)}
    assert len(found) == len(pack)
    for index in range(len(pack)):
        sample = pack[index]
        one = found[sample["key"]]
        pixels = tensorflow.io.decode_image(one["image/encoded"]).numpy()
        assert np.array_equal(pixels, sample["image"]) and one["image/format"] == b"png"
        assert (one["image/height"], one["image/width"]) == sample["image"].shape[:2]
        assert one["image/class/label"] == sample["label"]
        assert one["image/class/text"].decode() == pack.classes[sample["label"]]


def test_tensorflow_reads_exported_boxes(tensorflow: Any, tmp_path: Path) -> None:
    pack = trees(tmp_path)
    made = ps.export(pack, tmp_path / "out", to="tfrecord")
    several = tensorflow.io.RaggedFeature
    sides = ("xmin", "ymin", "xmax", "ymax")
    features: dict[str, Any] = {f"image/object/bbox/{side}": several(tensorflow.float32) for side in sides}
    features["image/object/class/label"] = several(tensorflow.int64)
    features["image/object/class/text"] = several(tensorflow.string)
    features["image/filename"] = tensorflow.io.FixedLenFeature([], tensorflow.string)
    found = {one["image/filename"].decode(): one for one in examples(tensorflow, made, features)}
    for index in range(len(pack)):
        sample = pack[index]
        one = found[sample["key"]]
        height, width = sample["image"].shape[:2]
        parts = np.stack([one[f"image/object/bbox/{side}"] for side in sides], axis=1)
        assert np.allclose(parts * [width, height, width, height], sample["boxes"], atol=1e-4)
        assert np.array_equal(one["image/object/class/label"], sample["box_label"] + 1)
        names = [pack.classes[number].encode() for number in sample["box_label"]]
        assert one["image/object/class/text"].tolist() == names
    assert "id: 1\n  name: 'A'" in (made.path / "label_map.pbtxt").read_text()


def test_tensorflow_reads_every_kind_of_field(tensorflow: Any, tmp_path: Path) -> None:
    source = EveryKind(7)
    made = ps.export(source, tmp_path / "out", to="tfrecord")
    fixed, several = tensorflow.io.FixedLenFeature, tensorflow.io.RaggedFeature
    features = {
        "caption": fixed([], tensorflow.string),
        "score": fixed([], tensorflow.float32),
        "vector": fixed([4], tensorflow.int64),
        "flags": fixed([3], tensorflow.int64),
        "depth": several(tensorflow.float32),
        "depth/shape": fixed([2], tensorflow.int64),
        "mask": fixed([], tensorflow.string),
    }
    for index, one in enumerate(examples(tensorflow, made, features)):
        sample = source.decode(source.read(index))
        assert one["caption"].decode() == sample["caption"] and one["score"] == sample["score"]
        assert np.array_equal(one["vector"], sample["vector"]) and np.array_equal(one["flags"], sample["flags"])
        assert np.array_equal(one["depth"].reshape(one["depth/shape"]), sample["depth"])
        assert np.array_equal(tensorflow.io.decode_png(one["mask"]).numpy()[:, :, 0], sample["mask"])


def test_webdataset_reads_exported_shards(tmp_path: Path) -> None:
    webdataset = pytest.importorskip("webdataset", reason="webdataset is not installed; make test-peers has it")
    pack = trees(tmp_path)
    made = ps.export(pack, tmp_path / "out", to="webdataset", shard_samples=2)
    shards = [str(path) for path in sorted(made.path.glob("*.tar"))]
    found = {}
    for one in webdataset.WebDataset(shards, shardshuffle=False):
        facts = json.loads(one["json"])
        found[facts["key"]] = one, facts
    for index in range(len(pack)):
        sample = pack[index]
        one, facts = found.pop(sample["key"])
        assert bytes(one["png"]) == bytes(pack.read(index).data)
        assert np.allclose(np.reshape(facts["boxes"], (-1, 4)), sample["boxes"], atol=0)
        assert facts["box_label"] == sample["box_label"].tolist()
    assert not found


def test_opencv_reads_the_frames_as_deepethogram_does(tmp_path: Path) -> None:
    """DeepEthogram decodes with OpenCV, which gives BGR, and takes that for RGB: what it was when it was encoded."""
    import cv2
    import h5py

    videos = mice(tmp_path)
    made = ps.export(videos, tmp_path / "out", to="hdf5", layout="deepethogram", codec="png")
    with h5py.File(made.path / "m1" / "m1.h5") as file:
        for index in range(13):
            taken_for_rgb = cv2.imdecode(file["frame"][index], cv2.IMREAD_COLOR)
            assert np.array_equal(taken_for_rgb, videos[index]["image"])
