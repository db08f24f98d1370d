"""Any view, from JPEGs and from raw pixels: what a part shows is what the whole shows there; with both ways."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from jpeg_making import SUBSAMPLINGS, jpeg, soft_picture, turned
from penstock.codecs import kernel
from penstock.codecs.images import decode_image, encode_image
from penstock.codecs.kernel import Failure, Target, decode_range, pixels_range
from penstock.errors import OptionError

MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
MANY = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(params=["kernel", "fallback"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Which of the two ways makes samples."""
    name: str = request.param
    if name == "kernel" and kernel.native_extension() is None:
        pytest.skip("the kernel was not built")
    if name == "fallback":
        monkeypatch.setattr(kernel, "native_extension", lambda: None)
    yield name


class View(NamedTuple):
    """One row of crops, beside the size of the part, the flip and the fill."""

    crop: tuple[int, int, int, int]
    resized: tuple[int, int]
    part: tuple[int, int, int, int]
    flip: int = 0
    fill: int = 0

    @property
    def row(self) -> NDArray[np.int64]:
        return np.array([[*self.crop, *self.resized, *self.part[:2]]])


class Picture(NamedTuple):
    width: int
    height: int
    subsampling: str
    orientation: int
    progressive: bool = False

    def data(self) -> bytes:
        stored = (self.height, self.width) if self.orientation >= 5 else (self.width, self.height)
        pixels = soft_picture(*stored, seed=self.width)
        return turned(jpeg(pixels, subsampling=self.subsampling, progressive=self.progressive), self.orientation)


@st.composite
def pictures(draw: st.DrawFn) -> Picture:
    side = st.integers(1, 90)
    kinds = st.sampled_from(SUBSAMPLINGS)
    return Picture(draw(side), draw(side), draw(kinds), draw(st.integers(1, 8)), draw(st.booleans()))


@st.composite
def views(draw: st.DrawFn, width: int, height: int) -> View:
    """Views of an image; some keep the scale, many reach outside, some show nothing of it."""
    w, h = draw(st.integers(1, width)), draw(st.integers(1, height))
    crop = (draw(st.integers(0, width - w)), draw(st.integers(0, height - h)), w, h)
    resized = (w, h) if draw(st.booleans()) else (draw(st.integers(1, 70)), draw(st.integers(1, 70)))
    part_w, part_h = draw(st.integers(1, 60)), draw(st.integers(1, 60))
    part_x = draw(st.integers(-part_w - 2, resized[0] + 2))
    part_y = draw(st.integers(-part_h - 2, resized[1] + 2))
    return View(crop, resized, (part_x, part_y, part_w, part_h), draw(st.integers(0, 3)), draw(st.integers(0, 255)))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Picture, View]:
    picture = draw(pictures())
    return picture, draw(views(picture.width, picture.height))


def from_jpeg(data: Any, view: View, *, target: Target | None = None, **options: Any) -> NDArray[Any]:
    target = target or Target(*view.part[2:])
    out = np.full((1, *target.shape), 77, target.dtype)
    assert decode_range([data], view.row, np.array([view.flip], np.uint8), out, target, fill=view.fill, **options) == []
    return out[0]


def from_pixels(pixels: NDArray[np.uint8], view: View, *, target: Target | None = None) -> NDArray[Any]:
    """Through a buffer in which the image does not begin at the start."""
    target = target or Target(*view.part[2:])
    buffer, out = b"ab" * 7 + pixels.tobytes() + b"c", np.full((1, *target.shape), 77, target.dtype)
    places = np.array([[1, 14, pixels.shape[1], pixels.shape[0]]])
    flips = np.array([view.flip], np.uint8)
    assert pixels_range((None, buffer), places, view.row, flips, out, target, fill=view.fill) == []
    return out[0]


def part_of(resized: NDArray[np.uint8], view: View) -> NDArray[np.uint8]:
    """The obvious way from the whole resized crop to the sample."""
    x, y, w, h = view.part
    sample = np.full((h, w, 3), view.fill, np.uint8)
    for row in range(max(0, -y), min(h, resized.shape[0] - y)):
        for column in range(max(0, -x), min(w, resized.shape[1] - x)):
            sample[row, column] = resized[y + row, x + column]
    return sample[:: -1 if view.flip & 2 else 1, :: -1 if view.flip & 1 else 1]


def whole_of(view: View) -> View:
    return View(view.crop, view.resized, (0, 0, *view.resized))


