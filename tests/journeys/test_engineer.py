"""The ML engineer: many images, packed small, read in an own loop, with files that are not what they should be."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from commands import run_installed
from made_sources import folder_bytes
from picture_making import write_picture

CLASSES = ("cat", "dog", "größer hund")


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    """Thirty pictures in class folders, one of them with a space and umlauts in its name."""
    for number in range(30):
        name = CLASSES[number % 3]
        write_picture(tmp_path / "pets" / name / f"{name} {number}.jpg", 60 + number, 50, seed=number)
    return tmp_path / "pets"


def test_from_class_folders_to_a_loop_of_ones_own(pets: Path) -> None:
    home = pets.parent
    packed = run_installed("pack", "images", "pets/", "-o", "pets.pack", folder=home)
    assert (packed.exit_code, packed.err) == (0, "")
    assert "classes    cat 10, dog 10, größer hund 10" in packed.out
    assert "60 to 89 px wide, 50 to 50 px high, bytes as they were" in packed.out
    assert run_installed("verify", "pets.pack", folder=home).exit_code == 0
    assert run_installed("show", "pets.pack", 29, "-o", "pet.png", folder=home).exit_code == 0

    pack = ps.open(home / "pets.pack")
    train, val = pack.split("train"), pack.split("val")
    keys = [split[index]["key"] for split in (train, val) for index in range(len(split))]
    assert sorted(keys) == sorted(path.relative_to(pets).as_posix() for path in pets.rglob("*.jpg"))
    sample = train[0]
    assert sample["image"].dtype == np.uint8 and pack.classes[sample["label"]] == sample["key"].split("/")[0]
    assert bytes(pack.read(0).data) == (pets / pack[0]["key"]).read_bytes()


def test_names_can_carry_the_label(pets: Path) -> None:
    home, flat = pets.parent, pets.parent / "photos"
    flat.mkdir()
    for path in pets.rglob("*.jpg"):
        name, number = path.stem.rsplit(" ", 1)
        shutil.copy(path, flat / f"{name}.{number}.jpg")
    packed = run_installed(
        "pack", "images", "photos/", "--label-from-name", "{label}.*", "-o", "dogs.pack", folder=home
    )
    assert packed.exit_code == 0 and "classes    cat 10, dog 10, größer hund 10" in packed.out


def test_raw_pixels_become_one_view(pets: Path) -> None:
    command = ("pack", "images", "pets", "--size", "32x32", "--codec", "raw", "--split", "all", "-o", "raw.pack")
    assert run_installed(*command, folder=pets.parent).exit_code == 0
    views = ps.open(pets.parent / "raw.pack").raw_views()
    assert np.concatenate(views).shape == (30, 32, 32, 3)


def test_the_same_command_gives_the_same_bytes_whatever_the_workers(pets: Path) -> None:
    for number, extra in enumerate([("--workers", 1), ("--workers", 4), ("--executor", "process", "--workers", 2)]):
        command = ("pack", "images", "pets", "--longest-side", 40, *extra, "-o", f"{number}.pack")
        assert run_installed(*command, folder=pets.parent).exit_code == 0
    first, second, third = (folder_bytes(pets.parent / f"{number}.pack") for number in range(3))
    assert first == second == third


def test_bad_files_are_found_then_skipped_counted_and_listed(pets: Path) -> None:
    home = pets.parent
    (pets / "cat" / "empty.jpg").write_bytes(b"")
    whole = (pets / "dog" / "dog 1.jpg").read_bytes()
    (pets / "dog" / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    (pets / "dog" / "page.jpg").write_text("<html>not found</html>")

    looked = run_installed("check", "images", "pets", folder=home)
    assert looked.exit_code == 1 and looked.out.count("problem: ") == 3

    refused = run_installed("pack", "images", "pets", "-o", "pets.pack", folder=home)
    assert refused.exit_code == 3
    for name in ("empty.jpg", "cut.jpg", "page.jpg"):
        assert name in looked.out and name in refused.err

    skipping = ("pack", "images", "pets", "-o", "pets.pack", "--on-bad-sample", "skip", "--overwrite")
    packed = run_installed(*skipping, folder=home)
    assert packed.exit_code == 0 and packed.out.startswith("pets.pack: 30 samples, ")
    assert "skipped    3 samples:" in packed.out
    skipped = run_installed("info", "pets.pack", "--json", folder=home).json["skipped"]
    assert sorted(item["sample"].split("/")[-1].rstrip(")") for item in skipped) == ["cut.jpg", "empty.jpg", "page.jpg"]


def test_a_table_of_boxes_becomes_a_pack_of_whole_images(pets: Path) -> None:
    rows = [f"cat/cat {number}.jpg,5,5,{20 + number},30,head" for number in range(0, 30, 3)]
    table = pets / "annotations.csv"
    table.write_text("\n".join(["image_path,xmin,ymin,xmax,ymax,label", *rows, ""]))
    packed = run_installed("pack", "boxes", "annotations.csv", "--longest-side", 30, "-o", "../heads.pack", folder=pets)
    assert packed.exit_code == 0 and packed.out.startswith("../heads.pack: 10 samples, ")
    pack = ps.open(pets.parent / "heads.pack")
    assert pack[0]["image"].shape[1] == 30
    assert pack[0]["boxes"].tolist() == [pytest.approx([2.5, 2.5, 10, 15])]


def test_a_narrow_terminal_and_a_plain_locale_still_read(pets: Path) -> None:
    assert run_installed("pack", "images", "pets", "-o", "pets.pack", folder=pets.parent).exit_code == 0
    page = run_installed("pack", "images", "--help", folder=pets.parent, COLUMNS="60")
    explained, examples = page.out.split("Example", 1)  # commands are shown as they are typed, in one line
    assert page.exit_code == 0 and max(len(line) for line in explained.splitlines()) <= 60
    assert "penstock pack images pets/ -o pets.pack" in examples
    plain = run_installed("info", "pets.pack", folder=pets.parent, LC_ALL="C", LANG="C")
    assert plain.exit_code == 0 and "größer hund 10" in plain.out


def test_real_photographs_keep_their_bytes(shared_data: Path, tmp_path: Path) -> None:
    packed = run_installed("pack", "images", shared_data / "pets_cat_dog", "-o", "pets.pack", folder=tmp_path)
    assert packed.exit_code == 0 and "classes    cat 80, dog 80" in packed.out
    pack = ps.open(tmp_path / "pets.pack")
    for index in (0, 80, 159):
        assert bytes(pack.read(index).data) == (shared_data / "pets_cat_dog" / pack[index]["key"]).read_bytes()
