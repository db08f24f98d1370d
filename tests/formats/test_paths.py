"""Which files are meant by a path, a pattern, a folder or a list."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock as ps
from penstock.formats.paths import expand, files_below, natural, origin_of, unsafe


def touch(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")
    return folder


def test_numbers_in_names_sort_as_numbers() -> None:
    assert sorted(["f10", "f9", "f009b", "F1", "f"], key=natural) == ["F1", "f", "f9", "f009b", "f10"]


def test_a_pattern_gives_its_files_in_natural_order(tmp_path: Path) -> None:
    touch(tmp_path, "v10.mp4", "v9.mp4", "notes.txt")
    assert [path.name for path in expand(str(tmp_path / "*.mp4"))] == ["v9.mp4", "v10.mp4"]


def test_a_list_keeps_its_order_and_names_each_file_once(tmp_path: Path) -> None:
    touch(tmp_path, "a.tif", "b.tif")
    given = [tmp_path / "b.tif", str(tmp_path / "*.tif")]
    assert [path.name for path in expand(given)] == ["b.tif", "a.tif"]


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path: Path) -> None:
    touch(tmp_path, "plot[1].tif", "plot1.tif")
    assert [path.name for path in expand(tmp_path / "plot[1].tif")] == ["plot[1].tif"]


def test_two_stars_look_into_folders(tmp_path: Path) -> None:
    touch(tmp_path, "a/b/c.tif", "d.tif")
    assert {path.name for path in expand(f"{tmp_path}/**/*.tif")} == {"c.tif", "d.tif"}


def test_what_matches_nothing_is_named(tmp_path: Path) -> None:
    touch(tmp_path, "a.tif")
    with pytest.raises(ps.DataError, match=r"\*\.png: no such file or folder.* quote patterns"):
        expand([tmp_path / "a.tif", tmp_path / "*.png"])


def test_files_below_a_folder_are_visible_ones_with_an_ending(tmp_path: Path) -> None:
    touch(tmp_path, "b/2.JPG", "b/10.jpg", "a/ü 1.jpg", ".hidden/3.jpg", "b/.4.jpg", "b/notes.txt")
    found = [path.relative_to(tmp_path).as_posix() for path in files_below(tmp_path, {".jpg"})]
    assert found == ["a/ü 1.jpg", "b/2.JPG", "b/10.jpg"]


@pytest.mark.parametrize(
    "path", ["../a.jpg", "a/../../b.jpg", "/etc/passwd", "\\\\host\\a.jpg", "C:\\a.jpg", "a\\..\\b.jpg", "~/a.jpg"]
)
def test_paths_that_leave_their_folder_are_unsafe(path: str) -> None:
    assert unsafe(path)


@pytest.mark.parametrize("path", ["a.jpg", "a/b.jpg", "a..b/c...jpg", "ü ö/x.jpg", "a~/b.jpg"])
def test_paths_inside_their_folder_are_safe(path: str) -> None:
    assert not unsafe(path)


def test_an_origin_notices_another_content(tmp_path: Path) -> None:
    path = touch(tmp_path, "a.jpg") / "a.jpg"
    before = origin_of(path)
    assert before == origin_of(path)
    path.write_bytes(b"xy")
    assert origin_of(path) != before
