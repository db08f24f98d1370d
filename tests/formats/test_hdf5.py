"""HDF5: what is recognised, what is read without h5py, threads and processes, and files that are broken."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import penstock as ps
from column_making import COUNT, labels, picture, pictures, png, write_vlen
from penstock.formats.hdf5 import hdf5_columns, hdf5_files


def write(path: Path, **arrays: Any) -> Path:
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name.replace("__", "/")] = array
    return path


def assert_pictures(source: ps.HDF5, count: int = COUNT) -> None:
    for index in range(count):
        np.testing.assert_array_equal(source[index]["image"], picture(index))


@pytest.mark.parametrize(
    ("image", "label"), [("X", "y"), ("images", "labels"), ("x", "targets"), ("data", "label"), ("img", "class")]
)
def test_usual_names_are_recognised_and_said(image: str, label: str, tmp_path: Path) -> None:
    source = ps.HDF5(write(tmp_path / "a.h5", **{image: pictures(), label: labels()}))
    assert source.taken == {"image": image, "label": label}
    assert f"image from {image!r}" in repr(source)
    assert source.classes == ("0", "1", "2")
    assert_pictures(source)
    assert source.column("label").tolist() == labels().tolist()


@pytest.mark.parametrize("names", [("x_{}", "y_{}"), ("{}/images", "{}/labels"), ("{}_set_x", "{}_set_y")])
def test_names_of_splits_become_splits(names: tuple[str, str], tmp_path: Path) -> None:
    arrays = {}
    for split, count in (("train", COUNT), ("test", 2)):
        arrays |= {names[0].format(split): pictures(count), names[1].format(split): labels(count)}
    source = ps.HDF5(write(tmp_path / "a.h5", **arrays, list_classes=np.array([b"cat", b"dog", b"owl"])))
    found = {source[index]["key"]: source[index]["split"] for index in range(len(source))}
    assert sorted(found.values()) == ["test"] * 2 + ["train"] * COUNT
    assert all(key.startswith(split) for key, split in found.items())
    assert source.classes == ("cat", "dog", "owl")
    assert source.left_out == {}


def test_columns_can_be_named(tmp_path: Path) -> None:
    file = write(tmp_path / "a.h5", one=pictures(), two=pictures()[::-1], truth=labels(), weight=np.arange(6.0))
    with pytest.raises(ps.OptionError, match=r"several columns of images: one, two. Say which: image="):
        ps.HDF5(file)
    source = ps.HDF5(file, image="two", label="truth", classes="a,b,c", fields={"importance": "weight"})
    assert source.taken == {"importance": "weight", "image": "two", "label": "truth"}
    np.testing.assert_array_equal(source[0]["image"], picture(5))
    assert source[3]["importance"] == 3.0 and source.classes == ("a", "b", "c")
    assert source.left_out == {"one": "it is not among fields"}


def test_a_column_that_is_not_there_is_named_with_the_nearest(tmp_path: Path) -> None:
    file = write(tmp_path / "a.h5", pixels=pictures(), labels=labels())
    with pytest.raises(
        ps.DataError, match=r"no column 'pixel' for image; there are labels, pixels. Did you mean 'pixels'"
    ):
        ps.HDF5(file, image="pixel")


# What is stored how


LAYOUTS: dict[str, Mapping[str, Any]] = {
    "contiguous": {},
    "whole rows in chunks": {"chunks": (4, 20, 26, 3)},
    "rows cut by chunks": {"chunks": (4, 10, 26, 3)},
    "compressed": {"chunks": (4, 20, 26, 3), "compression": "gzip"},
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("userblock_bytes", [0, 512])
def test_pixels_are_the_same_however_they_are_stored(
    layout: str, userblock_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hdf5_columns, "SMALL_BYTES", 1000)
    with h5py.File(tmp_path / "a.h5", "w", userblock_size=userblock_bytes) as file:
        file.create_dataset("X", data=pictures(), **LAYOUTS[layout])
        file["y"] = labels()
    source = ps.HDF5(tmp_path / "a.h5")
    assert source.stores_pixels == (layout in ("contiguous", "whole rows in chunks"))
    assert_pictures(source)
    flow = ps.Flow(source, seed=3).shuffle().map(ps.augment.RandomCrop(9)).batch(COUNT)
    assert [batch["image"].shape for batch in flow] == [(COUNT, 9, 9, 3)]


def test_mapped_and_read_pixels_make_the_same_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hdf5_columns, "SMALL_BYTES", 1000)
    batches = []
    for name, layout in LAYOUTS.items():
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file.create_dataset("X", data=pictures(), **layout)
        flow = ps.Flow(ps.HDF5(tmp_path / f"{name}.h5"), seed=3).shuffle().map(ps.augment.RandomCrop(9)).batch(COUNT)
        batches.append(next(iter(flow))["image"])
    for batch in batches[1:]:
        np.testing.assert_array_equal(batch, batches[0])


def test_rows_that_were_never_written_are_read_by_h5py(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        stored = file.create_dataset("X", (COUNT, 20, 26, 3), np.uint8, chunks=(1, 20, 26, 3), fillvalue=9)
        stored[2] = picture(2)
    source = ps.HDF5(tmp_path / "a.h5")
    np.testing.assert_array_equal(source[2]["image"], picture(2))
    assert (source[5]["image"] == 9).all()


def test_encoded_images_keep_their_bytes(tmp_path: Path) -> None:
    source = ps.HDF5(write_vlen(tmp_path / "a.h5", "images", labels=labels()))
    assert source.encoded_images
    assert bytes(source.read(4).data) == png(4)
    packed = ps.pack(source, tmp_path / "a.pack", progress=False)
    assert bytes(packed.read(4).data) == png(4)


def test_frame_files_are_a_group_each_and_have_their_colours(tmp_path: Path) -> None:
    for name in ("mouse", "rat"):
        write_vlen(tmp_path / f"{name}.h5", "frame", exchanged=True)
    source = ps.HDF5(tmp_path)
    assert_pictures(source)
    assert source.column("group").tolist() == ["mouse"] * COUNT + ["rat"] * COUNT
    assert source[COUNT + 1]["key"] == "rat/1"
    assert not source.encoded_images  # their bytes, decoded as they are, have red and blue exchanged
    flow = ps.Flow(source, seed=1).batch(2)
    np.testing.assert_array_equal(next(iter(flow))["image"], pictures(2))


def test_colours_can_be_said(tmp_path: Path) -> None:
    file = write_vlen(tmp_path / "a.h5", "frame", exchanged=False)
    assert_pictures(ps.HDF5(file, channels="rgb"))


def test_numbers_texts_and_vectors_become_fields(tmp_path: Path) -> None:
    more = {"weight": np.arange(6, dtype=np.float32), "name": ["a", "b", "c", "d", "e", "é"], "v": np.eye(6)[:, :4]}
    source = ps.HDF5(write(tmp_path / "a.h5", X=pictures(), **more, mean=np.zeros(3)))
    assert {field.name: field.kind for field in source.schema.fields} == {
        "image": "image",
        "name": "text",
        "v": "array",
        "weight": "number",
    }
    assert source[5]["name"] == "é" and source[2]["v"].tolist() == [0, 0, 1, 0]
    assert source.left_out == {"mean": "it has 3 rows, and there are 6 samples"}
    np.testing.assert_array_equal(source.gather("v", np.array([3, 0])), np.eye(6)[[3, 0], :4])


# Threads and processes


def _read_in_a_fork(source: ps.HDF5, queue: Any) -> None:
    opened = []
    original = hdf5_files.open_hdf5
    hdf5_files.open_hdf5 = lambda path, **_: opened.append(path) or original(path)  # type: ignore[func-returns-value]
    values = [int(source[index]["image"][0, 0, 0]) for index in range(len(source))]
    queue.put((values, len(opened)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_opens_the_file_for_itself(tmp_path: Path) -> None:
    source = ps.HDF5(write_vlen(tmp_path / "a.h5", "images"))
    assert_pictures(source)  # the handle of this process is open now
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_read_in_a_fork, args=(source, queue))
    child.start()
    assert queue.get(timeout=600) == ([int(picture(index)[0, 0, 0]) for index in range(COUNT)], 1)
    child.join(60)
    assert_pictures(source)


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_explain_tells_what_h5pys_lock_costs(executor: Any, tmp_path: Path) -> None:
    source = ps.HDF5(write_vlen(tmp_path / "a.h5", "images", labels=labels()))
    flow = ps.Flow(source, seed=1, workers=2, executor=executor).map(ps.augment.Resize((8, 8))).batch(2)
    assert len(list(flow)) == 3
    assert "h5py's lock" in flow.explain()
    assert flow.metrics()["lock_wait_seconds"] > 0


def test_explain_is_silent_about_locks_that_nobody_takes(tmp_path: Path) -> None:
    flow = ps.Flow(ps.HDF5(write(tmp_path / "a.h5", X=pictures())), seed=1, workers=2).batch(2)
    assert len(list(flow)) == 3
    assert "lock" not in flow.explain()


# Broken files


def crashed_writer(path: Path, **settings: Any) -> Path:
    code = (
        f"import h5py, os, numpy as np; file = h5py.File({str(path)!r}, 'w', **{settings!r}); "
        "file['X'] = np.zeros((5, 4, 4, 3), np.uint8); file.flush(); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    return path


def test_a_file_that_its_writer_left_open_names_the_remedy(tmp_path: Path) -> None:
    file = crashed_writer(tmp_path / "a.h5", libver="latest")
    with pytest.raises(ps.DataError, match=r"marked as open for writing: .*h5clear -s"):
        ps.HDF5(file)


def test_all_broken_files_are_said_at_once(tmp_path: Path) -> None:
    whole = write(tmp_path / "whole.h5", X=pictures()).read_bytes()
    (tmp_path / "cut.h5").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "other.h5").write_bytes(b"no such format")
    (tmp_path / "empty.h5").write_bytes(b"")
    with pytest.raises(ps.DataError) as error:
        ps.HDF5(tmp_path)
    problems = {Path(problem.file).name: problem.what for problem in error.value.problems}
    assert problems.keys() == {"cut.h5", "other.h5", "empty.h5"}
    assert "cut short" in problems["cut.h5"] and "not an HDF5 file" in problems["other.h5"]


def test_images_and_labels_of_different_lengths_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ps.DataError, match=r"'X' has 6 rows and 'y' has 5. Each sample needs one row in both"):
        ps.HDF5(write(tmp_path / "a.h5", X=pictures(), y=labels(5)))


def test_files_of_different_columns_are_said_by_name(tmp_path: Path) -> None:
    write(tmp_path / "a.h5", X=pictures(), y=labels())
    write(tmp_path / "b.h5", X=pictures())
    with pytest.raises(ps.DataError, match=r"b\.h5: it has no column 'y' as the first file has; there are X"):
        ps.HDF5(tmp_path)


def test_lists_of_classes_that_differ_between_files_are_refused(tmp_path: Path) -> None:
    for name, classes in (("a", ["oak", "elm", "ash"]), ("b", ["elm", "oak", "ash"])):
        write(tmp_path / f"{name}.h5", X=pictures(), y=labels(), classes=np.array(classes, "S"))
    with pytest.raises(
        ps.DataError, match=r"b\.h5: it lists the classes elm, oak, ash, and .*a\.h5 lists oak, elm, ash"
    ):
        ps.HDF5(tmp_path)
    assert ps.HDF5(tmp_path, classes="fir,yew,box").classes == ("fir", "yew", "box")


def test_a_list_of_classes_in_one_file_holds_for_all(tmp_path: Path) -> None:
    write(tmp_path / "a.h5", X=pictures(), y=labels())
    write(tmp_path / "b.h5", X=pictures(), y=labels(), classes=np.array(["oak", "elm", "ash"], "S"))
    assert ps.HDF5(tmp_path).classes == ("oak", "elm", "ash")


def test_a_file_without_rows_and_one_without_datasets_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ps.DataError, match="it holds no sample"):
        ps.HDF5(write(tmp_path / "a.h5", X=np.zeros((0, 4, 4, 3), np.uint8)))
    with pytest.raises(ps.DataError, match="it holds no sample"):
        ps.HDF5(write(tmp_path / "b.h5"))


def test_bytes_that_are_no_image_are_an_error_when_named(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        stored = file.create_dataset("blob", (2,), dtype=h5py.vlen_dtype(np.uint8))
        stored[0] = stored[1] = np.frombuffer(b"words", np.uint8)
        file["y"] = [0, 1]
    with pytest.raises(ps.DataError, match="'blob' holds bytes that are no image"):
        ps.HDF5(tmp_path / "a.h5", image="blob")
    assert "blob" in ps.HDF5(tmp_path / "a.h5").left_out
