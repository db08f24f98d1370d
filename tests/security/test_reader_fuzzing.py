"""A few seconds of what `make fuzz` does for minutes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.fuzzing import readers
from tests.fuzzing.readers import READERS, fuzz
from tests.fuzzing.seeds import write_seeds

from penstock.codecs import kernel


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", READERS)
def test_damaged_files_are_told_and_samples_are_the_true_ones(name: str) -> None:
    assert fuzz(name, seed=1, is_over=lambda turn: turn >= 25) == 25


def test_the_c_code_survives_a_few_seconds_of_any_bytes(tmp_path: Path) -> None:
    if shutil.which("clang") is None:
        pytest.skip("clang is not installed")
    sources = Path(kernel.__file__).parent / "c"
    files = [path for path in sources.glob("*.c") if not path.name.endswith("module.c")]
    flags = [
        "-std=c99",
        "-O1",
        "-DPENSTOCK_MOST_PIXELS=(1L<<20)",
        f"-I{sources}",
        "-fsanitize=fuzzer,address,undefined",
    ]
    program = [*map(str, files), str(Path(readers.__file__).with_name("c_entries.c")), "-ljpeg", "-lm"]
    built = subprocess.run(["clang", *flags, *program, "-o", str(tmp_path / "fuzz")], capture_output=True, text=True)
    if "cannot find" in built.stderr or "file not found" in built.stderr:
        pytest.skip("the compiler has no sanitizers, or libjpeg is not here")
    assert built.returncode == 0, built.stderr
    write_seeds(tmp_path / "corpus")
    command = [str(tmp_path / "fuzz"), "-runs=3000", "-seed=1", "-max_len=20000", str(tmp_path / "corpus")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
