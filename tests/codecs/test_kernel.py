"""The kernel and its fallback keep the same rules; every test here runs with both."""

from __future__ import annotations

import pickle
import struct
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import cv2
import numpy as np
import pyarrow as pa
import pytest
import simplejpeg
from numpy.typing import NDArray
from PIL import Image

from jpeg_making import SUBSAMPLINGS, jpeg, soft_picture, turned
from penstock.codecs import kernel
from penstock.codecs.images import decode_image, encode_image
from penstock.codecs.kernel import Failure, Placed, Target, decode_range
from penstock.errors import OptionError


@pytest.fixture(params=["kernel", "fallback"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Which of the two ways decodes."""
    name: str = request.param
    if name == "kernel" and kernel.native_extension() is None:
        pytest.skip("the kernel was not built")
    if name == "fallback":
        monkeypatch.setattr(kernel, "native_extension", lambda: None)
    yield name


def crops_of(width: int, height: int, count: int, seed: int = 0) -> NDArray[np.int64]:
    """Random crops, among them single pixels, the whole image, and its last column and row."""
    rng = np.random.default_rng(seed)
    w, h = rng.integers(1, width + 1, count), rng.integers(1, height + 1, count)
    crops = np.stack([rng.integers(0, width - w + 1), rng.integers(0, height - h + 1), w, h], axis=1)
    special = [[0, 0, width, height], [0, 0, 1, 1], [width - 1, height - 1, 1, 1], [width - 1, 0, 1, height]]
    return np.concatenate([crops, special, [[0, height - 1, width, 1], [width // 2, height // 2, 1, 1]]])


def one(data: Any, crop: Any, target: Target, *, flip: int = 0, **options: Any) -> NDArray[Any]:
    out = np.full((1, *target.shape), 77, target.dtype)
    failures = decode_range([data], np.asarray(crop).reshape(1, 4), np.array([flip], np.uint8), out, target, **options)
    assert failures == []
    return out[0]


def failure(data: Any, crop: Any = (0, 0, 8, 8), target: Target | None = None) -> str:
    target = target or Target(8, 8)
    out = np.empty((1, *target.shape), target.dtype)
    failures = decode_range([data], np.asarray(crop).reshape(1, 4), np.zeros(1, np.uint8), out, target)
    assert [position for position, _ in failures] == [0]
    return failures[0].reason


@pytest.mark.parametrize("subsampling", SUBSAMPLINGS)
@pytest.mark.parametrize("width", [1, 2, 5, 16])
def test_narrow_crops_at_every_column_have_the_pixels_of_the_whole_image(subsampling: str, width: int) -> None:
    data = jpeg(soft_picture(50, 21), subsampling=subsampling)
    whole = simplejpeg.decode_jpeg(data, "RGB")
    for x in range(50 - width + 1):
        np.testing.assert_array_equal(one(data, (x, 3, width, 9), Target(width, 9)), whole[3:12, x : x + width])


@pytest.mark.parametrize("subsampling", SUBSAMPLINGS)
@pytest.mark.parametrize("kind", ["baseline", "progressive", "restart"])
@pytest.mark.parametrize("size", [(97, 71), (64, 48), (33, 130)])
def test_a_crop_has_the_pixels_of_the_whole_image_bit_for_bit(
    subsampling: str, kind: str, size: tuple[int, int]
) -> None:
    pixels = soft_picture(*size, seed=3)
    data = jpeg(pixels, subsampling=subsampling, progressive=kind == "progressive", restart=2 * (kind == "restart"))
    whole = simplejpeg.decode_jpeg(data, "RGB")
    for x, y, w, h in crops_of(*size, 40).tolist():
        part = one(data, (x, y, w, h), Target(w, h))
        np.testing.assert_array_equal(part, whole[y : y + h, x : x + w], err_msg=f"{x} {y} {w} {h}")


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("flip", range(4))
def test_crops_are_of_the_upright_image_and_flips_come_last(orientation: int, flip: int, order: str) -> None:
    data = turned(jpeg(soft_picture(61, 45)), orientation, order=order)
    upright = decode_image(data)
    assert upright.shape == ((61, 45, 3) if orientation >= 5 else (45, 61, 3))
    for x, y, w, h in crops_of(upright.shape[1], upright.shape[0], 8, orientation).tolist():
        expected = upright[y : y + h, x : x + w]
        expected = expected[:, ::-1] if flip & 1 else expected
        expected = expected[::-1] if flip & 2 else expected
        np.testing.assert_array_equal(one(data, (x, y, w, h), Target(w, h), flip=flip), expected)
        planes = one(data, (x, y, w, h), Target(w, h, "chw-float32"), flip=flip)
        np.testing.assert_array_equal(planes, expected.transpose(2, 0, 1).astype(np.float32))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_turned_image_is_resized_like_its_upright_twin(orientation: int) -> None:
    data = turned(jpeg(soft_picture(203, 151)), orientation)
    upright = decode_image(data)
    twin = encode_image(upright, "png")
    for crop in crops_of(upright.shape[1], upright.shape[0], 12, orientation):
        for target in (Target(150, 90), Target(9, 13), Target(100, 7)):
            assert levels_apart(one(data, crop, target, reduced="never"), one(twin, crop, target)) <= 1


@pytest.mark.parametrize("orientation", range(1, 9))
def test_reduced_decoding_does_not_shift_a_turned_image(orientation: int) -> None:
    # Odd sizes: reduced pixels of a turned image begin at a fraction of one. Without noise the two filters agree.
    data = turned(jpeg(soft_picture(203, 151, noise=0), quality=98, subsampling="444"), orientation)
    width, height = (151, 203) if orientation >= 5 else (203, 151)
    for x, y in ((0, 0), (1, 3), (width - 120, height - 120)):
        exact, reduced = (one(data, (x, y, 120, 120), Target(29, 29), reduced=how) for how in ("never", "when-twice"))
        assert np.abs(exact.astype(int) - reduced).mean() < 1.5


def levels_apart(first: NDArray[Any], second: NDArray[Any]) -> int:
    return int(np.abs(first.astype(int) - second.astype(int)).max())


def test_up_to_twice_too_large_is_bilinear_as_in_opencv() -> None:
    data = jpeg(soft_picture(160, 120), subsampling="444")
    whole = simplejpeg.decode_jpeg(data, "RGB")
    rng = np.random.default_rng(5)
    for x, y, w, h in crops_of(160, 120, 60, 5).tolist():
        width, height = int(rng.integers((w + 1) // 2, 3 * w + 1)), int(rng.integers((h + 1) // 2, 3 * h + 1))
        expected = cv2.resize(whole[y : y + h, x : x + w], (width, height), interpolation=cv2.INTER_LINEAR)
        assert levels_apart(one(data, (x, y, w, h), Target(width, height), reduced="never"), expected) <= 1


def test_above_twice_too_large_is_reducing_as_in_pillow() -> None:
    data = jpeg(soft_picture(160, 120), subsampling="444")
    whole = Image.fromarray(simplejpeg.decode_jpeg(data, "RGB"))
    rng = np.random.default_rng(6)
    for x, y, w, h in [crop for crop in crops_of(160, 120, 80, 6).tolist() if min(crop[2:]) > 2]:
        width, height = int(rng.integers(1, (w + 1) // 2)), int(rng.integers(1, (h + 1) // 2))
        expected = np.asarray(whole.crop((x, y, x + w, y + h)).resize((width, height), Image.Resampling.BILINEAR))
        assert levels_apart(one(data, (x, y, w, h), Target(width, height), reduced="never"), expected) <= 1


def test_each_axis_chooses_its_filter_by_itself() -> None:
    data = jpeg(soft_picture(160, 120), subsampling="444")
    whole = simplejpeg.decode_jpeg(data, "RGB")
    narrow = np.asarray(Image.fromarray(whole).resize((30, 120), Image.Resampling.BILINEAR))
    expected = cv2.resize(narrow, (30, 90), interpolation=cv2.INTER_LINEAR)
    assert levels_apart(one(data, (0, 0, 160, 120), Target(30, 90), reduced="never"), expected) <= 1


@pytest.mark.parametrize("factor", [2, 4, 8])
def test_images_twice_too_large_may_be_decoded_at_a_reduced_scale(factor: int) -> None:
    data = jpeg(soft_picture(256, 128), subsampling="420")
    width, height = 256 // factor, 128 // factor
    expected = simplejpeg.decode_jpeg(data, "RGB", min_width=width, min_height=height)
    assert expected.shape == (height, width, 3)
    got = one(data, (0, 0, 256, 128), Target(width, height), reduced="when-twice")
    np.testing.assert_array_equal(got, expected)
    assert levels_apart(got, one(data, (0, 0, 256, 128), Target(width, height), reduced="never")) > 1


@pytest.mark.parametrize("subsampling", SUBSAMPLINGS)
@pytest.mark.parametrize("factor", [2, 4, 8])
def test_a_reduced_crop_has_the_pixels_of_the_reduced_image_bit_for_bit(subsampling: str, factor: int) -> None:
    data = jpeg(soft_picture(203, 151), subsampling=subsampling)
    whole = simplejpeg.decode_jpeg(data, "RGB", min_width=-(-203 // factor), min_height=-(-151 // factor))
    for x, y, w, h in crops_of(203 // factor, 151 // factor, 30).tolist():
        got = one(data, np.array([x, y, w, h]) * factor, Target(w, h), reduced="when-twice")
        np.testing.assert_array_equal(got, whole[y : y + h, x : x + w], err_msg=f"{x} {y} {w} {h}")


def test_nothing_is_reduced_when_one_direction_is_less_than_twice_too_large() -> None:
    data = jpeg(soft_picture(256, 128))
    exact = one(data, (0, 0, 256, 127), Target(64, 64), reduced="never")
    np.testing.assert_array_equal(one(data, (0, 0, 256, 127), Target(64, 64), reduced="when-twice"), exact)


def test_normalised_values_are_those_of_the_levels() -> None:
    data, mean, std = jpeg(soft_picture(90, 70)), (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
    levels = one(data, (3, 5, 80, 60), Target(40, 50), flip=1)
    planes = one(data, (3, 5, 80, 60), Target(40, 50, "chw-float32", mean, std), flip=1)
    expected = ((levels.astype(np.float64) - mean) / std).astype(np.float32).transpose(2, 0, 1)
    np.testing.assert_array_equal(planes, expected)


def other_images(pixels: NDArray[np.uint8]) -> dict[str, bytes]:
    import io

    cmyk = io.BytesIO()
    Image.fromarray(pixels).convert("CMYK").save(cmyk, "JPEG", quality=95)
    return {"png": encode_image(pixels, "png"), "webp": encode_image(pixels, "webp", 90), "cmyk": cmyk.getvalue()}


def test_other_images_in_a_range_are_decoded_too() -> None:
    pixels = soft_picture(80, 60)
    images = {"jpeg": jpeg(pixels), **other_images(pixels)}
    crops = np.tile(np.array([4, 6, 50, 40]), (4, 1))
    out = np.empty((4, 20, 25, 3), np.uint8)
    flips = np.arange(4, dtype=np.uint8)
    assert decode_range(list(images.values()), crops, flips, out, Target(25, 20), reduced="never") == []
    for data, sample, flip in zip(images.values(), out, range(4), strict=True):
        part = decode_image(data)[6:46, 4:54][:: -1 if flip & 2 else 1, :: -1 if flip & 1 else 1]
        assert levels_apart(sample, cv2.resize(part, (25, 20), interpolation=cv2.INTER_LINEAR)) <= 1


@pytest.mark.parametrize(
    "wrap", [bytes, bytearray, memoryview, pa.py_buffer, lambda data: np.frombuffer(data, np.uint8)]
)
def test_any_buffer_will_do(wrap: Any) -> None:
    for data in (jpeg(soft_picture(40, 30)), encode_image(soft_picture(40, 30), "png")):
        np.testing.assert_array_equal(one(wrap(data), (0, 0, 40, 30), Target(40, 30)), decode_image(data))


def placed(images: list[bytes]) -> Placed:
    """The same images inside of two larger buffers, in turn, with something between them."""
    buffers, places = [bytearray(b"begin"), bytearray()], []
    for number, data in enumerate(images):
        buffer = buffers[number % 2]
        places.append((number % 2, len(buffer), len(data)))
        buffer += data + b"between"
    return Placed(tuple(bytes(buffer) for buffer in buffers), np.array(places))


def test_images_inside_of_larger_buffers_are_the_same_images() -> None:
    pixels = soft_picture(80, 60)
    good = jpeg(pixels)
    images = [good, *other_images(pixels).values(), good[:300], jpeg(soft_picture(90, 70, seed=3)), b""]
    count = len(images)
    crops, flips = np.tile(np.array([4, 6, 50, 40]), (count, 1)), (np.arange(count) % 4).astype(np.uint8)
    listed, found = np.zeros((2, count, 20, 25, 3), np.uint8)
    failures = decode_range(images, crops, flips, listed, Target(25, 20))
    assert [position for position, _ in failures] == [4, 6]
    assert decode_range(placed(images), crops, flips, found, Target(25, 20)) == failures
    np.testing.assert_array_equal(found, listed)


@pytest.mark.parametrize("place", [(0, -1, 5), (0, 0, -5), (0, 3, 10**6), (0, 2**62, 2**62), (2, 0, 5), (-1, 0, 5)])
def test_a_place_outside_of_its_buffer_is_refused(place: tuple[int, int, int]) -> None:
    data, out = jpeg(soft_picture(16, 16)), np.zeros((1, 8, 8, 3), np.uint8)
    sources = Placed((data, data), np.array([place]))
    with pytest.raises(ValueError, match="place of image 0 is not in its buffer"):
        decode_range(sources, np.array([[0, 0, 8, 8]]), np.zeros(1, np.uint8), out, Target(8, 8))
    assert not out.any()


def test_places_must_be_three_numbers_each() -> None:
    with pytest.raises(OptionError, match="n×3 whole numbers"):
        Placed((b"",), np.zeros((2, 4), np.int64))


def bomb() -> bytes:
    """A few bytes that claim 65,000 × 65,000 px."""
    data = bytearray(jpeg(soft_picture(16, 16)))
    at = data.index(b"\xff\xc0")
    data[at + 5 : at + 9] = struct.pack(">HH", 65000, 65000)
    return bytes(data)


def wide_png() -> bytes:
    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def test_what_cannot_be_decoded_is_said_by_position_and_the_rest_is_made() -> None:
    pixels = soft_picture(64, 48)
    good = jpeg(pixels)
    sources = [good, b"", good[:200], b"\0" * 900, good[: len(good) // 2], bomb(), b"\xff\xd8\xff", good, wide_png()]
    crops = np.tile(np.array([0, 0, 64, 48]), (len(sources), 1))
    out = np.empty((len(sources), 48, 64, 3), np.uint8)
    failures = decode_range(sources, crops, np.zeros(len(sources), np.uint8), out, Target(64, 48))
    assert [position for position, _ in failures] == [1, 2, 3, 4, 5, 6, 8]
    assert all(reason for _, reason in failures)
    assert "65000×65000 px are more than" in failures[4].reason
    for position in (0, 7):
        np.testing.assert_array_equal(out[position], decode_image(good))


def test_a_missing_end_is_seen_when_the_crop_reaches_it() -> None:
    data = jpeg(soft_picture(64, 48))
    assert data.endswith(b"\xff\xd9")
    assert failure(data[:-2], (0, 40, 8, 8))
    assert failure(data[:-2] + bytes(64), (0, 40, 8, 8))


@pytest.mark.parametrize(
    "crop",
    [
        (-1, 0, 8, 8),
        (0, -1, 8, 8),
        (57, 0, 8, 8),
        (0, 41, 8, 8),
        (0, 0, 65, 8),
        (0, 0, 8, 49),
        (0, 0, 0, 8),
        (0, 0, 8, 0),
    ],
)
def test_a_crop_outside_the_image_fails(crop: tuple[int, ...]) -> None:
    reason = failure(jpeg(soft_picture(64, 48)), crop)
    x, y, w, h = crop
    assert reason == f"the crop of {w}×{h} px at {x},{y} is not inside the image of 64×48 px"


def test_a_crop_of_impossible_numbers_fails() -> None:
    large = 2**31 - 1
    for crop in ((large, large, large, large), (2**40, 0, 8, 8), (-(2**40), 0, 8, 8), (0, 0, -8, -8), (1, 1, large, 1)):
        assert "is not inside the image of 64×48 px" in failure(jpeg(soft_picture(64, 48)), crop)


def test_wrong_arguments_are_refused_before_anything_is_written() -> None:
    data, target = jpeg(soft_picture(64, 48)), Target(8, 6)
    crops, flips, out = np.array([[0, 0, 64, 48]]), np.zeros(1, np.uint8), np.zeros((1, 6, 8, 3), np.uint8)
    frozen = out.copy()
    frozen.flags.writeable = False
    wrong: list[tuple[Any, ...]] = [
        ([data], crops, flips, np.zeros((1, 6, 8, 3), np.float32)),
        ([data], crops, flips, np.zeros((1, 8, 6, 3), np.uint8)),
        ([data], crops, flips, np.zeros((2, 6, 8, 3), np.uint8)),
        ([data], crops, flips, np.zeros((1, 6, 16, 3), np.uint8)[:, :, ::2]),
        ([data], crops, flips, frozen),
        ([data], crops.astype(float), flips, out),
        ([data], crops[:, :3], flips, out),
        ([data], crops, flips.astype(int), out),
        ([data], crops, np.zeros(2, np.uint8), out),
        ([data, data], crops, flips, out),
        (data, crops, flips, out),
    ]
    for arguments in wrong:
        with pytest.raises(OptionError):
            decode_range(*arguments, target)
    with pytest.raises(OptionError, match="when-twice"):
        decode_range([data], crops, flips, out, target, reduced="when-twise")  # type: ignore[arg-type]
    with pytest.raises((TypeError, BufferError)):
        decode_range([None], crops, flips, out, target)
    assert not out.any()


def test_an_empty_range_is_nothing_to_do() -> None:
    out = np.empty((0, 6, 8, 3), np.uint8)
    assert decode_range([], np.empty((0, 4), np.int32), np.empty(0, np.uint8), out, Target(8, 6)) == []


def test_a_range_stays_inside_its_part_of_the_batch() -> None:
    data = jpeg(soft_picture(64, 48))
    for target in (Target(7, 5), Target(7, 5, "chw-float32")):
        batch = np.full((5, *target.shape), 77, target.dtype)
        crops = np.array([[0, 0, 64, 48]] * 3)
        assert decode_range([data] * 3, crops, np.arange(3, dtype=np.uint8), batch[1:4], target) == []
        assert (batch[[0, 4]] == 77).all()


def test_eight_threads_at_once_give_the_same_bits() -> None:
    sources = [jpeg(soft_picture(90 + i, 70 + 3 * i, i), progressive=i % 3 == 0) for i in range(12)]
    crops = np.array([[i, 2 * i, 60, 50] for i in range(12)])
    target = Target(31, 29, "chw-float32", (100.0, 110.0, 120.0), (50.0, 60.0, 70.0))

    def work(_: int) -> bytes:
        out = np.empty((12, *target.shape), target.dtype)
        assert decode_range(sources, crops, np.arange(12, dtype=np.uint8) % 4, out, target) == []
        return out.tobytes()

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(work, range(24)))) == 1


def test_targets_say_what_is_wrong_with_them() -> None:
    for wrong in ({"width": 0}, {"height": 20000}, {"layout": "chw-float16"}, {"mean": (1.0, 2.0, 3.0)}):
        with pytest.raises(OptionError):
            Target(**{"width": 8, "height": 8, **wrong})  # type: ignore[arg-type]
    for values in ((0.0, 1.0, 1.0), (float("nan"), 1.0, 1.0)):
        with pytest.raises(OptionError):
            Target(8, 8, "chw-float32", std=values)


def test_targets_and_failures_travel_between_processes() -> None:
    for value in (Target(8, 6, "chw-float32", (1.0, 2.0, 3.0)), Failure(3, "why")):
        assert pickle.loads(pickle.dumps(value)) == value