@MANY
@given(case=cases(), reduced=st.sampled_from(["never", "when-twice"]), fast=st.booleans())
def test_a_part_of_a_jpeg_is_what_the_whole_shows_there(case: tuple[Picture, View], reduced: str, fast: bool) -> None:
    picture, view = case
    data = picture.data()
    whole = from_jpeg(data, whole_of(view), reduced=reduced, fast=fast)
    np.testing.assert_array_equal(from_jpeg(data, view, reduced=reduced, fast=fast), part_of(whole, view))


@MANY
@given(case=cases())
@example(case=(Picture(32, 32, "444", 1), View((0, 0, 32, 32), (32, 32), (-4, 3, 32, 32), 1)))
def test_a_part_of_pixels_is_what_the_whole_shows_there(case: tuple[Picture, View]) -> None:
    picture, view = case
    pixels = soft_picture(picture.width, picture.height)
    whole = from_pixels(pixels, whole_of(view))
    np.testing.assert_array_equal(from_pixels(pixels, view), part_of(whole, view))


@MANY
@given(case=cases(), layout=st.sampled_from(["hwc-uint8", "chw-float32"]))
def test_a_jpeg_gives_the_bits_of_its_decoded_pixels(case: tuple[Picture, View], layout: Any) -> None:
    picture, view = case
    data = picture.data()
    norm = {"mean": MEAN, "std": STD} if layout == "chw-float32" else {}
    target = Target(*view.part[2:], layout, **norm)  # type: ignore[arg-type]
    ours = from_jpeg(data, view, target=target, reduced="never")
    np.testing.assert_array_equal(ours, from_pixels(decode_image(data), view, target=target))


@MANY
@given(case=cases())
def test_what_keeps_its_scale_is_copied(case: tuple[Picture, View]) -> None:
    picture, view = case
    view = view._replace(resized=view.crop[2:])
    x, y, w, h = view.crop
    pixels = soft_picture(picture.width, picture.height)
    np.testing.assert_array_equal(from_pixels(pixels, view), part_of(pixels[y : y + h, x : x + w], view))
    data = picture.data()
    np.testing.assert_array_equal(from_jpeg(data, view), part_of(decode_image(data)[y : y + h, x : x + w], view))


@MANY
@given(case=cases())
def test_fill_is_a_level_that_is_normalised_like_any_other(case: tuple[Picture, View]) -> None:
    picture, view = case
    pixels = soft_picture(picture.width, picture.height)
    planes = from_pixels(pixels, view, target=Target(*view.part[2:], "chw-float32", MEAN, STD))
    expected = ((from_pixels(pixels, view).astype(np.float64) - MEAN) / STD).astype(np.float32).transpose(2, 0, 1)
    np.testing.assert_array_equal(planes, expected)


def test_four_numbers_are_a_crop_whose_whole_is_the_sample() -> None:
    data, target, flips = jpeg(soft_picture(90, 70)), Target(40, 50), np.array([1], np.uint8)
    short, long = np.empty((1, 50, 40, 3), np.uint8), np.empty((1, 50, 40, 3), np.uint8)
    assert decode_range([data], np.array([[3, 5, 80, 60]]), flips, short, target) == []
    assert decode_range([data], np.array([[3, 5, 80, 60, 40, 50, 0, 0]]), flips, long, target) == []
    np.testing.assert_array_equal(short, long)
    places = np.array([[0, 0, 90, 70]])
    assert pixels_range([decode_image(data)], places, np.array([[3, 5, 80, 60]]), flips, long, target) == []
    np.testing.assert_array_equal(short, long)


def test_whether_decoding_is_reduced_follows_from_the_resized_size() -> None:
    data = jpeg(soft_picture(256, 128))
    for resized, is_reduced in (((64, 32), True), ((129, 64), False)):
        view = View((0, 0, 256, 128), resized, (1, 2, 9, 7))
        exact, reduced = (from_jpeg(data, view, reduced=how) for how in ("never", "when-twice"))
        assert (exact != reduced).any() == is_reduced


def test_a_crop_that_begins_between_reduced_pixels_is_resampled() -> None:
    data = jpeg(soft_picture(256, 128))
    halved = from_jpeg(data, View((0, 0, 256, 128), (128, 64), (0, 0, 128, 64))).astype(int)
    between = from_jpeg(data, View((1, 0, 254, 128), (127, 64), (0, 0, 127, 64)))
    assert np.abs(between - (halved[:, :-1] + halved[:, 1:]) / 2).max() <= 1


