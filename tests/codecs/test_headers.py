"""Headers tell kind, size and orientation from the content, and say why something is no image."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from made_sources import pixels
from penstock.codecs.headers import UnreadableImage, cut_short, read_file_header, read_header, sniff

FORMATS = [
    ("JPEG", "RGB", "jpeg", 3), ("JPEG", "L", "jpeg", 1), ("JPEG", "CMYK", "jpeg", 4),
    ("PNG", "RGB", "png", 3), ("PNG", "L", "png", 1), ("PNG", "RGBA", "png", 4), ("PNG", "LA", "png", 2),
    ("PNG", "P", "png", 3), ("PNG", "1", "png", 1),
    ("WEBP", "RGB", "webp", 3), ("TIFF", "RGB", "tiff", 3), ("TIFF", "L", "tiff", 1), ("TIFF", "RGBA", "tiff", 4),
    ("BMP", "RGB", "bmp", 3), ("GIF", "P", "gif", 3),
]  # fmt: skip


def encoded(form: str, mode: str = "RGB", width: int = 53, height: int = 37, **options: object) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels(1, width, height)).convert(mode).save(out, form, **options)
    return out.getvalue()


@pytest.mark.parametrize(("form", "mode", "kind", "channels"), FORMATS)
def test_every_kind_is_read_as_pillow_reads_it(form: str, mode: str, kind: str, channels: int) -> None:
    data = encoded(form, mode)
    header = read_header(data)
    assert (header.kind, header.width, header.height, header.channels) == (kind, 53, 37, channels)
    assert sniff(data) == kind and cut_short(data, kind) == ""


@pytest.mark.parametrize("options", [{"lossless": True}, {"exact": True, "lossless": True, "exif": Image.Exif()}])
def test_lossless_and_extended_webp_have_their_size(options: dict[str, object]) -> None:
    header = read_header(encoded("WEBP", "RGBA", **options))
    assert (header.width, header.height) == (53, 37)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_the_size_is_that_of_the_upright_image(form: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    header = read_header(encoded(form, exif=exif))
    assert header.orientation == orientation
    assert (header.width, header.height) == ((37, 53) if orientation >= 5 else (53, 37))


@pytest.mark.parametrize(("form", "kind"), [(form, kind) for form, mode, kind, _ in FORMATS if mode in ("RGB", "P")])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_file_cut_short_is_noticed(tmp_path: Path, form: str, kind: str, share: float) -> None:
    data = encoded(form, width=200, height=150)
    path = tmp_path / "cut"
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(UnreadableImage):
        read_file_header(path)


def test_camera_data_after_the_end_of_a_jpeg_is_no_damage() -> None:
    assert cut_short(encoded("JPEG") + b"MakerNote" * 100, "jpeg") == ""


def test_large_files_are_mapped_and_read_the_same(tmp_path: Path) -> None:
    path = tmp_path / "large.tif"
    Image.fromarray(pixels(3, 400, 300)).save(path, "TIFF")
    assert path.stat().st_size > 65536
    assert read_file_header(path)[:3] == ("tiff", 400, 300)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the file is empty"),
        (bytes(100), "begins with zeros"),
        (b"\0\0\0\x18ftypheic" + bytes(50), "HEIC"),
        (b"<!DOCTYPE html>", "it is no image"),
        (b"just some text, really", "no JPEG, PNG"),
        (b"\xff\xd8\xff\xe0\x00", "cut short"),
        (b"\x89PNG\r\n\x1a\n\0\0", "PNG"),
    ],
)
def test_what_is_no_image_is_said_in_words(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableImage, match=reason):
        read_header(data)


@given(st.sampled_from([form for form, *_ in FORMATS]), st.data())
@settings(max_examples=300, deadline=None)
def test_damaged_headers_never_crash(form: str, data: st.DataObject) -> None:
    content = bytearray(encoded(form, "P" if form == "GIF" else "RGB"))
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, min(200, len(content) - 1)))] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.integers(0, len(content)))]
    try:
        header = read_header(bytes(content))
        assert header.width > 0 and header.height > 0
    except UnreadableImage as error:
        assert str(error)


def test_a_gif_called_jpg_is_a_gif(tmp_path: Path) -> None:
    path = tmp_path / "photo.jpg"
    path.write_bytes(encoded("GIF", "P"))
    assert read_file_header(path).kind == "gif"


def test_real_photographs_are_read_as_pillow_reads_them(shared_data: Path) -> None:
    for path in sorted(shared_data.glob("pets_cat_dog/*/*"))[::10] + sorted(shared_data.glob("neon_eval/rgb/*"))[::20]:
        with Image.open(path) as image:
            assert read_file_header(path)[1:3] == image.size
