"""The kernel beside its fallback: the same pixels within a level, the same failures; and how one is chosen."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from jpeg_making import SUBSAMPLINGS, jpeg, soft_picture, turned
from penstock.codecs import kernel
from penstock.codecs.headers import read_file_header
from penstock.codecs.images import encode_image
from penstock.codecs.kernel import Failure, Target, decode_range, fallback, pixels_range
from penstock.codecs.kernel.targets import Job, checked_views
from penstock.errors import OptionError

built = pytest.mark.skipif(kernel.native_extension() is None, reason="the kernel was not built")
NORMALISED = Target(60, 40, "chw-float32", (120.0, 110.0, 100.0), (1.0, 1.0, 1.0))


def both(
    sources: list[bytes], crops: NDArray[Any], target: Target, *, flips: NDArray[np.uint8], reduced: Any
) -> tuple[NDArray[Any], NDArray[Any], list[Failure], list[Failure]]:
    outs = [np.zeros((len(sources), *target.shape), target.dtype) for _ in range(2)]
    ours = decode_range(sources, crops, flips, outs[0], target, reduced=reduced)
    job = Job(checked_views(crops, len(sources), target), flips, outs[1], target, 0)
    theirs = fallback.decode_positions(range(len(sources)), sources, job, reduced=reduced, fast=False)
    return outs[0], outs[1], ours, theirs


def random_crops(sizes: list[tuple[int, int]], rng: np.random.Generator) -> NDArray[np.int64]:
    rows = []
    for width, height in sizes:
        w, h = int(rng.integers(1, width + 1)), int(rng.integers(1, height + 1))
        rows.append([rng.integers(width - w + 1), rng.integers(height - h + 1), w, h])
    return np.array(rows)


@built
@pytest.mark.parametrize("reduced", ["never", "when-twice"])
@pytest.mark.parametrize("target", [Target(60, 40), Target(7, 90), Target(1, 1), Target(200, 3), NORMALISED], ids=str)
def test_kernel_and_fallback_agree_within_one_level(target: Target, reduced: Any) -> None:
    rng = np.random.default_rng(11)
    sources, sizes = [], []
    for number in range(96):
        width, height = (int(side) for side in rng.integers(1, 300, 2))
        subsampling = SUBSAMPLINGS[number % len(SUBSAMPLINGS)]
        data = jpeg(soft_picture(width, height, number), subsampling=subsampling, progressive=number % 4 == 0)
        orientation = number % 8 + 1
        sources.append(turned(data, orientation))
        sizes.append((height, width) if orientation >= 5 else (width, height))
    flips = rng.integers(0, 4, len(sources)).astype(np.uint8)
    ours, theirs, failed, failed_there = both(sources, random_crops(sizes, rng), target, flips=flips, reduced=reduced)
    assert failed == failed_there == []
    assert np.abs(ours.astype(float) - theirs).max() <= 1.001


def random_views(crops: NDArray[np.int64], target: Target, rng: np.random.Generator) -> NDArray[np.int64]:
    """Some crops keep their size; parts reach outside on every side."""
    count = len(crops)
    resized = np.where(rng.integers(0, 3, (count, 1)) == 0, crops[:, 2:], rng.integers(1, 200, (count, 2)))
    size = np.array([target.width, target.height])
    return np.column_stack([crops, resized, rng.integers(-size - 1, resized + 2)])


def made_both_ways(monkeypatch: pytest.MonkeyPatch, make: Callable[[NDArray[Any]], list[Failure]], out: Any) -> Any:
    """What the kernel and then the fallback write."""
    outs = [np.zeros_like(out) for _ in range(2)]
    assert make(outs[0]) == []
    monkeypatch.setattr(kernel, "native_extension", lambda: None)
    assert make(outs[1]) == []
    return outs


@built
@pytest.mark.parametrize("reduced", ["never", "when-twice"])
@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("target", [Target(60, 40), Target(3, 5), NORMALISED], ids=str)
def test_views_of_jpegs_agree_within_one_level(
    monkeypatch: pytest.MonkeyPatch, target: Target, reduced: Any, fast: bool
) -> None:
    rng, sources, sizes = np.random.default_rng(12), [], []
    for number in range(96):
        width, height = (int(side) for side in rng.integers(1, 250, 2))
        data = jpeg(soft_picture(width, height, number), subsampling=SUBSAMPLINGS[number % len(SUBSAMPLINGS)])
        orientation = number % 8 + 1
        sources.append(turned(data, orientation))
        sizes.append((height, width) if orientation >= 5 else (width, height))
    crops = random_views(random_crops(sizes, rng), target, rng)
    flips, out = rng.integers(0, 4, 96).astype(np.uint8), np.zeros((96, *target.shape), target.dtype)

    def make(into: NDArray[Any]) -> list[Failure]:
        return decode_range(sources, crops, flips, into, target, reduced=reduced, fill=99, fast=fast)

    ours, theirs = made_both_ways(monkeypatch, make, out)
    assert np.abs(ours.astype(float) - theirs).max() <= 1.001
    same_scale = (crops[:, 2:4] == crops[:, 4:6]).all(axis=1)
    assert same_scale.sum() > 10
    np.testing.assert_array_equal(ours[same_scale], theirs[same_scale])


@built
@pytest.mark.parametrize("target", [Target(60, 40), Target(3, 5), NORMALISED], ids=str)
def test_views_of_pixels_agree_within_one_level(monkeypatch: pytest.MonkeyPatch, target: Target) -> None:
    rng, count = np.random.default_rng(13), 200
    sizes = rng.integers(1, 250, (count, 2))
    buffer = rng.integers(0, 256, 250 * 250 * 3 + 1000, np.uint8)
    places = np.column_stack([np.zeros(count, np.int64), rng.integers(0, 1000, count), sizes])
    crops = random_views(random_crops([(w, h) for w, h in sizes.tolist()], rng), target, rng)
    flips, out = rng.integers(0, 4, count).astype(np.uint8), np.zeros((count, *target.shape), target.dtype)

    def make(into: NDArray[Any]) -> list[Failure]:
        return pixels_range((buffer,), places, crops, flips, into, target, fill=99)

    ours, theirs = made_both_ways(monkeypatch, make, out)
    assert np.abs(ours.astype(float) - theirs).max() <= 1.001
    same_scale = (crops[:, 2:4] == crops[:, 4:6]).all(axis=1)
    np.testing.assert_array_equal(ours[same_scale], theirs[same_scale])


@built
def test_real_photographs_come_out_the_same(shared_data: Path) -> None:
    paths = sorted((shared_data / "pets_cat_dog").rglob("*.jpg"))[:40]
    headers = [read_file_header(path) for path in paths]
    crops = random_crops([(header.width, header.height) for header in headers], np.random.default_rng(3))
    sources = [path.read_bytes() for path in paths]
    flips = np.zeros(len(paths), np.uint8)
    ours, theirs, failed, failed_there = both(sources, crops, Target(96, 96), flips=flips, reduced="never")
    assert [failure.position for failure in failed] == [failure.position for failure in failed_there]
    assert len(failed) < len(paths) / 10
    assert np.abs(ours.astype(int) - theirs).max() <= 1


@built
def test_damage_is_found_by_both_when_the_whole_image_is_asked_for() -> None:
    rng = np.random.default_rng(4)
    good = jpeg(soft_picture(80, 64))
    sources = [good[: int(cut)] for cut in rng.integers(0, len(good), 60)] + [good]
    crops = np.tile(np.array([0, 0, 80, 64]), (len(sources), 1))
    flips = np.zeros(len(sources), np.uint8)
    _, _, failed, failed_there = both(sources, crops, Target(80, 64), flips=flips, reduced="never")
    assert [failure.position for failure in failed] == list(range(60))
    assert [failure.position for failure in failed_there] == list(range(60))


@built
def test_damaged_bytes_never_end_the_process() -> None:
    rng = np.random.default_rng(5)
    seeds = [jpeg(soft_picture(70, 50), subsampling=kind, progressive=kind in ("422", "444")) for kind in SUBSAMPLINGS]
    sources = []
    for number in range(1200):
        data = bytearray(turned(seeds[number % len(seeds)], number % 8 + 1))
        for at in rng.integers(0, len(data), int(rng.integers(1, 6))):
            data[int(at)] = int(rng.integers(256))
        sources.append(bytes(data))
    crops = random_crops([(50, 50)] * len(sources), rng)
    flips = rng.integers(0, 4, len(sources)).astype(np.uint8)
    out = np.zeros((len(sources), 20, 30, 3), np.uint8)
    failures = decode_range(sources, crops, flips, out, Target(30, 20))
    assert 100 < len(failures) < len(sources)
    again = np.zeros_like(out)
    assert decode_range(sources, crops, flips, again, Target(30, 20)) == failures
    whole = np.setdiff1d(np.arange(len(sources)), [failure.position for failure in failures])
    np.testing.assert_array_equal(out[whole], again[whole])


def other_kinds() -> dict[str, bytes]:
    """Bytes that the extension leaves to the fallback, which knows more kinds or the better reason."""
    data = bytearray(jpeg(soft_picture(64, 48)))
    frame = data.index(b"\xff\xc0")
    lossless, deep = bytearray(data), bytearray(data)
    lossless[frame + 1] = 0xC3
    deep[frame + 1], deep[frame + 4] = 0xC1, 12
    return {"png": encode_image(soft_picture(64, 48), "png"), "lossless": bytes(lossless), "12 bits": bytes(deep)}


@built
@pytest.mark.parametrize("kind", other_kinds())
def test_the_extension_leaves_other_kinds_to_the_fallback(kind: str) -> None:
    extension, data, out = kernel.native_extension(), other_kinds()[kind], np.zeros((1, 48, 64, 3), np.uint8)
    assert extension is not None
    views = np.array([[0, 0, 64, 48, 64, 48, 0, 0]])
    missed = extension.decode_range((data,), views, np.zeros(1, np.uint8), out, None, 64, 48, 0, False, False)
    assert [(position, bool(is_other_kind)) for position, is_other_kind, _ in missed] == [(0, True)]
    assert not out.any()


@built
def test_the_extension_checks_what_it_is_given_itself() -> None:
    extension, data = kernel.native_extension(), jpeg(soft_picture(64, 48))
    assert extension is not None
    views, flips, out = np.array([[0, 0, 8, 6, 8, 6, 0, 0]]), np.zeros(1, np.uint8), np.zeros((1, 6, 8, 3), np.uint8)
    places, pixels = np.array([[0, 0, 8, 6]]), bytes(8 * 6 * 3)
    table = np.zeros((3, 256), np.float32)
    wrong: list[tuple[Any, ...]] = [
        (views[:, :7].copy(), flips, out, None, 8, 6, 0),
        (views, np.zeros(2, np.uint8), out, None, 8, 6, 0),
        (views, flips, out[:, :5].copy(), None, 8, 6, 0),
        (views, flips, out, table, 8, 6, 0),
        (views, flips, np.zeros((1, 3, 6, 8), np.float32), table[:2].copy(), 8, 6, 0),
        (views, flips, out, None, 0, 6, 0),
        (views, flips, out, None, 8, 2**30, 0),
        (views, flips, out[:, :, ::2], None, 4, 6, 0),
        (views, flips, out, None, 8, 6, -1),
        (views, flips, out, None, 8, 6, 256),
    ]
    for arguments in wrong:
        with pytest.raises((ValueError, TypeError, BufferError)):
            extension.decode_range((data,), *arguments, False, False)
        with pytest.raises((ValueError, TypeError, BufferError)):
            extension.pixels_range((pixels,), places, *arguments)
    right = (views, flips, out, None, 8, 6, 0)
    for sources in ([data], (None,)):
        with pytest.raises((TypeError, BufferError)):
            extension.decode_range(sources, *right, False, False)
    for buffers, where in (([pixels], places), ((None,), places), ((pixels,), places[:, :3].copy()), ((pixels,), None)):
        with pytest.raises((ValueError, TypeError, BufferError)):
            extension.pixels_range(buffers, where, *right)
    assert not out.any()


def other_threads_run_during(work: Callable[[], object]) -> bool:
    """Whether a thread that waits for the GIL got it while the work went on, again and again on a busy machine."""
    seen: list[str] = []
    go = threading.Lock()
    go.acquire()

    def other() -> None:
        go.acquire()
        seen.append("ran")

    thread = threading.Thread(target=other)
    thread.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # from here the other thread runs only when this one lets go of the GIL
    try:
        go.release()
        before = list(seen)
        for _ in range(100):
            if not seen:
                work()
        after = list(seen)
    finally:
        sys.setswitchinterval(interval)
        thread.join()
    assert before == []
    return after == ["ran"]


@built
def test_other_threads_run_while_a_range_is_decoded() -> None:
    sources = [jpeg(soft_picture(640, 480))] * 48
    crops, flips = np.tile([0, 0, 640, 480, 64, 64, 0, 0], (48, 1)), np.zeros(48, np.uint8)
    target = Target(64, 64)
    out = np.empty((48, *target.shape), target.dtype)
    assert other_threads_run_during(lambda: decode_range(sources, crops, flips, out, target, reduced="never"))


@built
def test_other_threads_run_while_pixels_are_picked() -> None:
    count, target = 400, Target(200, 200)
    # Views as the extension takes them: numpy would let go of the GIL to convert others.
    places, crops = np.tile([0, 0, 300, 300], (count, 1)), np.tile([0, 0, 300, 300, 200, 200, 0, 0], (count, 1))
    flips, out = np.zeros(count, np.uint8), np.empty((count, *target.shape), target.dtype)
    buffers = (bytes(300 * 300 * 3),)
    assert other_threads_run_during(lambda: pixels_range(buffers, places, crops, flips, out, target))


def chosen(**environment: str) -> subprocess.CompletedProcess[str]:
    code = "from penstock.codecs.kernel import which; print(which())"
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def test_the_environment_can_ask_for_the_fallback() -> None:
    assert chosen(PENSTOCK_KERNEL="fallback").stdout.strip() == fallback.libraries()
    assert "simplejpeg" in fallback.libraries() and "OpenCV" in fallback.libraries()


@built
def test_the_kernel_is_chosen_where_it_is_built() -> None:
    assert chosen(PENSTOCK_KERNEL="auto").stdout.strip() == kernel.which()
    assert kernel.which().startswith("libjpeg-turbo ") and kernel.which().endswith(" kernel")


def test_an_unknown_wish_is_an_error() -> None:
    answer = chosen(PENSTOCK_KERNEL="fast")
    assert answer.returncode != 0
    assert "PENSTOCK_KERNEL='fast' is not one of auto, fallback." in answer.stderr
    assert OptionError.__name__ in answer.stderr


def test_the_kernel_was_built_where_it_must_be() -> None:
    if os.environ.get("PENSTOCK_REQUIRE_KERNEL") != "1":
        pytest.skip("PENSTOCK_REQUIRE_KERNEL=1 is not set: the fallback may serve here")
    from penstock.codecs.kernel import _native

    assert _native.LIBRARY.startswith("libjpeg-turbo ")
