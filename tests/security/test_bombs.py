"""Small files that declare much are refused at once, with little memory."""

from __future__ import annotations

import gzip
import io
import json
import struct
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml

import penstock as ps
from commands import run_here
from penstock.storage import free_memory
from penstock.storage.documents import MOST_VALUES, load_json, load_yaml
from picture_making import write_picture

ALIASES = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)


def npy_header(shape: str, dtype: str = "|u1") -> bytes:
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text


def test_an_npz_that_declares_far_more_than_it_has_is_refused_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("images.npy", "w") as member:
        member.write(npy_header("(600, 1000, 1000)"))
        for _ in range(600):
            member.write(bytes(1_000_000))
    assert path.stat().st_size < 1 << 20
    code = (
        "import sys, tracemalloc, penstock as ps\n"
        "tracemalloc.start()\n"
        "try: ps.Arrays(sys.argv[1])\n"
        "except ps.DataError as error: print(error)\n"
        "print(tracemalloc.get_traced_memory()[1])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    message, peak = done.stdout.splitlines()
    assert "500 times as many" in message
    assert int(peak) < 50 << 20  # the array would have 600 MB, and numpy tells tracemalloc


def test_an_npz_larger_than_half_of_the_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = np.random.default_rng(0).integers(0, 2, (40, 100, 100, 3), np.uint8)
    np.savez_compressed(tmp_path / "a.npz", images=noise)
    monkeypatch.setattr(free_memory, "SMALL_BYTES", 1000)
    assert len(ps.Arrays(tmp_path / "a.npz")) == 40
    monkeypatch.setattr(free_memory, "free_bytes", lambda: 1_000_000)
    with pytest.raises(ps.DataError, match="more than half of the memory"):
        ps.Arrays(tmp_path / "a.npz")


@pytest.mark.parametrize(
    "header",
    [
        npy_header("(1000000, 1000, 1000)"),
        npy_header("(99999999999999999999999999, 9999999999999999999)"),
        npy_header("(-3, 4)"),
        npy_header("(" * 60),
        npy_header("("),
        npy_header("(3, 'a'"),
        npy_header("(3,)", "|O"),
        npy_header("(3,)", "<x9"),
        b"\x93NUMPY\x01\0\xff\xff{'descr':",
        b"\x93NUMPY\x09\0",
        b"",
    ],
)
def test_a_npy_header_that_cannot_be_true_is_a_clear_error(tmp_path: Path, header: bytes) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(header + bytes(100))
    with pytest.raises(ps.DataError, match=r"a\.npy"):
        ps.Arrays(path)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("images.npy", header + bytes(100))
    with pytest.raises(ps.DataError, match=r"a\.npz"):
        ps.Arrays(tmp_path / "a.npz")


def test_a_npy_in_a_tar_that_declares_800_gigabytes_is_a_bad_sample(tmp_path: Path) -> None:
    picture = write_picture(tmp_path / "p.png").read_bytes()
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for name, data in (
            ("0.png", picture),
            ("0.vector.npy", npy_header("(3,)") + bytes(3)),
            ("1.png", picture),
            ("1.vector.npy", npy_header("(800000, 1000000)")),
        ):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    assert ps.WebDataset(tmp_path / "a.tar")[0]["vector"].tolist() == [0, 0, 0]
    outcome = run_here("pack", "data", tmp_path / "a.tar", "-o", tmp_path / "a.pack")
    assert outcome.exit_code == 3, outcome
    assert "npy header says 800,000,000,000 bytes" in outcome.err


def test_a_gzip_of_zeros_is_refused_before_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free_memory, "SMALL_BYTES", 10 << 20)
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    with gzip.open(tmp_path / "a.tar.gz", "wb") as file:
        for _ in range(100):
            file.write(bytes(1 << 20))
    with pytest.raises(ps.DataError, match="500 times as many"):
        ps.WebDataset(tmp_path / "a.tar.gz")
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_yaml_aliases_that_stand_for_thousands_of_millions_are_refused() -> None:
    with pytest.raises(yaml.YAMLError, match=f"more than {MOST_VALUES:,} values"):
        load_yaml(ALIASES + "names: *a9\n")
    with pytest.raises(yaml.YAMLError, match="stands for itself"):
        load_yaml("a: &a [*a]\n")
    assert load_yaml("a: &x [1, 2]\nb: *x\n") == {"a": [1, 2], "b": [1, 2]}


def yolo_folder(folder: Path, text: str) -> tuple[object, ...]:
    write_picture(folder / "images" / "a.png")
    (folder / "labels").mkdir()
    (folder / "labels" / "a.txt").write_text("0 .5 .5 .2 .2\n")
    (folder / "data.yaml").write_text(text)
    return "check", "boxes", folder


def project(folder: Path, text: str) -> tuple[object, ...]:
    (folder / "project_config.yaml").write_text(text)
    return "check", "project", folder


def recipe(folder: Path, text: str) -> tuple[object, ...]:
    (folder / "r.yaml").write_text(text)
    return "train", folder / "r.yaml"


def run_folder(folder: Path, text: str) -> tuple[object, ...]:
    (folder / "settings.yaml").write_text(text)
    return "report", folder


@pytest.mark.parametrize("make", [yolo_folder, project, recipe, run_folder])
@pytest.mark.parametrize(
    "text", [ALIASES + "names: *a9\n", "[" * 5000, "a: " * 5000, "names: !!python/object/apply:os.getcwd []"]
)
def test_no_yaml_ends_in_a_traceback(
    tmp_path: Path, make: Callable[[Path, str], tuple[object, ...]], text: str
) -> None:
    outcome = run_here(*make(tmp_path, text))
    assert outcome.exit_code in (1, 2, 3, 4), outcome
    assert "Traceback" not in outcome.err
    assert "bug" not in outcome.err


def test_json_that_is_nested_deeply_is_a_clear_error(tmp_path: Path) -> None:
    deep = "[" * 200_000
    with pytest.raises(json.JSONDecodeError, match="nested too deeply"):
        load_json(deep)
    (tmp_path / "coco.json").write_text('{"images": ' + deep)
    outcome = run_here("check", "boxes", tmp_path / "coco.json")
    assert outcome.exit_code in (1, 3)
    assert "nested too deeply" in outcome.out + outcome.err
