"""`check` on any source."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from penstock.codecs.headers import read_file_header
from picture_making import write_picture

HEADER = "image_path,xmin,ymin,xmax,ymax,label\n"


def boxes(folder: Path, rows: str) -> ps.Boxes:
    (folder / "boxes.csv").write_text(HEADER + rows)
    return ps.Boxes(folder / "boxes.csv")


def test_a_clean_source_is_ok(tmp_path: Path) -> None:
    write_picture(tmp_path / "a.png")
    result = ps.check(boxes(tmp_path, "a.png,1,2,3,4,T\n"), decode=True)
    assert result.ok
    assert result.problems == ()
    assert str(result) == "1 sample, 1 class, 1 box, 0 images without boxes: no problems"


def test_warnings_alone_are_ok(tmp_path: Path) -> None:
    write_picture(tmp_path / "a.png")
    result = ps.check(boxes(tmp_path, "a.png,1,2,3,4,T\na.png,1,2,3,4,T\n"))
    assert result.ok
    assert len(result.warnings) == 1
    assert str(result).startswith("warning: ")


def test_problems_and_damage_are_listed_together(tmp_path: Path) -> None:
    write_picture(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes(b"")
    result = ps.check(boxes(tmp_path, "a.png,1,2,3,400,T\nb.png,1,2,3,4,T\n"))
    assert not result.ok
    assert [problem.row for problem in result.errors] == [2, None]
    listed = json.loads(json.dumps(result.as_dict()))
    assert listed["ok"] is False
    assert listed["problems"][0]["row"] == 2
    assert listed["counts"]["samples"] == 2


def damaged_inside(path: Path) -> None:
    """A PNG whose header and end are whole, with nonsense where its pixels were."""
    data = bytearray(write_picture(path).read_bytes())
    data[60:-60] = b"\0" * (len(data) - 120)
    path.write_bytes(data)
    read_file_header(path)


def test_damage_inside_a_file_is_found_by_decoding(tmp_path: Path) -> None:
    write_picture(tmp_path / "a" / "1.png")
    damaged_inside(tmp_path / "a" / "2.png")
    (tmp_path / "a" / "3.png").write_bytes(b"")
    source = ps.Images(tmp_path)
    assert [Path(problem.file).name for problem in ps.check(source).problems] == ["3.png"]
    found = ps.check(source, decode=True).problems
    assert sorted(Path(problem.file).name for problem in found) == ["2.png", "3.png"]
    assert any("cannot be decoded" in problem.what for problem in found)


def test_a_missing_image_is_said_once(tmp_path: Path) -> None:
    (problem,) = ps.check(boxes(tmp_path, "a.png,1,2,3,4,T\n"), decode=True).errors
    assert "does not exist" in problem.what


class OwnSource:
    """A source of a user, with nothing but the four parts that a source needs."""

    schema = ps.Schema((ps.Field("image", "image"),))

    def __len__(self) -> int:
        return 3

    def read(self, index: int) -> ps.Raw:
        return ps.Raw(index, None)

    def decode(self, raw: ps.Raw) -> dict[str, object]:
        if raw.index == 1:
            raise ZeroDivisionError("no pixels")
        return {"image": np.zeros((2, 2, 3), np.uint8)}


def test_a_source_of_the_user_is_checked_by_decoding() -> None:
    assert ps.check(OwnSource()).ok
    (problem,) = ps.check(OwnSource(), decode=True).problems
    assert (problem.file, problem.what) == ("sample 1", "sample 1: it cannot be decoded: no pixels")


def test_the_result_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        ps.check(OwnSource()).problems = ()  # type: ignore[misc]