def test_the_fast_transform_is_asked_for_and_differs_a_little() -> None:
    import simplejpeg

    data = jpeg(soft_picture(160, 120), quality=80)
    view = View((0, 0, 160, 120), (160, 120), (0, 0, 160, 120))
    exact, fast = (from_jpeg(data, view, fast=wish) for wish in (False, True))
    np.testing.assert_array_equal(fast, simplejpeg.decode_jpeg(data, "RGB", fastdct=True))
    difference = np.abs(exact.astype(int) - fast)
    assert 0 < difference.max() <= 32 and difference.mean() < 3


def test_a_part_far_outside_is_fill_and_nothing_is_computed() -> None:
    data, far = jpeg(soft_picture(64, 48)), 2**62
    for x, y in ((far, 0), (-far, 0), (0, far), (0, -far), (2**63 - 1, -(2**63))):
        view = View((1, 2, 30, 20), (2**20, 2**20), (x, y, 5, 4), fill=9)
        assert (from_jpeg(data, view) == 9).all()
        assert (from_pixels(soft_picture(64, 48), view) == 9).all()


def test_a_part_of_something_huge_needs_no_memory_for_the_rest() -> None:
    pixels = np.zeros((2, 2, 3), np.uint8)
    pixels[:, 1] = 255
    half = 2**19
    sample = from_pixels(pixels, View((0, 0, 2, 2), (2**20, 2**20), (half - 4, half - 4, 8, 8)))
    assert set(np.unique(sample)) <= {127, 128}


SMALL = View((0, 0, 8, 6), (8, 6), (0, 0, 8, 6))


def pixel_failure(places: Any, view: View = SMALL, buffers: Any = None) -> list[Failure]:
    buffers = (bytes(8 * 6 * 3 + 5),) if buffers is None else buffers
    count = len(places)
    out = np.zeros((count, 6, 8, 3), np.uint8)
    crops, flips = np.repeat(view.row, count, axis=0), np.zeros(count, np.uint8)
    return pixels_range(buffers, np.asarray(places), crops, flips, out, Target(8, 6))


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ((1, 0, 8, 6), "there is no buffer 1 among 1"),
        ((-1, 0, 8, 6), "there is no buffer -1 among 1"),
        ((2**40, 0, 8, 6), f"there is no buffer {2**40} among 1"),
        ((0, -1, 8, 6), "the image of 8×6 px at byte -1 is not inside its buffer of 149 bytes"),
        ((0, 6, 8, 6), "the image of 8×6 px at byte 6 is not inside its buffer of 149 bytes"),
        ((0, 2**62, 8, 6), f"the image of 8×6 px at byte {2**62} is not inside its buffer of 149 bytes"),
        ((0, 0, 9, 6), "the image of 9×6 px at byte 0 is not inside its buffer of 149 bytes"),
        ((0, 0, 0, 6), f"an image cannot have 0×6 px, only 1 to {2**28} in all"),
        ((0, 0, 8, -6), f"an image cannot have 8×-6 px, only 1 to {2**28} in all"),
        ((0, 0, 2**62, 2**62), f"an image cannot have {2**62}×{2**62} px, only 1 to {2**28} in all"),
    ],
)
def test_a_place_outside_its_buffer_is_a_failure(place: tuple[int, ...], reason: str) -> None:
    assert pixel_failure([(0, 5, 8, 6), place, (0, 0, 8, 6)]) == [Failure(1, reason)]


@pytest.mark.parametrize("size", [(0, 6), (8, 0), (-8, 6), (2**20 + 1, 6), (8, 2**62)])
def test_an_impossible_resized_size_is_a_failure(size: tuple[int, int]) -> None:
    reason = f"a crop cannot be resized to {size[0]}×{size[1]} px, only to 1×1 to {2**20}×{2**20}"
    view = SMALL._replace(resized=size)
    assert pixel_failure([(0, 0, 8, 6)], view) == [Failure(0, reason)]
    out = np.zeros((1, 6, 8, 3), np.uint8)
    found = decode_range([jpeg(soft_picture(8, 6))], view.row, np.zeros(1, np.uint8), out, Target(8, 6))
    assert found == [Failure(0, reason)]


@pytest.mark.parametrize(
    "crop", [(-1, 0, 8, 6), (1, 0, 8, 6), (0, 1, 8, 6), (0, 0, 9, 6), (0, 0, 0, 6), (2**62, 0, 2**62, 6)]
)
def test_a_crop_outside_of_its_pixels_is_a_failure(crop: tuple[int, int, int, int]) -> None:
    x, y, w, h = crop
    reason = f"the crop of {w}×{h} px at {x},{y} is not inside the image of 8×6 px"
    assert pixel_failure([(0, 0, 8, 6)], SMALL._replace(crop=crop)) == [Failure(0, reason)]


