"""Paths that a table names stay in their folder, and images are refused by the size in their header."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

import penstock as ps
from commands import run_here
from penstock.codecs.headers import UnreadableImage
from penstock.codecs.images import decode_image, decode_mask
from picture_making import write_picture
from raster_making import write_table


def test_a_link_beside_a_table_does_not_lead_out_of_the_folder(tmp_path: Path) -> None:
    outside = write_picture(tmp_path / "outside" / "a.png")
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "a.png").symlink_to(outside)
    (folder / "sub").symlink_to(outside.parent)
    for name in ("a.png", "sub/a.png"):
        table = write_table(folder / "t.csv", [f"{name},1,2,3,4,oak"])
        (problem,) = ps.Boxes(table).problems()
        assert "through a symbolic link" in problem.what
        assert "allow_outside=True" in problem.remedy
        assert ps.Boxes(table, allow_outside=True).problems() == []
        assert any("symbolic link" in problem.what for problem in ps.Images(table).problems())
        with pytest.raises(ps.DataError, match="symbolic link"):
            ps.pack(ps.Boxes(table), tmp_path / "a.pack")


def test_links_inside_a_folder_and_to_the_folder_itself_are_followed(tmp_path: Path) -> None:
    write_picture(tmp_path / "real" / "a.png")
    (tmp_path / "real" / "b.png").symlink_to("a.png")
    (tmp_path / "data").symlink_to(tmp_path / "real")
    table = write_table(tmp_path / "data" / "t.csv", ["a.png,1,2,3,4,oak", "b.png,1,2,3,4,oak"])
    assert ps.Boxes(table).problems() == []
    (tmp_path / "pets" / "cat").mkdir(parents=True)
    (tmp_path / "pets" / "cat" / "a.png").symlink_to(tmp_path / "real" / "a.png")  # put there by who names the folder
    assert len(ps.Images(tmp_path / "pets")) == 1


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def gif(width: int, height: int) -> bytes:
    screen = b"GIF89a" + struct.pack("<HH", width, height) + b"\x80\0\0" + bytes(6)
    return screen + b"," + struct.pack("<HHHH", 0, 0, width, height) + b"\0\x02\x02D\x01\0;"


def bmp(width: int, height: int) -> bytes:
    return b"BM" + struct.pack("<IHHIIiiHHIIiiII", 54, 0, 0, 54, 40, width, height, 1, 24, 0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize("data", [png(60000, 60000), gif(65535, 65535), png(1 << 21, 1)], ids=["png", "gif", "wide"])
def test_check_refuses_what_pack_refuses_by_the_size_in_the_header(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "large.png").write_bytes(data)
    write_picture(tmp_path / "images" / "small.png")
    checked = run_here("check", "images", tmp_path / "images")
    assert checked.exit_code == 1
    assert "its header says" in checked.out + checked.err
    packed = run_here("pack", "images", tmp_path / "images", "-o", tmp_path / "a.pack", "--validate")
    assert packed.exit_code == 3
    assert "its header says" in packed.err
    for decode in (decode_image, decode_mask):
        with pytest.raises(UnreadableImage, match="its header says"):
            decode(data)


def test_words_of_opencv_reach_nobody(tmp_path: Path) -> None:
    with pytest.raises(UnreadableImage) as caught:
        decode_image(bmp(60000, 60000))
    assert "OpenCV" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_opencv_says_of_an_image_that_it_refuses_reaches_nobody(tmp_path: Path) -> None:
    """Its limit is read when it is imported, hence a process of its own, in which the limit is below ours."""
    path = write_picture(tmp_path / "a.png", 40, 30)
    program = (
        "import sys; from penstock.codecs.images import decode_image; decode_image(open(sys.argv[1], 'rb').read())"
    )
    environment = {**os.environ, "OPENCV_IO_MAX_IMAGE_PIXELS": "100"}
    done = subprocess.run([sys.executable, "-c", program, path], env=environment, capture_output=True, text=True)
    assert "cv2.error: OpenCV" in done.stderr, "the cause stays in the traceback"
    assert done.stderr.strip().splitlines()[-1].endswith("UnreadableImage: the PNG data cannot be decoded")


@pytest.mark.parametrize(
    "start", [b"P6\n2 2\n255\n" + bytes(12), b"#?RADIANCE\n\n-Y 1 +X 1\n" + bytes(4), b"v/1\x01" + bytes(60)]
)
def test_formats_that_have_no_header_of_ours_do_not_reach_opencv(start: bytes) -> None:
    for decode in (decode_image, decode_mask):
        with pytest.raises(UnreadableImage, match="it is no JPEG"):
            decode(start)
