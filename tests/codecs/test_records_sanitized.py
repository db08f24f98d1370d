"""Damaged TFRecords, by the thousand, through the C code built with sanitizers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from penstock.codecs import kernel
from record_making import write_records

SOURCES = Path(kernel.__file__).parent / "c"
PROGRAM = Path(__file__).with_name("records_mutations.c")
TRIES = 50_000


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C code without Python, under AddressSanitizer and UndefinedBehaviorSanitizer."""
    if shutil.which("cc") is None:
        pytest.skip("there is no compiler")
    target = tmp_path_factory.mktemp("sanitized") / "records_mutations"
    files = [*(str(SOURCES / name) for name in ("crc32c.c", "example_records.c", "records.c")), str(PROGRAM)]
    checks = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
    flags = ["-std=c99", "-O1", "-g", "-Wall", "-Wextra", "-Werror", f"-I{SOURCES}"]
    answer = subprocess.run(["cc", *flags, *checks, *files, "-o", str(target)], capture_output=True, text=True)
    if "cannot find" in answer.stderr:
        pytest.skip("the compiler has no sanitizers here")
    assert answer.returncode == 0, answer.stderr
    return target


@pytest.mark.slow
def test_damaged_records_never_touch_memory_that_is_not_theirs(program: Path, tmp_path: Path) -> None:
    record = {"image": bytes(range(200)), "label": [1, -1, 300], "": np.arange(5, dtype=np.float32), "other": "text"}
    seed = write_records(tmp_path / "seed.tfrecord", [record] * 9)
    answer = subprocess.run([str(program), str(TRIES), str(seed)], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr[-4000:]
    whole, damaged, read, refused = map(int, answer.stdout.split())
    assert whole + damaged == read + refused == TRIES
    assert min(whole, damaged, read, refused) > TRIES // 10, "both whole and damaged ones were tried"
