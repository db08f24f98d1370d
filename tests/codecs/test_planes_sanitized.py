"""Frames of all sizes, and numbers that do not belong to them, through the C code built with sanitizers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from penstock.codecs import kernel

SOURCES = Path(kernel.__file__).parent / "c"
PROGRAM = Path(__file__).with_name("planes_mutations.c")
TRIES = 4_000
CHECKS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")


def built(target: Path, *flags: str) -> Path:
    """The C code without Python."""
    if shutil.which("cc") is None:
        pytest.skip("there is no compiler")
    files = [*map(str, sorted(SOURCES.glob("plane*.c"))), str(PROGRAM)]
    common = ["-std=c99", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", f"-I{SOURCES}"]
    answer = subprocess.run(["cc", *common, *flags, *files, "-o", str(target)], capture_output=True, text=True)
    if "cannot find" in answer.stderr:
        pytest.skip("the compiler has no sanitizers here")
    assert answer.returncode == 0, answer.stderr
    return target


def counted(program: Path) -> list[int]:
    answer = subprocess.run([str(program), str(TRIES)], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr[-4000:]
    return [int(number) for number in answer.stdout.split()]


@pytest.mark.slow
def test_no_size_and_no_number_leads_to_memory_that_is_not_the_frames(tmp_path: Path) -> None:
    made, refused, _ = counted(built(tmp_path / "sanitized", *CHECKS))
    assert made + refused == TRIES
    assert min(made, refused) > TRIES // 10, "both good and bad ones were tried"


def test_the_code_for_every_processor_makes_the_same_pixels(tmp_path: Path) -> None:
    assert counted(built(tmp_path / "plain", "-U__SSE2__", *CHECKS)) == counted(built(tmp_path / "fast"))
