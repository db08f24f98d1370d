"""Which labels belong to which video, and tables that do not agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from video_making import write_video


def made_videos(tmp_path: Path, *names: str) -> list[Path]:
    (tmp_path / "labels").mkdir()
    paths = [tmp_path / name for name in names]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        write_video(path, 3)
    return paths


def write_rows(path: Path, *lines: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


def errors_of(source: Any) -> list[ps.Problem]:
    return [problem for problem in source.problems() if not problem.warning]


@pytest.mark.parametrize("names", [("videos/m0.mp4", "more/m0.mp4"), ("videos/m0.mp4", "videos/m0.avi")])
def test_one_label_file_is_not_given_to_two_videos_of_one_name(tmp_path: Path, names: tuple[str, str]) -> None:
    paths = made_videos(tmp_path, *names)
    write_rows(tmp_path / "labels" / "m0.csv", "groom", "1", "0", "0")
    videos = ps.Videos(paths, labels=str(tmp_path / "labels" / "{stem}.csv"))
    (error,) = errors_of(videos)
    assert error.file.endswith("labels/m0.csv") and all(part.key in error.what for part in videos.parts)
    assert "{name}" in error.remedy


def test_the_name_of_each_video_tells_them_apart(tmp_path: Path) -> None:
    paths = made_videos(tmp_path, "videos/m0.mp4", "more/m0.mp4")
    write_rows(tmp_path / "labels" / "videos" / "m0.csv", "groom", "1", "0", "0")
    write_rows(tmp_path / "labels" / "more" / "m0.csv", "groom", "0", "1", "1")
    videos = ps.Videos(paths, labels=str(tmp_path / "labels" / "{name}.csv"))
    assert videos.problems() == []
    assert videos.column("labels")[:, 1].tolist() == [1, 0, 0, 0, 1, 1]


def test_a_shared_file_whose_rows_name_their_video_is_no_problem(tmp_path: Path) -> None:
    paths = made_videos(tmp_path, "videos/m0.mp4", "videos/m0.avi")
    rows = ("video,start_frame,stop_frame,behaviour", "m0.mp4,0,1,groom", "m0.avi,1,3,groom")
    write_rows(tmp_path / "labels" / "m0.csv", *rows)
    videos = ps.Videos(paths, labels=str(tmp_path / "labels" / "{stem}.csv"))
    assert errors_of(videos) == []
    assert videos.column("labels")[:, 1].tolist() == [1, 0, 0, 0, 1, 1]


def test_the_file_without_a_header_is_the_one_that_is_named(tmp_path: Path) -> None:
    paths = made_videos(tmp_path, "a.mp4", "b.mp4")
    write_rows(tmp_path / "labels" / "a.csv", "0,1,0,0", "1,1,0,0", "2,0,1,0")
    write_rows(tmp_path / "labels" / "b.csv", ",background,groom,rear", "0,1,0,0", "1,1,0,0", "2,0,1,0")
    (error,) = errors_of(ps.Videos(paths, labels=str(tmp_path / "labels" / "{stem}.csv")))
    assert (Path(error.file).name, error.row) == ("a.csv", 1)
    assert "names no behaviour" in error.what


def test_where_columns_differ_both_files_and_what_they_have_are_named(tmp_path: Path) -> None:
    paths = made_videos(tmp_path, "a.mp4", "b.mp4")
    write_rows(tmp_path / "labels" / "a.csv", "groom,raer", "1,0", "0,0", "0,1")
    write_rows(tmp_path / "labels" / "b.csv", "groom,rear", "1,0", "0,0", "0,1")
    (error,) = errors_of(ps.Videos(paths, labels=str(tmp_path / "labels" / "{stem}.csv")))
    assert error.file.endswith("b.csv") and "background, groom, rear, and" in error.what
    assert error.what.endswith("a.csv has background, groom, raer")
