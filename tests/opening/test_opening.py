"""`ps.open` gives the source that reads what is there, and says what it looked for where it knows none."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import datasets
import numpy as np
import pytest

import penstock as ps
from column_making import hugging_face_dataset, labels, pictures, png, write_mds, write_parquet, write_vlen
from commands import run_here
from made_sources import EveryKind
from penstock.formats.tfrecord.examples import encode_example
from penstock.formats.tfrecord.framing import frame
from penstock.opening import kind_of
from picture_making import write_picture
from project_making import write_project
from raster_making import noise, write_raster
from video_making import write_video


def pack(folder: Path) -> Path:
    return ps.pack(EveryKind(3), folder / "a.pack", progress=False).path


def renamed_pack(folder: Path) -> Path:
    return pack(folder).rename(folder / "data")


def tfrecord(folder: Path) -> Path:
    records = [encode_example({"image/encoded": png(number), "image/class/label": [number]}) for number in range(3)]
    (folder / "train.tfrecord-00000-of-00001").write_bytes(b"".join(frame(record) for record in records))
    return folder


def tar(folder: Path) -> Path:
    for number in range(2):
        (folder / f"{number}.png").write_bytes(png(number))
        (folder / f"{number}.cls").write_text(str(number))
    (folder / "shards").mkdir()
    with tarfile.open(folder / "shards" / "a-000.tar", "w") as shard:
        for name in ("0.png", "0.cls", "1.png", "1.cls"):
            shard.add(folder / name, name)
    return folder / "shards"


def hdf5(folder: Path) -> Path:
    return write_vlen(folder / "a.h5", labels=labels())


def hdf5_of_other_name(folder: Path) -> Path:
    return write_vlen(folder / "a.dataset", labels=labels())


def npz(folder: Path) -> Path:
    np.savez(folder / "a.npz", x=pictures(), y=labels())
    return folder / "a.npz"


def npy_folder(folder: Path) -> Path:
    np.save(folder / "images.npy", pictures())
    np.save(folder / "labels.npy", labels())
    return folder


def parquet(folder: Path) -> Path:
    write_parquet(folder / "train-0.parquet")
    (folder / "README.md").write_text("words")
    return folder


def saved(folder: Path) -> Path:
    hugging_face_dataset().save_to_disk(folder / "saved")
    return folder / "saved"


def saved_splits(folder: Path) -> Path:
    datasets.DatasetDict({"train": hugging_face_dataset()}).save_to_disk(folder / "saved")
    return folder / "saved"


def mds(folder: Path) -> Path:
    return write_mds(folder / "mds")


def mds_splits(folder: Path) -> Path:
    write_mds(folder / "mds" / "train")
    write_mds(folder / "mds" / "val")
    return folder / "mds"


def class_folders(folder: Path) -> Path:
    for name in ("cat", "dog"):
        write_picture(folder / name / "0.jpg")
    (folder / "notes.txt").write_text("who took them")
    return folder


def table_of_images(folder: Path) -> Path:
    write_picture(folder / "a.png")
    (folder / "list.csv").write_text("path,label\na.png,cat\n")
    return folder / "list.csv"


def table_of_boxes(folder: Path) -> Path:
    write_picture(folder / "a.png")
    (folder / "boxes.csv").write_text("image_path,xmin,ymin,xmax,ymax,label\na.png,1,2,9,9,oak\n")
    return folder / "boxes.csv"


def folder_with_boxes(folder: Path) -> Path:
    return table_of_boxes(folder).parent


def coco(folder: Path) -> Path:
    write_picture(folder / "a.png")
    document = {
        "images": [{"id": 1, "file_name": "a.png", "width": 40, "height": 30}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 2, 8, 7]}],
        "categories": [{"id": 1, "name": "oak"}],
    }
    (folder / "coco.json").write_text(json.dumps(document))
    return folder / "coco.json"


def yolo(folder: Path) -> Path:
    write_picture(folder / "images" / "a.png")
    (folder / "labels").mkdir()
    (folder / "labels" / "a.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    (folder / "data.yaml").write_text("names: [oak]\n")
    return folder


def videos(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    write_video(folder / "a.mp4", 4)
    return folder


def rasters(folder: Path) -> Path:
    write_raster(folder / "a.tif", noise(3, 60, 50), crs="EPSG:32633")
    return folder


def one_raster(folder: Path) -> Path:
    return write_raster(folder / "a.tif", noise(3, 60, 50))


KNOWN: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "a pack": ("Pack", pack),
    "a pack of another name": ("Pack", renamed_pack),
    "TFRecords": ("TFRecords", tfrecord),
    "tar shards": ("WebDataset", tar),
    "HDF5": ("HDF5", hdf5),
    "HDF5 by its first bytes": ("HDF5", hdf5_of_other_name),
    "npz": ("Arrays", npz),
    "a folder of npy": ("Arrays", npy_folder),
    "Parquet": ("Parquet", parquet),
    "a saved dataset": ("HuggingFace", saved),
    "a saved dict": ("HuggingFace", saved_splits),
    "MDS": ("MDS", mds),
    "MDS with splits": ("MDS", mds_splits),
    "class folders": ("Images", class_folders),
    "a table of images": ("Images", table_of_images),
    "a table of boxes": ("Boxes", table_of_boxes),
    "images with a table of boxes": ("Boxes", folder_with_boxes),
    "COCO": ("Boxes", coco),
    "YOLO": ("Boxes", yolo),
    "videos": ("Videos", videos),
    "rasters": ("Rasters", rasters),
    "one raster": ("Rasters", one_raster),
}


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_there_is_recognised_and_can_be_read(name: str, tmp_path: Path) -> None:
    kind, make = KNOWN[name]
    path = make(tmp_path)
    source = ps.open(path)
    assert type(source).__name__ == kind == kind_of(path)
    assert len(source) >= 1 and source[0]
    assert len(ps.open(str(path))) == len(source)


def test_a_pattern_is_recognised_by_its_first_file(tmp_path: Path) -> None:
    for name in "ab":
        write_vlen(tmp_path / f"{name}.h5")
    assert len(ps.open(f"{tmp_path}/*.h5")) == 12


def test_options_go_to_the_source(tmp_path: Path) -> None:
    source = ps.open(npz(tmp_path), image="x", classes="a,b,c")
    assert source.classes == ("a", "b", "c")
    with pytest.raises(ps.OptionError, match=r"Arrays has no option 'clas'"):
        ps.open(npz(tmp_path), clas="a")
    with pytest.raises(ps.OptionError, match=r"Videos has no option 'siz'. Did you mean 'size'\?"):
        ps.open(videos(tmp_path / "more"), siz="8x8")
    with pytest.raises(ps.OptionError, match="open has no option 'label' for a pack"):
        ps.open(pack(tmp_path), label="x")


def test_verify_is_for_what_has_checksums(tmp_path: Path) -> None:
    assert ps.open(pack(tmp_path), verify=True).verify_on_read
    assert len(ps.open(mds(tmp_path), verify=True)) == 6
    with pytest.raises(ps.OptionError, match="verify=True is for packs and MDS shards; this is read by Arrays"):
        ps.open(npz(tmp_path), verify=True)


def test_a_pack_that_lost_its_manifest_is_not_taken_for_arrow_files(tmp_path: Path) -> None:
    path = renamed_pack(tmp_path)
    (path / "pack.json").unlink()
    with pytest.raises(ps.PackError, match=r"it has no pack\.json"):
        ps.open(path)


def test_what_is_not_known_says_what_is_there_and_what_to_write_in_a_short_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.xyz").write_text("?")
    (tmp_path / "b.xyz").write_text("?")
    with pytest.raises(
        ps.PackError,
        match=r"not recognised: it has no pack\.json.* there is 2 \.xyz\. Say what it is, with pens",
    ):
        ps.open(tmp_path)


def test_the_settings_of_a_project_stand_for_it(tmp_path: Path) -> None:
    settings = write_project(tmp_path) / "project_config.yaml"
    assert type(ps.open(settings)) is ps.DeepEthogram and kind_of(settings) == "DeepEthogram"
    done = run_here("export", settings, "--to", "directory", "-o", tmp_path / "frames")
    assert done.exit_code == 0 and "24 samples" in done.out


def test_every_door_takes_a_path_where_it_takes_a_source(tmp_path: Path) -> None:
    for number in range(4):
        write_picture(tmp_path / "in" / ("cat", "dog")[number % 2] / f"{number}.png", 20, 16, seed=number)
    path = tmp_path / "in"
    assert ps.check(path).ok and ps.check(str(path)).counts["samples"] == 4
    assert len(ps.pack(str(path), tmp_path / "a.pack")) == 4
    assert ps.export(tmp_path / "a.pack", tmp_path / "out", to="tfrecord").samples == 4
    assert len(ps.Flow(str(tmp_path / "out")).batch(2)) == 2
    assert len(ps.concat([path, tmp_path / "a.pack"])) == 8 and len(ps.Subset(path, [1, 2])) == 2
    for door in (ps.check, ps.Flow, lambda given: ps.pack(given, tmp_path / "b.pack")):
        with pytest.raises(ps.PackError, match="missing"):
            door(str(tmp_path / "missing"))


def test_several_formats_in_one_folder_are_not_guessed(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet")
    write_vlen(tmp_path / "a.h5")
    with pytest.raises(ps.PackError, match=r"there is 1 \.\w+, 1 \.\w+\. Say what it is"):
        ps.open(tmp_path)


def test_one_photo_is_not_guessed(tmp_path: Path) -> None:
    with pytest.raises(ps.PackError, match="there is one image"):
        ps.open(write_picture(tmp_path / "a.jpg"))


def test_maps_beside_tables_are_not_guessed(tmp_path: Path) -> None:
    rasters(tmp_path)
    (tmp_path / "points.csv").write_text("x,y,species\n1,2,oak\n")
    with pytest.raises(ps.PackError, match=r"1 \.csv.*Rasters"):
        ps.open(tmp_path)


def test_a_folder_of_annotations_takes_the_folder_of_its_images(tmp_path: Path) -> None:
    coco(tmp_path)
    (tmp_path / "annotations").mkdir()
    (tmp_path / "coco.json").rename(tmp_path / "annotations" / "coco.json")
    source = ps.open(tmp_path / "annotations", images=tmp_path)
    assert isinstance(source, ps.Boxes) and len(source[0]["boxes"]) == 1
