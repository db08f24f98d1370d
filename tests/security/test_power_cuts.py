"""Everything is on the disk before it has its name: what a power cut would otherwise take."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import penstock as ps
from commands import INSTALLED
from made_sources import Pictures

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
pytestmark = pytest.mark.skipif(
    COMPILER is None or not sys.platform.startswith("linux"), reason="a C compiler makes the library between"
)

# Stands between the program and the system: writes down what is synced and renamed, or fails.
BETWEEN = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static void note(const char *what, const char *path)
{
    char line[9000];
    int length = snprintf(line, sizeof line, "%s %s\n", what, path);
    int log = open(getenv("BETWEEN_LOG"), O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (write(log, line, length) < 0)
        abort();
    close(log);
}

int fsync(int descriptor)
{
    char name[64], path[4096] = {0};
    snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
    if (readlink(name, path, sizeof path - 1) < 0)
        abort();
    note("fsync", path);
    const char *fails = getenv("BETWEEN_FAILS");
    if (fails != NULL && strstr(path, fails) != NULL) {
        errno = EIO;
        return -1;
    }
    return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(descriptor);
}

int rename(const char *from, const char *to)
{
    note("rename", to);
    return ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename"))(from, to);
}

int flock(int descriptor, int operation)
{
    if (getenv("BETWEEN_LOCKLESS") != NULL) {
        errno = ENOLCK;
        return -1;
    }
    return ((int (*)(int, int))dlsym(RTLD_NEXT, "flock"))(descriptor, operation);
}
"""


@pytest.fixture(scope="session")
def between(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("between")
    (folder / "between.c").write_text(BETWEEN)
    command = [str(COMPILER), "-shared", "-fPIC", "-o", "between.so", "between.c", "-ldl"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "between.so"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ps.pack(Pictures(40), tmp_path_factory.mktemp("data") / "data.pack", progress=False).path


def run(between: Path, folder: Path, *arguments: object, **environment: str) -> tuple[int, str, list[str]]:
    """A command with the library between; its code, its words, and what was synced and renamed, in order."""
    log = folder / "log"
    log.unlink(missing_ok=True)
    done = subprocess.run(
        [str(INSTALLED), *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "LD_PRELOAD": str(between), "BETWEEN_LOG": str(log), **environment},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stderr, log.read_text().splitlines() if log.exists() else []


@pytest.mark.parametrize("verb", ["pack", "export"])
def test_every_file_and_the_folder_are_synced_before_the_name_is_given(
    verb: str, between: Path, data: Path, tmp_path: Path
) -> None:
    line = ("pack", "data", data) if verb == "pack" else ("export", data, "--to", "tfrecord")
    code, words, log = run(between, tmp_path, *line, "-o", "out")
    assert code == 0, words
    given = log.index("rename out") if "rename out" in log else log.index(f"rename {tmp_path / 'out'}")
    content = tmp_path / "out.partial" / verb
    synced = {entry.removeprefix("fsync ") for entry in log[:given] if entry.startswith("fsync")}
    files = {str(content / path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*")}
    assert len(files) >= 3
    assert files | {str(content)} <= synced
    assert f"fsync {tmp_path}" in log[given:]


@pytest.mark.parametrize("verb", ["pack", "export"])
def test_scratch_disks_need_no_sync(verb: str, between: Path, data: Path, tmp_path: Path) -> None:
    line = ("pack", "data", data) if verb == "pack" else ("export", data, "--to", "tfrecord")
    code, words, log = run(between, tmp_path, *line, "--no-sync", "-o", "out")
    assert code == 0, words
    assert not [entry for entry in log if entry.startswith("fsync")]


@pytest.mark.parametrize("file", ["shard-00000.arrow", "index.arrow", "pack.json", "out.partial/pack"])
def test_a_disk_that_fails_to_sync_leaves_no_pack(file: str, between: Path, data: Path, tmp_path: Path) -> None:
    code, words, _ = run(between, tmp_path, "pack", "data", data, "-o", "out", BETWEEN_FAILS=file)
    assert code == 3
    assert "Input/output error" in words and "The disk failed" in words
    assert not (tmp_path / "out").exists()
    code, words, _ = run(between, tmp_path, "pack", "data", data, "-o", "out", "--resume")
    assert code == 0, words
    ps.Pack(tmp_path / "out").verify()


def test_a_disk_without_locks_is_said_and_leaves_nothing(between: Path, data: Path, tmp_path: Path) -> None:
    code, words, _ = run(between, tmp_path, "pack", "data", data, "-o", "out", BETWEEN_LOCKLESS="1")
    assert code == 4
    assert ".out.lock cannot be locked: No locks available" in words and "another disk" in words
    assert [path.name for path in tmp_path.iterdir()] == []


def test_files_are_written_whole_on_a_disk_without_locks(between: Path, tmp_path: Path) -> None:
    program = "from penstock.storage.whole_files import write_whole; write_whole('page.html', 'whole')"
    environment = {"LD_PRELOAD": str(between), "BETWEEN_LOG": str(tmp_path / "log"), "BETWEEN_LOCKLESS": "1"}
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env={**os.environ, **environment}, check=True)
    assert (tmp_path / "page.html").read_text() == "whole"
    assert {path.name for path in tmp_path.iterdir()} == {"page.html", "log"}
