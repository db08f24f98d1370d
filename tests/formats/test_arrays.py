"""NumPy arrays in memory and in files: shapes that are images, mapping, and what is refused."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from column_making import COUNT, labels, picture, pictures


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((COUNT, 20, 26, 3), lambda pixels: pixels),
        ((COUNT, 20, 26), lambda pixels: np.repeat(pixels[..., :1], 3, axis=-1)),
        ((COUNT, 20, 26, 1), lambda pixels: np.repeat(pixels[..., :1], 3, axis=-1)),
        ((COUNT, 3, 20, 26), lambda pixels: pixels),
        ((COUNT, 1, 20, 26), lambda pixels: np.repeat(pixels[..., :1], 3, axis=-1)),
        ((COUNT, 20, 26, 4), lambda pixels: pixels),
    ],
)
def test_shapes_of_images_are_recognised(shape: tuple[int, ...], expected: Any) -> None:
    pixels = pictures()
    stored = pixels
    if shape[-1] == 4:
        stored = np.concatenate([pixels, pixels[..., :1]], axis=-1)
    elif 3 not in shape:
        stored = pixels[..., 0]
    if shape[1] in (1, 3):
        stored = pixels.transpose(0, 3, 1, 2)[:, : shape[1]]
    source = ps.Arrays(np.ascontiguousarray(stored.reshape(shape)))
    for index in range(COUNT):
        np.testing.assert_array_equal(source[index]["image"], expected(pixels)[index])
    assert source.image_sizes(np.array([1, 1])).tolist() == [[26, 20]] * 2
    assert source.uniform_image_size() == (26, 20)


def test_the_layout_decides_where_both_could_be_meant() -> None:
    stored = np.arange(2 * 3 * 5 * 4, dtype=np.uint8).reshape(2, 3, 5, 4)
    assert ps.Arrays(stored)[0]["image"].shape == (3, 5, 3)
    assert ps.Arrays(stored, layout="chw")[0]["image"].shape == (5, 4, 3)


def test_floats_are_an_array_field_with_their_values() -> None:
    values = pictures().astype(np.float32) / 255
    source = ps.Arrays(values, labels())
    assert source.schema["image"] == ps.Field("image", "array", "float32", (20, 26, 3))
    np.testing.assert_array_equal(source[2]["image"], values[2])
    batch = next(iter(ps.Flow(source, seed=1).batch(COUNT)))
    np.testing.assert_array_equal(batch["image"], values)


def test_batches_of_arrays_are_the_arrays() -> None:
    batch = next(iter(ps.Flow(ps.Arrays(pictures(), labels()), seed=1).batch(COUNT)))
    np.testing.assert_array_equal(batch["image"], pictures())
    np.testing.assert_array_equal(batch["label"], labels())


def test_a_sample_cannot_change_the_array() -> None:
    pixels = pictures()
    with pytest.raises(ValueError, match="read-only"):
        ps.Arrays(pixels)[0]["image"][...] = 0
    assert pixels.flags.writeable


def test_texts_are_classes_by_name() -> None:
    source = ps.Arrays(pictures(), ["dog", "cat", "dog", "owl", "", "cat"])
    assert source.classes == ("cat", "dog", "owl")
    assert source.column("label").tolist() == [1, 0, 1, 2, -1, 0]
    with pytest.raises(ps.DataError, match=r"arrays record 3: label is 'owl', which is not one of the 2 classes"):
        ps.Arrays(pictures(), ["dog", "cat", "dog", "owl", "", "cat"], classes=["cat", "dog"])


def test_labels_beyond_the_classes_are_all_named() -> None:
    with pytest.raises(ps.DataError) as error:
        ps.Arrays(pictures(), [0, 3, -1, -2, 1, 2], classes="a,b,c")
    assert [problem.row for problem in error.value.problems] == [1, 3]


def test_numbers_that_cannot_be_classes_are_refused() -> None:
    with pytest.raises(ps.DataError, match="hardly the number of a class"):
        ps.Arrays(pictures(), np.arange(6) + 10**9)


def test_fractions_are_numbers_and_rows_of_labels_vectors() -> None:
    assert ps.Arrays(pictures(), np.linspace(0, 1, 6)).schema["label"].kind == "number"
    source = ps.Arrays(pictures(), np.eye(6, dtype=np.int8))
    assert source.schema["label"].kind == "labels"
    assert source.classes == tuple("012345")
    assert ps.Arrays(pictures(), labels()[:, None]).column("label").tolist() == labels().tolist()


# Files


def is_mapped(array: Any) -> bool:
    """Whether it shows memory of something that is no array: a file that is mapped."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array is not None and not isinstance(array, bytes)


