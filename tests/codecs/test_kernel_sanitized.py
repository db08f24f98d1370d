"""Damaged JPEGs and pixels in wrong places, by the thousand, through the C code built with sanitizers."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from jpeg_making import SUBSAMPLINGS, jpeg, soft_picture, turned
from penstock.codecs import kernel

SOURCES = Path(kernel.__file__).parent / "c"
PROGRAM = Path(__file__).with_name("kernel_mutations.c")
TRIES = 20_000


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernel without Python, under AddressSanitizer and UndefinedBehaviorSanitizer."""
    if shutil.which("cc") is None or kernel.native_extension() is None:
        pytest.skip("there is no compiler, or no libjpeg-turbo to build with")
    target = tmp_path_factory.mktemp("sanitized") / "kernel_mutations"
    files = [str(path) for path in [*SOURCES.glob("*.c"), PROGRAM] if not path.name.endswith("module.c")]
    checks = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
    # Few pixels at most: a damaged header would otherwise ask for much memory, legally and slowly.
    flags = ["-std=c99", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-DPENSTOCK_MOST_PIXELS=(1L<<20)", f"-I{SOURCES}"]
    answer = subprocess.run(
        ["cc", *flags, *checks, *files, "-ljpeg", "-lm", "-o", str(target)], capture_output=True, text=True, check=False
    )
    if "cannot find" in answer.stderr:
        pytest.skip("the compiler has no sanitizers here")
    assert answer.returncode == 0, answer.stderr
    return target


@pytest.mark.slow
def test_damaged_jpegs_and_wrong_places_never_touch_memory_that_is_not_theirs(program: Path, tmp_path: Path) -> None:
    for number, subsampling in enumerate(SUBSAMPLINGS * 2):
        data = jpeg(
            soft_picture(150, 110, number), subsampling=subsampling, progressive=number % 3 == 0, restart=number % 4
        )
        (tmp_path / f"{number}.jpg").write_bytes(turned(data, number % 8 + 1))
    seeds = [str(path) for path in sorted(tmp_path.iterdir())]
    answer = subprocess.run(
        [str(program), str(TRIES), "7", *seeds],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "ASAN_OPTIONS": "detect_leaks=1"},
    )
    assert answer.returncode == 0, answer.stderr[-4000:]
    done, other, failed, pixels_done, pixels_failed = map(int, answer.stdout.split())
    assert done + other + failed == pixels_done + pixels_failed == TRIES
    assert min(done, failed) > TRIES // 10, "both good and damaged images were tried"
    assert min(pixels_done, pixels_failed) > TRIES // 10, "both good and wrong places were tried"
