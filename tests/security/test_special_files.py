"""Pipes, sockets and devices in place of files: a pipe would be waited for without end, a device never ends."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import penstock as ps
from commands import run_here
from penstock.storage.plain_files import open_file, read_file, read_text

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")

KINDS = {"pipe": "a pipe", "socket": "a socket", "device": "a device"}
# Long enough for a busy machine: only a command that waits for ever meets it.
WAITS_FOR_EVER = 120


def lay(kind: str, path: Path) -> Path:
    """Something special under a name."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        here = Path.cwd()
        os.chdir(path.parent)  # names of sockets may have 107 characters at most
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(path.name)
        os.chdir(here)
    return path


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "line",
    [
        ("check", "boxes", "{}.json"),
        ("check", "images", "{}.csv"),
        ("check", "images", ".", "--classes", "{}.txt"),
        ("check", "videos", "{}.mp4"),
        ("check", "videos", ".", "--labels", "{}.csv"),
        ("pack", "rasters", "{}.tif", "-o", "x.pack"),
        ("pack", "rasters", "a.tif", "--boxes", "{}.csv", "-o", "x.pack"),
        ("pack", "data", "{}.tar", "-o", "x.pack"),
        ("info", "{}.npz"),
        ("train", "{}.yaml"),
        ("train", "a.yaml", "data.path={}.pack"),
        ("evaluate", "{}.csv", "--truth", "a.csv"),
        ("report", "a.csv", "--truth", "{}.csv"),
        ("report", "a.csv", "-o", "{}.html"),
    ],
)
def test_a_path_on_the_command_line_is_named_for_what_it_is(
    line: tuple[str, ...], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    special = next(word for word in line if "{}" in word).rpartition("=")[2].format("special")
    lay(kind, tmp_path / special)
    outcome = run_here(*(word.format("special") for word in line))
    assert outcome.exit_code == ps.DataError.exit_code
    assert f"{special}: it is {KINDS[kind]}, not a file" in outcome.err and "Traceback" not in outcome.err


FOUND_IN_FOLDERS = {
    "photo": ("a/1.jpg", "check images ."),
    "annotation": ("boxes.json", "check boxes ."),
    "voc": ("1.xml", "check boxes ."),
    "yolo": ("data.yaml", "check boxes ."),
    "manifest": ("x.pack/pack.json", "info x.pack"),
    "index of mds": ("index.json", "info ."),
    "hugging face": ("dataset_info.json", "info ."),
    "parquet": ("1.parquet", "info ."),
    "tfrecord": ("1.tfrecord", "info ."),
    "tar": ("1.tar", "info ."),
    "raster": ("1.tif", "check rasters ."),
    "video": ("1.mp4", "check videos ."),
    "settings of a run": ("run/settings.yaml", "report run"),
    "metrics of a run": ("run/metrics.jsonl", "report run"),
}


@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize("where", FOUND_IN_FOLDERS)
def test_nothing_waits_for_what_is_found_in_a_folder(where: str, kind: str, tmp_path: Path) -> None:
    name, line = FOUND_IN_FOLDERS[where]
    (tmp_path / name).parent.mkdir(exist_ok=True)
    lay(kind, tmp_path / name)
    command = [sys.executable, "-m", "penstock", *line.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=WAITS_FOR_EVER)
    assert 0 < done.returncode < 70, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_readers_open_regular_files_alone(kind: str, tmp_path: Path) -> None:
    path = lay(kind, tmp_path / "special")
    for read in (open_file, read_file, read_text):
        with pytest.raises(OSError, match=f"it is {KINDS[kind]}, not a file"):
            read(path)
    with pytest.raises(IsADirectoryError):
        read_file(tmp_path)
    path.unlink()
    path.write_bytes(b"one\r\ntwo\n")
    assert read_file(path) == b"one\r\ntwo\n"
    assert read_text(path) == "one\ntwo\n"