def test_npy_files_are_mapped(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", pictures())
    np.save(tmp_path / "y.npy", labels())
    source = ps.Arrays(tmp_path / "x.npy", tmp_path / "y.npy")
    assert source.stores_pixels and len(pickle.dumps(source)) < 2000
    np.testing.assert_array_equal(source[3]["image"], picture(3))
    assert ps.Arrays(tmp_path).taken == {"image": "x", "label": "y"}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_files_are_read_stored_or_compressed(save: Any, tmp_path: Path) -> None:
    save(tmp_path / "a.npz", images=pictures(), labels=labels(), order=np.asfortranarray(np.eye(6)))
    source = ps.Arrays(tmp_path / "a.npz")
    assert is_mapped(source.read(0).data) == (save is np.savez)
    for index in range(COUNT):
        np.testing.assert_array_equal(source[index]["image"], picture(index))
    np.testing.assert_array_equal(source.gather("order", np.array([4, 1])), np.eye(6)[[4, 1]])


def test_pickled_objects_are_refused_with_the_reason(tmp_path: Path) -> None:
    objects = np.array([picture(0), picture(1)[:5], None], object)
    np.save(tmp_path / "a.npy", objects)
    np.savez(tmp_path / "a.npz", x=objects)
    for name in ("a.npy", "a.npz"):
        with pytest.raises(
            ps.DataError, match=r"Python objects, which are read by running code from the file. .*np.stack"
        ):
            ps.Arrays(tmp_path / name)
    with pytest.raises(ps.DataError, match=r"holds object, .*np.stack"):
        ps.Arrays(objects)


def test_broken_files_are_data_errors(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", pictures())
    np.savez(tmp_path / "a.npz", x=pictures())
    for name in ("a.npy", "a.npz"):
        data = (tmp_path / name).read_bytes()
        for size in (0, 3, 60, len(data) // 2, len(data) - 1):
            (tmp_path / name).write_bytes(data[:size])
            with pytest.raises(ps.DataError, match=name):
                ps.Arrays(tmp_path / name)


def test_labels_need_one_row_for_each_image() -> None:
    with pytest.raises(ps.DataError, match=r"'image' has 6 rows and 'label' has 5"):
        ps.Arrays(pictures(), labels(5))


def test_unknown_options_name_the_nearest() -> None:
    with pytest.raises(ps.OptionError, match=r"Arrays has no option 'clases'. Did you mean 'classes'\?"):
        ps.Arrays(pictures(), clases="a")
    with pytest.raises(ps.OptionError, match="layout='cwh' is not one of auto, hwc, chw"):
        ps.Arrays(pictures(), layout="cwh")


def test_what_is_in_the_arrays_decides_the_fingerprint() -> None:
    changed = pictures()
    changed[5, 3, 3, 0] ^= 1
    assert ps.Arrays(pictures()).fingerprint() == ps.Arrays(pictures()).fingerprint()
    assert ps.Arrays(pictures()).fingerprint() != ps.Arrays(changed).fingerprint()
    assert ps.Arrays(pictures()).fingerprint() != ps.Arrays(pictures(), labels()).fingerprint()


@pytest.mark.parametrize("width", [(), (4,)])
def test_values_of_other_sizes_are_found_by_their_shapes(width: tuple[int, ...]) -> None:
    counts = [2, 0, 1, 3, 0, 1]
    boxes = np.arange(sum(counts) * 4, dtype=np.float32)
    arrays = {
        "image": pictures(),
        "boxes": boxes.reshape(-1, *width),
        "boxes_shape": np.array([(count, 4) for count in counts]),
        "box_label": np.arange(sum(counts)) % 3,
        "box_label_shape": np.array(counts)[:, None],
        "classes": np.array(["oak", "elm", "ash"]),
    }
    source = ps.Arrays(arrays)
    assert source.taken == {"image": "image", "boxes": "boxes", "box_label": "box_label"} and not source.left_out
    found = np.concatenate([source[index]["boxes"] for index in range(COUNT)])
    np.testing.assert_array_equal(found.ravel(), boxes)
    assert [len(source[index]["box_label"]) for index in range(COUNT)] == counts
    assert source.classes == ("oak", "elm", "ash")
