"""Rows of uncompressed tiles, read by the kernel: every byte in its place, none beside it, and what fails is said."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from penstock.codecs import kernel
from penstock.codecs.kernel.bulk import read_tiles

SOURCES = Path(kernel.__file__).parent / "c"
PROGRAM = Path(__file__).with_name("tiles_mutations.c")
TRIES = 4_000
FILE_BYTES = 1 << 20
WIDE = 150_000  # of which memory holds one row at a time; a row of twice that is more than it holds

needs_kernel = pytest.mark.skipif(
    kernel.native_extension() is None or os.name == "nt",
    reason="the kernel is not built here, or leaves tiles to the caller",
)


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The bytes of a file, and its descriptor."""
    values = np.random.default_rng(3).integers(0, 256, FILE_BYTES, np.uint8)
    path = tmp_path_factory.mktemp("tiles") / "tiles.bin"
    path.write_bytes(values.tobytes())
    with path.open("rb") as file:
        yield values, file.fileno()


@needs_kernel
@given(
    row_bytes=st.one_of(st.integers(1, 90), st.sampled_from([WIDE, 2 * WIDE])),
    rows=st.integers(1, 3),
    beyond=st.tuples(st.floats(0, 0.99), st.floats(0, 0.99)),
    places=st.lists(st.floats(0, 1), min_size=1, max_size=4),
    between=st.integers(0, 5),
)
@settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_byte_is_in_its_place_and_none_beside_it(
    content: Any, row_bytes: int, rows: int, beyond: tuple[float, float], places: list[float], between: int
) -> None:
    values, descriptor = content
    offsets = np.array([int(place * (FILE_BYTES - rows * row_bytes)) for place in places], np.int64)
    tiles = [values[at : at + rows * row_bytes].reshape(rows, row_bytes) for at in offsets.tolist()]
    left, right = (int(share * row_bytes) for share in beyond)
    seen = np.concatenate(tiles, axis=1)[:, left : len(places) * row_bytes - right]
    if not seen.size:
        return
    expected = np.full((rows + 2, seen.shape[1] + between, 1), 77, np.uint8)
    found = expected.copy()
    expected[1:-1, : seen.shape[1], 0] = seen
    assert read_tiles(descriptor, offsets, row_bytes, left, found[1:-1, : seen.shape[1]])
    assert np.array_equal(found, expected)


def image(rows: int = 4, width: int = 20) -> NDArray[np.uint8]:
    return np.zeros((rows, width, 3), np.uint8)


@needs_kernel
@pytest.mark.parametrize(
    ("offsets", "row_bytes", "left", "out", "what"),
    [
        ([0], 48, 0, image(), "end in the last tile"),
        ([0, 99, 99], 48, 0, image(), "end in the last tile"),
        ([], 48, 0, image(), "end in the last tile"),
        ([0, 99], 48, 48, image(), "begin in the first tile"),
        ([0, 99], 48, -1, image(), "begin in the first tile"),
        ([0, 99], 0, 0, image(), "so many bytes"),
        ([0, 99], 1 << 61, 0, image(), "so many bytes"),
        ([0, -1], 48, 0, image(), "where no file reaches"),
        ([0, (1 << 63) - 191], 48, 0, image(), "where no file reaches"),
        ([0, 99], 48, 0, image(rows=0), "no rows"),
        ([0, 99], 48, 0, image()[:, ::2], "rows of pixels"),
        ([0, 99], 48, 0, image().transpose(1, 0, 2), "rows of pixels"),
        ([0, 99], 48, 0, image()[0], "rows of pixels"),
        ([0, 99], 48, 0, image().astype(np.uint16), "rows of pixels"),
    ],
)
def test_sizes_that_do_not_fit_together_are_refused(
    content: Any, offsets: list[int], row_bytes: int, left: int, out: NDArray[Any], what: str
) -> None:
    with pytest.raises(ValueError, match=what):
        read_tiles(content[1], np.array(offsets, np.int64), row_bytes, left, out)
    assert not out.any()


@needs_kernel
def test_offsets_and_memory_of_another_kind_are_refused(content: Any) -> None:
    native: Any = kernel.native_extension()
    with pytest.raises(ValueError, match="8 bytes"):
        native.read_tiles(content[1], bytes(15), 48, 0, image())
    with pytest.raises((BufferError, ValueError)):
        native.read_tiles(content[1], bytes(16), 48, 0, np.frombuffer(bytes(240), np.uint8).reshape(4, 20, 3))


@needs_kernel
@pytest.mark.parametrize("missing", [1, 47, 48, 191, 192, 10_000])
def test_a_file_that_ends_within_a_tile_is_said(content: Any, missing: int) -> None:
    offsets = np.array([0, FILE_BYTES - 4 * 48], np.int64)
    assert read_tiles(content[1], offsets, 48, 0, image())
    with pytest.raises(EOFError):
        read_tiles(content[1], offsets + missing, 48, 0, image())


@needs_kernel
def test_what_the_system_says_is_raised(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(IsADirectoryError):
            read_tiles(descriptor, np.zeros(2, np.int64), 48, 0, image())
    finally:
        os.close(descriptor)


def test_without_the_kernel_tiles_are_left_to_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "native_extension", lambda: None)
    assert not read_tiles(0, np.zeros(2, np.int64), 48, 0, image())


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="tiles are left to the caller")
def test_no_size_and_no_answer_of_the_system_leads_to_memory_that_is_not_the_images(tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("there is no compiler")
    target = str(tmp_path / "tiles_mutations")
    checks = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
    flags = ["-std=c99", "-O1", "-g", "-Wall", "-Wextra", "-Werror", f"-I{SOURCES}"]
    built = subprocess.run(["cc", *flags, *checks, str(PROGRAM), "-o", target], capture_output=True, text=True)
    if "cannot find" in built.stderr:
        pytest.skip("the compiler has no sanitizers here")
    assert built.returncode == 0, built.stderr
    # Rows of any length are asked for: that there is no memory for them is an answer like others.
    settled = {**os.environ, "ASAN_OPTIONS": "allocator_may_return_null=1"}
    answer = subprocess.run([target, str(TRIES)], capture_output=True, text=True, env=settled)
    assert answer.returncode == 0, answer.stderr[-4000:]
    filled, ended, failed, refused = map(int, answer.stdout.split())
    assert filled + ended + failed + refused == TRIES
    assert filled > TRIES // 2 and min(ended, failed, refused) > TRIES // 50, "good and bad ones were tried"
