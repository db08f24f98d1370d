"""Names of files stay in their folder and are unique, whatever keys hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

import penstock as ps
from made_sources import Pictures
from penstock.formats.exporting.names import LONGEST_BYTES, Names, clean


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("cat/1.jpg", "cat/1"),
        ("cat.0.jpg", "cat.0"),
        ("../../etc/passwd", "etc/passwd"),
        ("/etc/passwd", "etc/passwd"),
        ("C:\\data\\1.png", "data/1"),
        ("a/./b//c", "a/b/c"),
        ("video#12", "video_12"),
        ('<a>:"b"|?*', "_a___b____"),
        ("line\nbreak", "line_break"),
        ("..", "sample"),
        ("", "sample"),
        (".hidden", "hidden"),
        ("end. ", "end"),
        ("nul.png", "nul"),
        ("aux", "aux_"),
        ("é/名前.jpg", "é/名前"),
    ],
)
def test_keys_become_names(key: str, name: str) -> None:
    assert clean(key) == name


def test_slashes_become_underscores_where_there_are_no_folders() -> None:
    assert clean("../site/a.jpg", folders=False) == "site_a"


@given(st.text())
def test_a_name_never_leaves_its_folder(key: str) -> None:
    name = clean(key)
    pieces = name.split("/")
    assert not name.startswith("/") and all(piece not in ("", ".", "..") for piece in pieces)
    assert not set(name) & set('<>:"|?*#\\\0\n')
    assert all(len(piece.encode("utf-8", "replace")) <= LONGEST_BYTES + 1 for piece in pieces)
    assert clean(name) == name or "." in name


def test_a_taken_name_gets_a_number_whatever_its_case() -> None:
    names = Names()
    assert [names.claim(name) for name in ("a", "a", "A", "a-2", "b")] == ["a", "a-2", "A-3", "a-2-2", "b"]


class Wicked(Pictures):
    """Keys that would leave the folder, or be the same."""

    keys = ("../../out.png", "/tmp/out.png", "out.png", "OUT.jpg", "a/../../out", "tmp/out")

    def annotations(self, index: int) -> dict[str, Any]:
        return {**super().annotations(index), "key": self.keys[index]}


@pytest.mark.parametrize("to", ["directory", "webdataset", "tfrecord"])
def test_nothing_is_written_outside_of_the_output(tmp_path: Path, to: str) -> None:
    folder = tmp_path / "deep" / "down"
    ps.export(Wicked(6), folder / "out", to=to)
    written = {path.relative_to(tmp_path).parts[:3] for path in tmp_path.rglob("*") if path.is_file()}
    assert written == {("deep", "down", "out")}
    if to == "directory":
        names = sorted(
            path.relative_to(folder / "out" / "images").as_posix() for path in (folder / "out").rglob("*.png")
        )
        assert names == ["OUT-3.png", "a/out.png", "out-2.png", "out.png", "tmp/out-2.png", "tmp/out.png"]
        assert len(ps.Images(folder / "out" / "labels.csv")) == 6


class TwoOfAName:
    """Videos whose names are the same once they are fit for files."""

    schema = ps.Schema((ps.Field("image", "image"), ps.Field("frame", "number", "int32")))
    keys = ("a/b#0", "a/b#1", "a_b#0", "A_B#0", "labels#0")

    def __len__(self) -> int:
        return len(self.keys)

    def read(self, index: int) -> ps.Raw:
        return Pictures(9).read(index)

    def decode(self, raw: ps.Raw) -> dict[str, Any]:
        from penstock.codecs.images import decode_image

        key = self.keys[raw.index]
        return {"image": decode_image(raw.data), "frame": int(key[-1]), "key": key}


def test_videos_of_one_name_are_kept_apart(tmp_path: Path) -> None:
    made = ps.export(TwoOfAName(), tmp_path / "out", to="directory")
    names = [(video["video"], video["name"], video["frames"]) for video in made.videos]
    assert names == [("a/b", "a_b", 2), ("a_b", "a_b-2", 1), ("A_B", "A_B-3", 1), ("labels", "labels-2", 1)]
