"""What every Source obeys, run for each of them.

A new source is added to `FACTORIES`: a function that makes it in an empty folder, with at least two samples.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from column_making import hugging_face_dataset, labels, pictures, write_mds, write_parquet, write_vlen
from made_sources import EveryKind, Reels, pixels
from penstock.codecs.images import encode_image
from penstock.prediction.inputs import image_files
from penstock.samples import RESERVED
from penstock.tasks.labelled import labelled
from picture_making import write_picture
from project_making import write_frames, write_project, write_split
from raster_making import noise, write_raster, write_table
from record_making import classified, detected, pair, write_records, write_tar
from video_making import write_video


def images(folder: Path) -> ps.Source:
    for number in range(6):
        write_picture(folder / ("cat", "dog")[number % 2] / f"{number}.png", 20 + number, 16, seed=number)
    return ps.Images(folder)


def plain_images(folder: Path) -> ps.Source:
    for number in range(3):
        write_picture(folder / f"{number}.jpg", seed=number)
    return ps.Images(folder)


def boxes(folder: Path) -> ps.Source:
    rows = ["image_path,xmin,ymin,xmax,ymax,label,split"]
    for number in range(5):
        write_picture(folder / f"{number}.png", seed=number)
        rows += [f"{number}.png,{box},2,{box + 9.5},20,{'AB'[box % 2]},train" for box in range(number)]
    (folder / "boxes.csv").write_text("\n".join([*rows, "0.png,0,0,0,0,A,val"]))
    return ps.Boxes(folder / "boxes.csv")


def joined(folder: Path) -> ps.Source:
    return ps.concat([images(folder / "one"), images(folder / "two")])


def chosen(folder: Path) -> ps.Source:
    return ps.Subset(images(folder), [4, 0, 2])


def image_paths(folder: Path) -> ps.Source:
    images(folder)
    return image_files(folder)


def relabelled(folder: Path) -> ps.Source:
    return labelled(packed(folder), "image", "label", ("dog", "bird", "cat"))


def rasters(folder: Path) -> ps.Source:
    write_raster(folder / "a.tif", noise(3, 90, 70), nodata=0)
    write_raster(folder / "b.png", noise(4, 40, 130, seed=1), driver="PNG")
    table = write_table(
        folder / "boxes.csv", ["a.tif,1,2,30,40.5,oak", "a.tif,35,30,45,50,pine", "b.png,90,5,99,9,oak"]
    )
    return ps.Rasters(folder, boxes=table, tile_px=40, overlap=0.1)


def plain_rasters(folder: Path) -> ps.Source:
    return ps.Rasters(write_raster(folder / "a.tif", noise(90, 70, dtype="uint16", high=3000)), tile_px=40)


def videos(folder: Path) -> ps.Source:
    write_video(folder / "m1_a.mp4", 7, options={"g": "4", "bf": "2"})
    write_video(folder / "m1_b.avi", 5, codec="mpeg4", options={"bf": "2"})
    write_video(folder / "m2_c.mkv", 4)
    rows = ["video,start,stop,behaviour", "m1_a,0.04,0.16,groom", "m1_a,0.1,0.12,rear", "m1_b,0,0.08,rear"]
    (folder / "events.csv").write_text("\n".join(rows))
    return ps.Videos(folder, labels=folder / "events.csv", size="40x24", group_from="{animal}_*")


def frame_folders(folder: Path) -> ps.Source:
    for number in range(4):
        write_picture(folder / "clip" / f"{number}.png", 20, 16, seed=number)
    return ps.Videos(folder, size=None)


def encoded_frames(folder: Path) -> ps.Source:
    import h5py

    with h5py.File(folder / "mouse.h5", "w") as file:
        frames = file.create_dataset("frame", (4,), dtype=h5py.vlen_dtype(np.uint8))
        for number in range(4):
            frames[number] = np.frombuffer(encode_image(pixels(number), "png"), np.uint8)
    return ps.Videos(folder / "mouse.h5", size="16x12")


def project(folder: Path) -> ps.Source:
    write_split(write_project(folder), {"train": ["m1_a", "m2_a"], "val": ["m1_b"]})
    write_frames(folder / "DATA" / "m1_b" / "m1_b")
    return ps.DeepEthogram(folder)


def pixels_in_hdf5(folder: Path) -> ps.Source:
    import h5py

    with h5py.File(folder / "train.h5", "w") as file:
        file.create_dataset("X", data=pictures(), chunks=(2, 20, 26, 3))
        file["y"] = labels()
        file["name"] = [f"n{number}" for number in range(6)]
    return ps.HDF5(folder / "train.h5")


def images_in_hdf5(folder: Path) -> ps.Source:
    for name in "ab":
        write_vlen(folder / f"{name}.h5", labels=labels(), big=np.zeros((6, 3), np.float32))
    return ps.HDF5(folder / "*.h5")


def frames_in_hdf5(folder: Path) -> ps.Source:
    return ps.HDF5([write_vlen(folder / f"{name}.h5", "frame", exchanged=True) for name in ("mouse", "rat")])


def arrays(folder: Path) -> ps.Source:
    return ps.Arrays(pictures(), labels())


def grey_arrays(folder: Path) -> ps.Source:
    np.savez(folder / "a.npz", x_train=pictures()[..., 0], y_train=labels(), x_test=pictures(2)[..., 1], y_test=[0, 1])
    return ps.Arrays(folder / "a.npz")


def parquet(folder: Path) -> ps.Source:
    write_parquet(folder / "train-0.parquet")
    return ps.Parquet([folder / "train-0.parquet", write_parquet(folder / "test-0.parquet", 3)])


def hugging_face(folder: Path) -> ps.Source:
    import datasets

    parts = {"train": hugging_face_dataset(), "test": hugging_face_dataset(3)}
    datasets.DatasetDict(parts).save_to_disk(folder / "saved")
    return ps.HuggingFace(folder / "saved")


def mds(folder: Path) -> ps.Source:
    return ps.MDS(write_mds(folder / "mds"))


def packed(folder: Path) -> ps.Source:
    return ps.pack(EveryKind(6), folder / "one.pack")


def packed_video(folder: Path) -> ps.Source:
    return ps.pack(Reels(20, 7), folder / "one.pack", codec="h264")


def dataset(folder: Path) -> ps.Source:
    return ps.from_sequence([{"image": pixels(number)} for number in range(5)], items="samples")


def own(folder: Path) -> ps.Source:
    return EveryKind(6)


def tfrecords(folder: Path) -> ps.Source:
    write_records(folder / "train-00000-of-00002", [classified(number) for number in range(4)])
    write_records(folder / "train-00001-of-00002", [classified(number) for number in range(4, 7)])
    return ps.TFRecords(folder)


def boxed_tfrecords(folder: Path) -> ps.Source:
    return ps.TFRecords(write_records(folder / "boxes.tfrecord", [detected(number) for number in range(4)]))


def webdataset(folder: Path) -> ps.Source:
    facts = [json.dumps({"boxes": [[1, 2, 9.5, 12]] * n, "box_label": [7] * n}).encode() for n in range(5)]
    files = [[*pair(number), (f"{number:06d}.json", facts[number])] for number in range(5)]
    write_tar(folder / "s-0.tar", [file for of_sample in files[:2] for file in of_sample])
    write_tar(folder / "s-1.tar", [file for of_sample in files[2:] for file in of_sample])
    return ps.WebDataset(folder)


FACTORIES: dict[str, Callable[[Path], ps.Source]] = {
    "images": images,
    "plain images": plain_images,
    "boxes": boxes,
    "rasters": rasters,
    "plain rasters": plain_rasters,
    "videos": videos,
    "frame folders": frame_folders,
    "encoded frames": encoded_frames,
    "project": project,
    "pixels in HDF5": pixels_in_hdf5,
    "images in HDF5": images_in_hdf5,
    "frames in HDF5": frames_in_hdf5,
    "arrays": arrays,
    "grey arrays": grey_arrays,
    "Parquet": parquet,
    "Hugging Face": hugging_face,
    "MDS": mds,
    "packed": packed,
    "packed video": packed_video,
    "tfrecords": tfrecords,
    "boxed tfrecords": boxed_tfrecords,
    "webdataset": webdataset,
    "dataset": dataset,
    "own": own,
    "concat": joined,
    "subset": chosen,
    "image paths": image_paths,
    "relabelled": relabelled,
}


@pytest.fixture(params=FACTORIES)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> ps.Source:
    return FACTORIES[request.param](tmp_path)


def sample_of(source: ps.Source, index: int) -> dict[str, Any]:
    return source.decode(source.read(index))


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], err_msg=name)


def test_it_is_a_source_with_samples(source: ps.Source) -> None:
    assert isinstance(source, ps.Source)
    assert len(source) >= 2


def test_every_sample_has_the_fields_of_the_schema_and_no_others(source: ps.Source) -> None:
    names = {field.name for field in source.schema.fields}
    for index in range(len(source)):
        assert names <= sample_of(source, index).keys() <= names | set(RESERVED)


def test_every_field_has_the_type_that_the_schema_says(source: ps.Source) -> None:
    for index in range(len(source)):
        sample = sample_of(source, index)
        for field in source.schema.fields:
            check_value(field, sample[field.name], source.schema.classes)


def check_value(field: ps.Field, value: Any, classes: tuple[str, ...]) -> None:
    if field.kind == "image":
        assert value.dtype == np.uint8
        assert value.ndim == 3
        assert value.shape[2] == 3
    elif field.kind == "boxes":
        assert value.dtype == np.float32
        assert value.shape == (len(value), 4)
    elif field.kind == "class":
        assert -1 <= int(value) < len(classes)
    elif field.kind == "labels":
        assert value.ndim == 1
        assert value.dtype == np.dtype(field.dtype)
    elif field.kind == "text":
        assert isinstance(value, str)
    elif field.kind in ("array", "mask"):
        assert isinstance(value, np.ndarray)
    if field.kind == "array":
        assert value.dtype == np.dtype(field.dtype)
        assert field.shape is not None
        assert all(wanted in (None, there) for wanted, there in zip(field.shape, value.shape, strict=True))


def test_labels_are_numbers_of_classes_and_as_many_as_boxes(source: ps.Source) -> None:
    if "box_label" not in source.schema:
        pytest.skip("this source has no boxes")
    for index in range(len(source)):
        sample = sample_of(source, index)
        assert len(sample["boxes"]) == len(sample["box_label"])
        assert all(0 <= label < len(source.schema.classes) for label in sample["box_label"])


def test_the_same_sample_twice_is_the_same(source: ps.Source) -> None:
    for index in range(len(source)):
        assert_same(sample_of(source, index), sample_of(source, index))


def test_changing_a_sample_does_not_change_the_source(source: ps.Source) -> None:
    before = sample_of(source, 1)
    spoiled = sample_of(source, 1)
    for value in spoiled.values():
        if isinstance(value, np.ndarray) and value.flags.writeable:
            value[...] = 0
    assert_same(sample_of(source, 1), before)


def test_it_can_be_pickled_before_and_after_use(source: ps.Source) -> None:
    fresh = pickle.loads(pickle.dumps(source))
    expected = [sample_of(source, index) for index in range(len(source))]
    used = pickle.loads(pickle.dumps(source))
    for copy in (fresh, used):
        assert copy.schema == source.schema
        for index, sample in enumerate(expected):
            assert_same(sample_of(copy, index), sample)


def test_eight_threads_at_once_read_what_one_reads(source: ps.Source) -> None:
    expected = [sample_of(source, index) for index in range(len(source))]
    order = [*range(len(source)), *reversed(range(len(source)))] * 8
    with ThreadPoolExecutor(8) as pool:
        for index, sample in zip(order, pool.map(lambda index: sample_of(source, index), order), strict=True):
            assert_same(sample, expected[index])


def test_indices_count_from_both_ends_and_no_further(source: Any) -> None:
    if not hasattr(source, "__getitem__"):
        pytest.skip("a source of a user's own need not be indexable")
    assert_same(source[-1], source[len(source) - 1])
    for index in (len(source), -len(source) - 1):
        with pytest.raises(IndexError, match=f"sample {index} does not exist: there are {len(source)} samples"):
            source[index]


def test_a_clean_source_has_no_errors(source: ps.Source) -> None:
    assert ps.check(source, decode=True).ok
