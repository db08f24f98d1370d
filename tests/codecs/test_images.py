"""Every kind of image becomes H×W×3 uint8 RGB by the stated rule, and back."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from made_sources import pixels
from penstock.codecs.headers import UnreadableImage, read_header
from penstock.codecs.images import decode_image, decode_mask, encode_image, upright
from penstock.codecs.resizing import resized, side_target
from penstock.errors import OptionError


def save(image: Image.Image, form: str, **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


@pytest.mark.parametrize(
    ("form", "mode", "tolerance"),
    [
        ("PNG", "RGB", 0), ("PNG", "L", 0), ("PNG", "P", 0), ("PNG", "1", 0), ("PNG", "RGBA", 0), ("PNG", "LA", 0),
        ("JPEG", "RGB", 0), ("JPEG", "L", 0), ("JPEG", "CMYK", 1), ("GIF", "P", 0), ("WEBP", "RGB", 0),
        ("BMP", "RGB", 0), ("BMP", "L", 0), ("BMP", "P", 0), ("TIFF", "RGB", 0), ("TIFF", "L", 0), ("TIFF", "P", 0),
        ("TIFF", "CMYK", 1), ("TIFF", "1", 0), ("TIFF", "RGBA", 0),
    ],
)  # fmt: skip
def test_colours_are_those_that_pillow_gives(form: str, mode: str, tolerance: int) -> None:
    data = save(Image.fromarray(pixels(1, 53, 37)).convert(mode), form)
    decoded = decode_image(data)
    wanted = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    assert decoded.dtype == np.uint8 and decoded.shape == (37, 53, 3) and decoded.flags.c_contiguous
    assert np.abs(decoded.astype(int) - wanted).max() <= tolerance


def test_alpha_is_left_out_and_the_colours_under_it_stay() -> None:
    rgba = np.dstack([pixels(2), np.zeros((24, 32), np.uint8)])
    assert np.array_equal(decode_image(save(Image.fromarray(rgba), "PNG")), rgba[:, :, :3])


def test_sixteen_bits_are_scaled_and_never_wrapped() -> None:
    values = np.array([[0, 128, 256, 257, 32768, 65535]], np.uint16)
    decoded = decode_image(save(Image.fromarray(values), "PNG"))
    assert decoded[0, :, 0].tolist() == [0, 0, 1, 1, 128, 255]


def test_float_images_ask_for_a_scale() -> None:
    data = save(Image.fromarray(np.ones((4, 4), np.float32)), "TIFF")
    with pytest.raises(UnreadableImage, match="rasters with a scale"):
        decode_image(data)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", ["PNG", "JPEG"])
def test_turned_images_come_out_upright(form: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = save(Image.fromarray(pixels(3, 53, 37)), form, exif=exif)
    wanted = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data))))
    assert np.array_equal(decode_image(data), wanted)


def test_the_first_frame_of_an_animation_counts() -> None:
    frames = [Image.fromarray(np.full((8, 8), value, np.uint8)).convert("P") for value in (10, 200)]
    data = save(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert decode_image(data)[0, 0, 0] == 10


@pytest.mark.parametrize("sampling", ["4:4:4", "4:2:2", "4:2:0"])
def test_jpeg_subsamplings_decode_as_in_pillow(sampling: str) -> None:
    data = save(Image.fromarray(pixels(4, 61, 43)), "JPEG", subsampling=sampling, progressive=True)
    assert np.array_equal(decode_image(data), np.asarray(Image.open(io.BytesIO(data))))


def test_reduced_decoding_never_falls_below_what_is_asked() -> None:
    data = encode_image(pixels(5, 640, 480), "jpeg")
    smaller = decode_image(data, at_least=(150, 100))
    assert smaller.shape[1] >= 150 and smaller.shape[0] >= 100 and smaller.shape[1] < 640


@pytest.mark.parametrize("codec", ["png", "raw"])
def test_lossless_codecs_give_the_same_pixels(codec: str) -> None:
    picture = pixels(6)
    data = encode_image(picture, codec)
    again = np.frombuffer(data, np.uint8).reshape(picture.shape) if codec == "raw" else decode_image(data)
    assert np.array_equal(again, picture)


@pytest.mark.parametrize("codec", ["jpeg", "webp"])
def test_quality_trades_size_for_likeness(codec: str) -> None:
    soft = resized(pixels(7, 8, 6), 160, 120)
    fine, coarse = encode_image(soft, codec, 95), encode_image(soft, codec, 30)
    assert len(coarse) < len(fine)
    assert np.abs(decode_image(fine).astype(int) - soft).mean() < np.abs(decode_image(coarse).astype(int) - soft).mean()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_masks_keep_every_value(dtype: type) -> None:
    mask = np.random.default_rng(0).integers(0, np.iinfo(dtype).max, (20, 30)).astype(dtype)
    assert np.array_equal(decode_mask(encode_image(mask, "png")), mask)


@pytest.mark.parametrize("data", [b"\xff\xd8\xff\xe0 broken", encode_image(pixels(8), "png")[:300]])
def test_broken_images_raise_and_never_come_out_black(data: bytes) -> None:
    with pytest.raises(UnreadableImage):
        decode_image(data)


def test_an_unknown_codec_names_the_legal_ones() -> None:
    with pytest.raises(OptionError, match="jpeg, png, webp, raw"):
        encode_image(pixels(1), "avif")


@pytest.mark.parametrize(
    ("size", "longest", "shortest", "wanted"),
    [
        ((500, 375), 256, None, (256, 192)), ((375, 500), 256, None, (192, 256)), ((500, 375), None, 256, (341, 256)),
        ((200, 100), 256, None, (200, 100)), ((1000, 1), 100, None, (100, 1)), ((640, 480), None, None, (640, 480)),
    ],
)  # fmt: skip
def test_sides_keep_the_proportions_and_never_grow(
    size: tuple[int, int], longest: int | None, shortest: int | None, wanted: tuple[int, int]
) -> None:
    assert side_target(*size, longest, shortest) == wanted


def test_shrinking_averages_and_masks_keep_their_numbers() -> None:
    board = np.kron(np.array([[0, 200], [200, 0]], np.uint8), np.ones((2, 2), np.uint8))
    assert resized(np.dstack([board] * 3), 1, 1)[0, 0, 0] == 100
    assert set(np.unique(resized(board, 3, 3, nearest=True))) <= {0, 200}


def test_a_gif_among_real_photographs_decodes(shared_data: Path) -> None:
    for path in sorted(shared_data.glob("pets_cat_dog/cat/*"))[:20]:
        assert decode_image(path.read_bytes()).ndim == 3


# What OpenCV does by itself, and Pillow does not


def framed(kind: str, colours: list[tuple[int, int, int]]) -> bytes:
    """An animation of frames of one colour each."""
    frames = [Image.new("RGB", (12, 8), colour) for colour in colours]
    out = io.BytesIO()
    frames[0].save(out, kind, save_all=True, append_images=frames[1:], duration=100, lossless=True)
    return out.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "GIF"])
def test_of_an_animation_the_first_frame_is_decoded(kind: str) -> None:
    pixels = decode_image(framed(kind, [(250, 10, 10), (10, 250, 10), (10, 10, 250)]))
    assert pixels.shape == (8, 12, 3) and (pixels == (250, 10, 10)).all()


def test_a_default_image_that_is_no_frame_of_the_animation_is_the_picture() -> None:
    frames = [Image.new("RGB", (12, 8), colour) for colour in ("red", "green", "blue")]
    out = io.BytesIO()
    frames[0].save(out, "PNG", save_all=True, append_images=frames[1:], default_image=True)
    assert (decode_image(out.getvalue()) == (255, 0, 0)).all()


def turned_corners(orientation: int, kind: str, **options: Any) -> bytes:
    pixels = np.zeros((20, 30, 3), np.uint8)
    pixels[:5, :7], pixels[15:, 25:] = (255, 0, 0), (0, 255, 0)
    out = io.BytesIO()
    exif = Image.Exif()
    exif[274] = orientation
    own = {"tiffinfo": {274: orientation}} if kind == "TIFF" else {"exif": exif, "lossless": True}
    Image.fromarray(pixels).save(out, kind, **own, **options)
    return out.getvalue()


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize(
    ("kind", "options"), [("TIFF", {}), ("TIFF", {"compression": "tiff_lzw"}), ("PNG", {}), ("WEBP", {})]
)
def test_images_of_every_orientation_are_turned_once(orientation: int, kind: str, options: dict[str, Any]) -> None:
    data = turned_corners(orientation, kind, **options)
    expected = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB"))
    pixels, header = decode_image(data), read_header(data)
    assert np.array_equal(pixels, expected)
    assert (header.height, header.width) == expected.shape[:2]


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["TIFF", "PNG"])
def test_masks_of_every_orientation_are_turned_as_images_are(orientation: int, kind: str) -> None:
    numbers = np.arange(20 * 30, dtype=np.uint16).reshape(20, 30)
    out = io.BytesIO()
    exif = Image.Exif()
    exif[274] = orientation
    Image.fromarray(numbers).save(out, kind, **({"tiffinfo": {274: orientation}} if kind == "TIFF" else {"exif": exif}))
    assert np.array_equal(decode_mask(out.getvalue()), np.asarray(upright(numbers, orientation)))


def masked_bmp(header_bytes: int, masks: tuple[int, int, int], words: Any) -> bytes:
    """A BMP whose colours stand where `masks` say, which stand behind a header of 40 bytes, or in a longer one."""
    start = 14 + max(header_bytes, 52)
    info = struct.pack("<IiiHHIIiiII", header_bytes, 3, -2, 1, 32, 3, 24, 2835, 2835, 0, 0) + struct.pack(
        "<III", *masks
    )
    body = info.ljust(start - 14, b"\0") + np.asarray(words, "<u4").tobytes()
    return b"BM" + struct.pack("<IHHI", 14 + len(body), 0, 0, start) + body


@pytest.mark.parametrize("header_bytes", [40, 52, 56])
@pytest.mark.parametrize(
    ("masks", "shifts"), [((0xFF0000, 0xFF00, 0xFF), (16, 8, 0)), ((0xFF, 0xFF00, 0xFF0000), (0, 8, 16)),
                          ((0xFF00000, 0xFF0, 0xF), (20, 4, None))]
)  # fmt: skip
def test_colours_of_a_bmp_are_where_its_masks_say(header_bytes: int, masks: Any, shifts: Any) -> None:
    colours = np.array([[(255, 0, 0), (0, 255, 0), (0, 0, 255)], [(17, 34, 51), (0, 0, 0), (255, 255, 255)]])
    words = [
        [
            sum(int(c) // (17 if shift is None else 1) << (shift or 0) for c, shift in zip(one, shifts, strict=True))
            for one in row
        ]
        for row in colours
    ]
    assert np.array_equal(decode_image(masked_bmp(header_bytes, masks, words)), colours)


def test_an_old_bmp_with_sizes_of_16_bits_is_read() -> None:
    rows = np.array([[(255, 0, 0), (0, 255, 0)], [(0, 0, 255), (9, 8, 7)]], np.uint8)
    body = struct.pack("<IHHHH", 12, 2, 2, 1, 24)
    body += b"".join(row[:, ::-1].tobytes() + b"\0\0" for row in rows[::-1])
    data = b"BM" + struct.pack("<IHHI", 14 + len(body), 0, 0, 26) + body
    assert read_header(data)[1:3] == (2, 2)
    assert np.array_equal(decode_image(data), rows)
