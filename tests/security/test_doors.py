"""Libraries that open what stands in a file are used in one place each, where they are told what they may do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import penstock as ps

SOURCE = Path(ps.__file__).parent

# What opens files, and the only modules that may; writing our own files is no danger.
DOORS = {
    r"\brasterio\.open\(": ("codecs/map_files.py", "cli/demo_data.py"),
    r"\b(pyogrio|geopandas|gpd)\.(read_file|read_dataframe|read_info|list_layers|open_arrow)\(": (
        "codecs/map_files.py",
    ),
    r"\bav\.open\(": ("codecs/video.py", "cli/demo_animals.py"),
    r"\bjson\.loads?\(": (
        "storage/documents.py",
        "flow/workers/child.py",
        "storage/writing/journal.py",
        "formats/numpy/numpy_writer.py",
    ),
    r"\byaml\.(safe_)?(load|load_all|full_load|unsafe_load)\(": ("storage/documents.py",),
    r"\bh5py\.File\((?!.*\"w\")": ("formats/hdf5/hdf5_doors.py",),
    r"\bcv2\.(imdecode|imread|VideoCapture)\(": ("codecs/images.py",),
    r"\.(read_text|read_bytes)\(|\.open\(\"rb\"": (
        "flow/tuning/remembering.py",  # the rest: the system's own files, and what this process wrote
        "flow/tuning/cores.py",
        "training/staged.py",
        "formats/numpy/numpy_writer.py",
        "formats/numpy/npy_writer.py",
        "storage/free_memory.py",
        "diagnosis/hardware.py",
        "diagnosis/reading.py",
    ),
    r"(?<![\w.])(eval|exec)\(": (),
    r"\b__import__\(": (),
}


@pytest.mark.parametrize("call", DOORS)
def test_every_library_has_one_door(call: str) -> None:
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if re.search(call, path.read_text(encoding="utf-8"))
    }
    assert found <= set(DOORS[call])
