"""A few seconds of what `make fuzz` does for minutes."""

from __future__ import annotations

import json
import shutil
import subprocess
import warnings
from pathlib import Path

import av
import pytest
import rasterio
from tests.fuzzing import readers
from tests.fuzzing.readers import READERS, fuzz, make_compressed, make_mds_index
from tests.fuzzing.seeds import write_seeds

import penstock as ps
from penstock.codecs import kernel
from penstock.formats.checking import check
from video_making import write_video


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", READERS)
def test_damaged_files_are_told_and_samples_are_the_true_ones(name: str) -> None:
    assert fuzz(name, seed=1, is_over=lambda turn: turn >= 25) == 25


def test_an_npz_whose_list_lost_an_array_is_refused(tmp_path: Path) -> None:
    path = make_compressed(tmp_path)
    data = bytearray(path.read_bytes())
    entry = data.rfind(b"PK\1\2", 0, data.rfind(b"PK\1\2"))
    data[entry + 32] = 67  # a comment as long as the entry of the other array
    path.write_bytes(data)
    with pytest.raises(ps.DataError, match="its list has 1 arrays, and its end counts 2"):
        ps.Arrays(path)


@pytest.mark.parametrize("changed", ['["age"]', '"abc"', "5", "null", "[1, 2, 3, 4, 5, 6]"])
@pytest.mark.parametrize("name", ["column_names", "column_encodings", "column_sizes"])
def test_columns_of_mds_that_do_not_agree_are_an_error_of_the_index(name: str, changed: str, tmp_path: Path) -> None:
    path = make_mds_index(tmp_path)
    values = json.loads(path.read_text())
    values["shards"][0][name] = json.loads(changed)
    path.write_text(json.dumps(values))
    try:
        source = ps.MDS(path.parent)
        for index in range(len(source)):
            source[index]
    except ps.PenstockError:
        return
    assert name == "column_sizes" and changed.startswith("[1"), "nothing was said"


def test_a_video_frame_of_no_pixels_is_an_unreadable_frame(tmp_path: Path) -> None:
    """A header that was damaged asks for a window of no pixels."""
    from penstock.codecs.video import UnreadableVideo, Window, _cropped

    with av.open(str(write_video(tmp_path / "a.mp4", 2))) as container:
        frame = next(container.decode(video=0))
    with pytest.raises(UnreadableVideo, match="cannot be cut out"):
        _cropped(frame, Window(0, 0, 0, 8))


def test_complex_whole_numbers_of_gdal_are_named(tmp_path: Path) -> None:
    profile = {"driver": "GTiff", "width": 4, "height": 4, "count": 1, "dtype": "complex_int16"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with rasterio.open(tmp_path / "a.tif", "w", **profile):
            pass
    assert any("complex numbers" in problem.what for problem in check(ps.Rasters(tmp_path / "a.tif")).problems)


@pytest.mark.slow
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
    # Its limit of resident memory counts the peak of whoever started it: Python with all tests before this one.
    limits = ["-rss_limit_mb=0", "-malloc_limit_mb=2048"]
    command = [str(tmp_path / "fuzz"), "-runs=3000", "-seed=1", "-max_len=20000", *limits, str(tmp_path / "corpus")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
