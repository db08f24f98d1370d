"""What leaves as any format comes back as a Source with the same pixels, labels, boxes and splits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from exporting_trips import (
    BOX_FORMATS,
    IMAGE_FORMATS,
    READERS,
    by_key,
    class_names_of,
    mice,
    pets,
    trees,
)
from jpeg_making import soft_picture, turned
from made_sources import EveryKind
from penstock.codecs.images import encode_image
from picture_making import write_picture
from video_making import number_shown

NO_SPLITS = ("coco", "voc")


@pytest.fixture(scope="module")
def pet_pack(tmp_path_factory: pytest.TempPathFactory) -> ps.Pack:
    return pets(tmp_path_factory.mktemp("pets"))


@pytest.fixture(scope="module")
def tree_pack(tmp_path_factory: pytest.TempPathFactory) -> ps.Pack:
    return trees(tmp_path_factory.mktemp("trees"))


@pytest.mark.parametrize("to", IMAGE_FORMATS)
def test_images_come_back_with_their_classes_and_splits(pet_pack: ps.Pack, tmp_path: Path, to: str) -> None:
    made = ps.export(pet_pack, tmp_path / to, to=to)
    readers = {**READERS, "directory": lambda path: ps.Images(path / "labels.csv")}
    source = readers[to](made.path)
    assert source.schema.classes == pet_pack.classes and made.splits == pet_pack.splits
    before, after = by_key(pet_pack), by_key(source)
    assert before.keys() == after.keys()
    for key, sample in before.items():
        assert np.array_equal(after[key]["image"], sample["image"])
        assert after[key]["label"] == sample["label"]
        assert after[key]["split"] == sample["split"]
    assert (tmp_path / to / "export.yaml").exists()


@pytest.mark.parametrize("to", BOX_FORMATS)
def test_boxes_come_back_with_their_classes_and_splits(tree_pack: ps.Pack, tmp_path: Path, to: str) -> None:
    made = ps.export(tree_pack, tmp_path / to, to=to)
    readers = {**READERS, "directory": lambda path: ps.Boxes(path / "boxes.csv")}
    source = readers[to](made.path)
    before, after = by_key(tree_pack), by_key(source)
    assert before.keys() == after.keys()
    for key, sample in before.items():
        assert np.array_equal(after[key]["image"], sample["image"])
        assert class_names_of(source, after[key], "box_label") == class_names_of(tree_pack, sample, "box_label")
        # TFRecord stores parts of the width in float32, YOLO in ten decimals.
        exact = to not in ("tfrecord", "yolo")
        assert np.allclose(after[key]["boxes"], sample["boxes"], rtol=0, atol=0 if exact else 1e-5)
        assert to in NO_SPLITS or after[key]["split"] == sample["split"]


def test_boxes_in_arrays_are_rows_one_after_another(tree_pack: ps.Pack, tmp_path: Path) -> None:
    made = ps.export(tree_pack, tmp_path / "numpy", to="numpy", size="40x30")
    counts = np.load(made.path / "boxes_shape.npy")[:, 0]
    assert np.load(made.path / "boxes.npy").shape == (15, 4) and counts.tolist() == [2, 4, 0, 1, 3, 5]
    before, after = by_key(tree_pack), by_key(ps.open(made.path))
    for key, sample in before.items():
        wider = 40 / sample["image"].shape[1]
        assert np.allclose(after[key]["boxes"], sample["boxes"] * np.array([wider, 1, wider, 1], np.float32))
        assert np.array_equal(after[key]["box_label"], sample["box_label"])
        assert after[key]["split"] == sample["split"]


def test_the_lists_of_voc_and_the_files_of_coco_tell_the_splits(tree_pack: ps.Pack, tmp_path: Path) -> None:
    ps.export(tree_pack, tmp_path / "voc", to="voc")
    lists = {path.stem: path.read_text().split() for path in (tmp_path / "voc" / "ImageSets" / "Main").iterdir()}
    assert lists == {"train": ["site0_2", "site0_4", "site0_0"], "val": ["site1_1", "site1_3", "site1_5"]}
    ps.export(tree_pack, tmp_path / "coco", to="coco")
    for split in ("train", "val"):
        keys = {key for key, sample in by_key(tree_pack).items() if sample["split"] == split}
        assert by_key(ps.Boxes(tmp_path / "coco" / f"{split}.json")).keys() == keys


def test_every_kind_of_field_comes_back_from_hdf5_and_is_told_where_it_has_no_place(tmp_path: Path) -> None:
    source = EveryKind(9)
    made = ps.export(source, tmp_path / "hdf5", to="hdf5")
    again = ps.open(made.path)
    assert made.left_out == ()
    for index in range(9):
        before, after = source.decode(source.read(index)), again.decode(again.read(index))
        for name in ("image", "label", "boxes", "box_label", "depth", "vector", "flags"):
            assert np.array_equal(before[name], after[name]), name
        assert (after["caption"], after["score"]) == (before["caption"], before["score"])
    yolo = ps.export(source, tmp_path / "yolo", to="yolo")
    assert yolo.left_out == ("label", "mask", "depth", "vector", "flags", "caption", "score")


@pytest.mark.parametrize(("to", "layout"), [("directory", "auto"), ("hdf5", "deepethogram")])
@pytest.mark.parametrize("codec", ["png", "jpg"])
def test_converted_videos_keep_count_order_colours_labels_and_rate(
    tmp_path: Path, to: str, layout: str, codec: str
) -> None:
    videos = mice(tmp_path)
    made = ps.export(videos, tmp_path / "out", to=to, layout=layout, codec=codec)
    assert [(video["name"], video["frames"], video["fps"]) for video in made.videos] == [("m1", 13, 30), ("m2", 7, 25)]
    labels = made.path / "labels" if to == "directory" else made.path
    again = ps.Videos(made.path, labels=labels, size=None)
    assert again.classes == videos.classes and len(again) == 20
    for index in range(20):
        before, after = videos[index], again[index]
        assert (after["key"], after["frame"]) == (before["key"], before["frame"])
        assert np.array_equal(after["labels"], before["labels"])
        assert number_shown(after["image"]) == before["frame"]
        difference = np.abs(after["image"].astype(int) - before["image"])
        assert difference.max() == 0 if codec == "png" else difference.mean() < 4


def test_videos_as_plain_hdf5_and_as_arrays(tmp_path: Path) -> None:
    videos = mice(tmp_path, size="32x24")
    hdf5 = ps.export(videos, tmp_path / "hdf5", to="hdf5", codec="raw")
    arrays = ps.export(videos, tmp_path / "numpy", to="numpy")
    assert sorted(path.name for path in hdf5.path.glob("*.h5")) == ["m1.h5", "m2.h5"]
    read: dict[str, Any] = {
        "hdf5": ps.open(hdf5.path),
        "numpy": ps.Arrays([arrays.path / "m1", arrays.path / "m2"]),
    }
    for name, source in read.items():
        for index in range(20):
            before, after = videos[index], source.decode(source.read(index))
            assert np.array_equal(before["image"], after["image"]), name
            assert np.array_equal(before["labels"], after["labels" if name == "hdf5" else "label"]), name
            assert (before["time"], before["frame"], before["key"]) == (after["time"], after["frame"], after["key"])


def test_a_pack_of_raw_pixels_is_an_array_in_hdf5_unless_a_codec_is_asked_for(tmp_path: Path) -> None:
    import h5py

    for number in range(4):
        write_picture(tmp_path / "in" / f"{number}.png", 20, 16, seed=number)
    raw = ps.pack(ps.Images(tmp_path / "in"), tmp_path / "raw.pack", codec="raw")
    shapes = {}
    for name, options in (("array", {}), ("asked", {"codec": "png"})):
        made = ps.export(raw, tmp_path / name, to="hdf5", **options)
        with h5py.File(next(made.path.glob("*.h5"))) as file:
            shapes[name] = file["image"].shape
    assert shapes["array"][1:] == (16, 20, 3) and len(shapes["asked"]) == 1


def test_hdf5_tells_the_frame_rate(tmp_path: Path) -> None:
    import h5py

    made = ps.export(mice(tmp_path), tmp_path / "out", to="hdf5", layout="deepethogram", codec="png")
    with h5py.File(made.path / "m1" / "m1.h5") as file:
        assert list(file) == ["frame"] and file.attrs["fps"] == 30
        assert h5py.check_vlen_dtype(file["frame"].dtype) == np.uint8


def test_a_pack_of_videos_is_exported_video_by_video_although_it_has_splits(tmp_path: Path) -> None:
    videos = mice(tmp_path, size="32x24")
    pack = ps.pack(videos, tmp_path / "mice.pack", split="train=0.5,val=0.5")
    made = ps.export(pack, tmp_path / "out", to="directory")
    assert [video["frames"] for video in made.videos] == [13, 7]
    frames = (made.path / "frames.csv").read_text().splitlines()
    assert frames[0] == "path,video,frame,time,group,split"
    assert frames[1].startswith("m1/000000000.jpg,m1,0,0,m1,")
    # The bytes of the pack are kept.
    assert (made.path / "m1" / "000000003.jpg").read_bytes() == bytes(pack.read(3).data)


def test_bytes_stay_as_they_are_unless_asked_otherwise(pet_pack: ps.Pack, tmp_path: Path) -> None:
    made = ps.export(pet_pack, tmp_path / "kept", to="directory")
    for index in range(len(pet_pack)):
        path = made.path / "images" / pet_pack[index]["key"]
        assert path.read_bytes() == bytes(pet_pack.read(index).data)
    small = ps.export(pet_pack, tmp_path / "small", to="directory", size="10x8", codec="jpeg")
    source = ps.Images(small.path / "labels.csv")
    assert source[0]["image"].shape == (8, 10, 3)
    assert all(path.suffix == ".jpg" for path in (small.path / "images").rglob("*.*"))


def test_boxes_follow_their_image_when_its_size_changes(tree_pack: ps.Pack, tmp_path: Path) -> None:
    made = ps.export(tree_pack, tmp_path / "small", to="csv", size="20x15")
    before, after = by_key(tree_pack), by_key(ps.Boxes(made.path / "boxes.csv"))
    for key, sample in before.items():
        width = sample["image"].shape[1]
        expected = sample["boxes"] * np.array([20 / width, 0.5, 20 / width, 0.5], np.float32)
        assert np.allclose(after[key]["boxes"], expected, atol=1e-4)


def test_numbered_files_and_npz(pet_pack: ps.Pack, tmp_path: Path) -> None:
    made = ps.export(pet_pack, tmp_path / "numbered", to="directory", layout="numbered")
    names = sorted(path.relative_to(made.path).as_posix() for path in made.path.glob("images/*/*"))
    assert names[:2] == ["images/train/000000000.png", "images/train/000000001.png"] and len(names) == 12
    assert len(ps.Images(made.path / "labels.csv")) == 12
    npz = ps.export(pet_pack, tmp_path / "npz", to="numpy", layout="npz")
    assert [path.name for path in npz.path.glob("*.np*")] == ["samples.npz"]
    with np.load(npz.path / "samples.npz") as arrays:
        assert arrays["image"].shape == (12, 16, 20, 3)
        assert arrays["classes"].tolist() == ["cat", "dog"]


def test_turned_images_are_written_upright(tmp_path: Path) -> None:
    import cv2

    path = tmp_path / "in" / "a.jpg"
    path.parent.mkdir()
    path.write_bytes(turned(encode_image(soft_picture(48, 32), "jpeg"), 6))
    made = ps.export(ps.Images(path.parent), tmp_path / "out", to="directory")
    file = made.path / "images" / "a.jpg"
    plain = cv2.imread(str(file), cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)
    assert plain.shape == (48, 32, 3)
    upright = ps.Images(path.parent)[0]["image"]
    assert np.abs(plain[:, :, ::-1].astype(int) - upright).mean() < 8
