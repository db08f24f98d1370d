"""What packing asks of the kernel: many files in one call, headers, and sums over JPEGs at half their size."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jpeg_making import SUBSAMPLINGS, jpeg, soft_picture, turned
from penstock.codecs import kernel
from penstock.codecs.headers import read_header
from penstock.codecs.images import decode_image, encode_image
from penstock.codecs.kernel.bulk import jpeg_headers, measure_halved, read_files

C_SOURCES = Path(kernel.__file__).parent / "c"
PROGRAM = Path(__file__).with_name("packing_mutations.c")
TRIES = 4000

needs_kernel = pytest.mark.skipif(kernel.native_extension() is None, reason="the kernel is not built here")


def memory(size: int) -> memoryview:
    return memoryview(bytearray(size))


def written(folder: Path, *contents: bytes) -> list[str]:
    paths = [folder / f"{number} ä.bin" for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    return [str(path) for path in paths]


@needs_kernel
def test_files_are_read_one_after_another_with_their_state(tmp_path: Path) -> None:
    contents = [b"one", b"", bytes(range(256)) * 999]
    paths = written(tmp_path, *contents)
    for path, content, read in zip(paths, contents, read_files(paths, memory), strict=True):
        assert read is not None
        assert bytes(read.data) == content
        state = Path(path).stat()
        assert (read.size, read.changed_ns) == (state.st_size, state.st_mtime_ns)


@needs_kernel
def test_what_cannot_be_read_is_left_to_the_caller_and_moves_nothing_else(tmp_path: Path) -> None:
    first, last = written(tmp_path, b"first", b"last")
    (tmp_path / "folder.jpg").mkdir()
    found = read_files([first, str(tmp_path / "missing"), str(tmp_path / "folder.jpg"), last], memory)
    assert [None if read is None else bytes(read.data) for read in found] == [b"first", None, None, b"last"]


@needs_kernel
def test_a_file_that_changed_since_it_was_looked_at_is_not_taken(tmp_path: Path) -> None:
    names = tuple(map(os.fsencode, written(tmp_path, b"longer", b"newer", b"same")))
    states, is_read = np.empty((3, 2), np.int64), np.empty(3, np.uint8)
    native = kernel.native_extension()
    assert native is not None
    native.look_at_files(names, states)
    states[0, 0] -= 1
    states[1, 1] -= 1
    native.read_files(names, states, bytearray(20), is_read)
    assert is_read.tolist() == [0, 0, 1]


@needs_kernel
def test_the_kernel_refuses_memory_that_is_too_small(tmp_path: Path) -> None:
    names = tuple(map(os.fsencode, written(tmp_path, b"12345", b"6789")))
    states, is_read = np.empty((2, 2), np.int64), np.empty(2, np.uint8)
    native = kernel.native_extension()
    assert native is not None
    native.look_at_files(names, states)
    with pytest.raises(ValueError, match="larger than the memory"):
        native.read_files(names, states, bytearray(8), is_read)
    with pytest.raises(ValueError, match="2 items of 16 bytes"):
        native.read_files(names, states[:1], bytearray(9), is_read)
    with pytest.raises(ValueError, match="2 items of 1 bytes"):
        native.read_files(names, states, bytearray(9), is_read[:1])
    with pytest.raises(ValueError, match="2 items of 16 bytes"):
        native.look_at_files(names, states[:1])
    with pytest.raises(ValueError, match="1 items of 56 bytes"):
        native.measure_halved((b"",), 0, np.empty((2, 7), np.uint64))
    with pytest.raises(ValueError, match="null byte"):
        native.look_at_files((b"a\0b",), states[:1])


def test_without_the_kernel_everything_is_left_to_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "native_extension", lambda: None)
    assert read_files(written(tmp_path, b"content"), memory) == [None]
    assert measure_halved([jpeg(soft_picture(300, 300))], 256) == [None]


@needs_kernel
@pytest.mark.parametrize("subsampling", SUBSAMPLINGS)
@pytest.mark.parametrize("size", [(301, 257), (640, 480)])
def test_sums_are_those_of_the_image_decoded_at_half_its_size(subsampling: str, size: tuple[int, int]) -> None:
    width, height = size
    data = jpeg(soft_picture(width, height), subsampling=subsampling, progressive=width == 640)
    (found,) = measure_halved([turned(data, 6)], 256)
    pixels = decode_image(data, at_least=(-(-width // 2), -(-height // 2))).astype(np.int64)
    assert found is not None
    assert found.pixels == pixels.shape[0] * pixels.shape[1] == -(-width // 2) * -(-height // 2)
    assert np.allclose(found.sums, pixels.sum((0, 1)), rtol=1e-3)
    assert np.allclose(found.squares, (pixels**2).sum((0, 1)), rtol=1e-3)


@needs_kernel
def test_sums_of_a_large_white_image_do_not_overflow() -> None:
    data = jpeg(np.full((3000, 4100, 3), 255, np.uint8))
    (found,) = measure_halved([data], 256)
    assert found is not None
    assert found.sums == (255 * found.pixels,) * 3
    assert found.squares == (255 * 255 * found.pixels,) * 3


@needs_kernel
def test_damaged_small_and_other_images_are_not_measured() -> None:
    whole = jpeg(soft_picture(300, 300))
    others = [
        whole[:-4000],
        b"",
        b"no image",
        encode_image(soft_picture(300, 300), "png"),
        jpeg(soft_picture(300, 200)),
    ]
    found = measure_halved([*others, whole], 256)
    assert found[:-1] == [None] * len(others)
    assert found[-1] is not None


@needs_kernel
@pytest.mark.parametrize("subsampling", SUBSAMPLINGS)
def test_headers_of_jpegs_are_those_that_python_reads(subsampling: str) -> None:
    data = jpeg(soft_picture(150, 110), subsampling=subsampling, progressive=subsampling == "422", restart=3)
    padded = data[:2] + b"\xff\xff\xff\x01" + data[2:]
    expected = [read_header(one)._replace(is_progressive=False) for one in (data, padded)]  # that is not asked there
    assert jpeg_headers([data, memoryview(padded)]) == expected


@needs_kernel
def test_headers_that_need_a_second_look_are_left_to_python() -> None:
    data = jpeg(soft_picture(40, 30))
    frame = data.index(b"\xff\xc0")
    no_size = data[: frame + 5] + bytes(2) + data[frame + 7 :]
    png = encode_image(soft_picture(40, 30), "png")
    others = [turned(data, 1), turned(data, 6), b"", data[:3], data[: frame + 9], data[2:], png, no_size]
    assert jpeg_headers([*others, data]) == [None] * len(others) + [read_header(data)]


@needs_kernel
@given(st.data())
def test_the_header_of_a_damaged_jpeg_is_that_of_python_or_none(draw: st.DataObject) -> None:
    data = bytearray(jpeg(soft_picture(40, 30)))
    for _ in range(draw.draw(st.integers(1, 3))):
        data[draw.draw(st.integers(0, 700))] = draw.draw(
            st.sampled_from([0, 1, 0xC2, 0xD9, 0xFF]) | st.integers(0, 255)
        )
    (found,) = jpeg_headers([data[: draw.draw(st.integers(1, len(data)))]])
    assert found is None or found == read_header(data)._replace(is_progressive=False)


@needs_kernel
@pytest.mark.slow
def test_reading_and_measuring_never_touch_memory_that_is_not_theirs(tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("there is no compiler")
    for number, subsampling in enumerate(SUBSAMPLINGS):
        data = jpeg(soft_picture(150, 110, number), subsampling=subsampling, progressive=number % 3 == 0)
        (tmp_path / f"{number}.jpg").write_bytes(data)
    seeds = [str(path) for path in sorted(tmp_path.iterdir())]
    files = [*(str(C_SOURCES / name) for name in ("files.c", "jpeg_headers.c", "measure.c")), str(PROGRAM)]
    checks = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
    flags = ["-std=c99", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-DPENSTOCK_MOST_PIXELS=(1L<<20)"]
    target = str(tmp_path / "packing_mutations")
    built = subprocess.run(
        ["cc", *flags, f"-I{C_SOURCES}", *checks, *files, "-ljpeg", "-o", target],
        capture_output=True,
        text=True,
        check=False,
    )
    if "cannot find" in built.stderr:
        pytest.skip("the compiler has no sanitizers here")
    assert built.returncode == 0, built.stderr
    answer = subprocess.run(
        [target, str(TRIES), *seeds, str(tmp_path / "missing.jpg"), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "ASAN_OPTIONS": "detect_leaks=1"},
    )
    assert answer.returncode == 0, answer.stderr[-4000:]
    measured, not_measured, whole = map(int, answer.stdout.split())
    assert whole == len(seeds)
    assert min(measured, not_measured) > TRIES // 10, "both good and damaged images were tried"