def test_wrong_arguments_are_refused_before_anything_is_written() -> None:
    target, out = Target(8, 6), np.zeros((1, 6, 8, 3), np.uint8)
    buffers, places, flips = (bytes(8 * 6 * 3),), np.array([[0, 0, 8, 6]]), np.zeros(1, np.uint8)
    wrong: list[tuple[Any, ...]] = [
        (buffers[0], places, SMALL.row, flips, out),
        (np.zeros((6, 8, 3), np.uint8), places, SMALL.row, flips, out),
        (buffers, places[:, :3], SMALL.row, flips, out),
        (buffers, places[0], SMALL.row, flips, out),
        (buffers, places.astype(float), SMALL.row, flips, out),
        (buffers, places, SMALL.row[:, :7], flips, out),
        (buffers, places, SMALL.row[0], flips, out),
        (buffers, places, SMALL.row.astype(float), flips, out),
        (buffers, places.repeat(2, axis=0), SMALL.row, flips, out),
        (buffers, places, SMALL.row, flips.astype(np.int64), out),
        (buffers, places, SMALL.row, flips, out.astype(np.float32)),
    ]
    for arguments in wrong:
        with pytest.raises(OptionError):
            pixels_range(*arguments, target)
    for fill in (-1, 256):
        with pytest.raises(OptionError, match=f"fill={fill} must be a level from 0 to 255"):
            pixels_range(buffers, places, SMALL.row, flips, out, target, fill=fill)
    with pytest.raises((TypeError, BufferError)):
        pixels_range((None,), places, SMALL.row, flips, out, target)
    assert not out.any()


def test_any_buffer_of_bytes_will_do() -> None:
    import pyarrow as pa

    pixels = soft_picture(8, 6)
    buffers = (pixels.tobytes(), bytearray(pixels), memoryview(pixels), pixels, pa.py_buffer(pixels.tobytes()))
    places = np.array([[number, 0, 8, 6] for number in range(len(buffers))])
    out = np.zeros((len(buffers), 6, 8, 3), np.uint8)
    crops, flips = np.repeat(SMALL.row, len(buffers), axis=0), np.zeros(len(buffers), np.uint8)
    assert pixels_range(buffers, places, crops, flips, out, Target(8, 6)) == []
    for sample in out:
        np.testing.assert_array_equal(sample, pixels)


def test_an_empty_range_of_pixels_is_nothing_to_do() -> None:
    nothing = np.empty((0, 4), np.int64)
    out = np.empty((0, 6, 8, 3), np.uint8)
    assert pixels_range((), nothing, np.empty((0, 8), np.int64), np.empty(0, np.uint8), out, Target(8, 6)) == []


@pytest.mark.parametrize("resized", [(30, 20), (41, 13), (9, 7)])
def test_other_images_give_the_bits_of_their_pixels(resized: tuple[int, int]) -> None:
    pixels = soft_picture(40, 30)
    view = View((2, 3, 30, 20), resized, (-3, 5, 33, 21), flip=3, fill=200)
    np.testing.assert_array_equal(from_jpeg(encode_image(pixels, "png"), view), from_pixels(pixels, view))


def test_many_small_images_in_one_range_stay_in_their_places() -> None:
    rng = np.random.default_rng(2)
    images = rng.integers(0, 256, (300, 32, 32, 3), np.uint8)
    order = rng.permutation(300)
    parts = rng.integers(-4, 5, (300, 2))
    flips = rng.integers(0, 4, 300).astype(np.uint8)
    places = np.stack([order * 0, order * 3072, order * 0 + 32, order * 0 + 32], axis=1)
    crops = np.concatenate([np.tile([0, 0, 32, 32, 32, 32], (300, 1)), parts], axis=1)
    batch = np.full((302, 32, 32, 3), 77, np.uint8)
    assert pixels_range((images,), places, crops, flips, batch[1:-1], Target(32, 32), fill=5) == []
    padded = np.pad(images[order], ((0, 0), (4, 4), (4, 4), (0, 0)), constant_values=5)
    for sample, around, (x, y), flip in zip(batch[1:-1], padded, parts + 4, flips, strict=True):
        part = around[y : y + 32, x : x + 32]
        np.testing.assert_array_equal(sample, part[:: -1 if flip & 2 else 1, :: -1 if flip & 1 else 1])
    assert (batch[[0, -1]] == 77).all()
