"""An HDF5 file is read only where all of it lies in that file."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

import penstock as ps
from penstock.formats.deepethogram.hdf5_labels import read_hdf5_labels
from penstock.formats.videos.label_hdf5 import read_label_hdf5

SECRET = b"root:x:0:0:root:/root:/bin/sh\n" * 40


def hostile(folder: Path, kind: str, name: str) -> Path:
    """A file whose dataset is the content of another one."""
    (folder / "passwd").write_bytes(SECRET)
    with h5py.File(folder / "other.h5", "w") as other:
        other[name] = np.zeros((10, 4, 4, 3), np.uint8)
    with h5py.File(folder / "x.h5", "w") as file:
        if kind == "external storage":
            file.create_dataset(
                name, shape=(10, 4, 4, 3), dtype="u1", external=[(str(folder / "passwd").encode(), 0, 480)]
            )
        elif kind == "external link":
            file[name] = h5py.ExternalLink(str(folder / "other.h5"), f"/{name}")
        elif kind == "link in a group":
            file.create_group("deep/er")["x"] = h5py.ExternalLink(str(folder / "other.h5"), f"/{name}")
            file[name] = np.zeros((10, 4, 4, 3), np.uint8)
        else:
            layout = h5py.VirtualLayout((10, 4, 4, 3), "u1")
            layout[:] = h5py.VirtualSource(str(folder / "other.h5"), name, (10, 4, 4, 3))
            file.create_virtual_dataset(name, layout)
    return folder / "x.h5"


@pytest.mark.parametrize("kind", ["external storage", "external link", "link in a group", "virtual dataset"])
def test_data_in_other_files_are_refused(tmp_path: Path, kind: str) -> None:
    path = hostile(tmp_path, kind, "images")
    with pytest.raises(ps.DataError, match="only data inside the file are read"):
        ps.HDF5(path)


@pytest.mark.parametrize("kind", ["external storage", "external link", "virtual dataset"])
def test_frames_and_labels_in_other_files_are_refused(tmp_path: Path, kind: str) -> None:
    with pytest.raises(ps.DataError, match="only data inside the file are read"):
        ps.Videos(hostile(tmp_path, kind, "frame"))[0]
    for name in ("labels", "predictions"):
        folder = tmp_path / name
        folder.mkdir()
        path = hostile(folder, kind, name)
        with pytest.raises(ps.DataError, match="only data inside the file are read"):
            read_hdf5_labels(path, ("a", "b"))
        with pytest.raises(ps.DataError, match="only data inside the file are read"):
            read_label_hdf5(path)


def test_virtual_datasets_and_circles_of_groups_inside_a_file_are_read(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (10, 4, 4, 3), np.uint8)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["stored"] = pixels
        layout = h5py.VirtualLayout(pixels.shape, "u1")
        layout[:] = h5py.VirtualSource(".", "stored", pixels.shape)
        file.create_virtual_dataset("images", layout)
        file.create_group("a")["back"] = file["/"]
        file["soft"] = h5py.SoftLink("/stored")
    source = ps.HDF5(tmp_path / "x.h5", image="images")
    assert np.array_equal(source[3]["image"], pixels[3])
