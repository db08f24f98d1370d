"""Settings are remembered for a plan on a machine, and nothing depends on the memory."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from penstock.flow.tuning import remembering
from penstock.flow.tuning.allocating import Settings
from penstock.flow.tuning.remembering import Found, Remembered, cache_folder

FOUND = Found(3, 4, 16, "thread")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def of_plan(name: str) -> Remembered:
    return Remembered(lambda: name)


def test_what_was_written_is_read_by_the_same_plan_alone() -> None:
    of_plan("a").write(Settings(3, 4, 16), "thread")
    assert of_plan("a").read() == FOUND
    assert of_plan("b").read() is None


def test_another_machine_measures_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    of_plan("a").write(Settings(3, 4, 16), "thread")
    monkeypatch.setattr(remembering, "cores", lambda: 61)
    assert of_plan("a").read() is None


def test_tasks_that_follow_from_the_workers_are_remembered_as_such() -> None:
    of_plan("a").write(Settings(3, 4, None), "process")
    assert of_plan("a").read() == Found(3, 4, None, "process")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"version": 2, "workers": 3, "prefetch": 4, "task_rows": 16, "executor": "thread"}',
        '{"version": 1, "workers": 0, "prefetch": 4, "task_rows": 16, "executor": "thread"}',
        '{"version": 1, "workers": 100000, "prefetch": 4, "task_rows": 16, "executor": "thread"}',
        '{"version": 1, "workers": 3, "prefetch": "4", "task_rows": 16, "executor": "thread"}',
        '{"version": 1, "workers": 3, "prefetch": 4, "task_rows": true, "executor": "thread"}',
        '{"version": 1, "workers": 3, "prefetch": 4, "task_rows": 16, "executor": "magic"}',
        '{"version": 1, "workers": 3, "prefetch": 4, "task_rows": 16}',
        "\x00\x01",
    ],
)
def test_a_broken_file_is_noted_and_measured_again(text: str) -> None:
    memory = of_plan("a")
    memory.path.parent.mkdir(parents=True)
    memory.path.write_text(text)
    assert memory.read() is None
    assert memory.note is not None and "measured again" in memory.note
    memory.write(Settings(3, 4, 16), "thread")
    assert of_plan("a").read() == FOUND


def test_bytes_that_are_no_text_are_noted() -> None:
    memory = of_plan("a")
    memory.path.parent.mkdir(parents=True)
    memory.path.write_bytes(b"\xff\xfe\xff")
    assert memory.read() is None
    assert memory.note is not None


def test_a_folder_that_cannot_be_written_is_noted(folder: Path) -> None:
    folder.write_text("a file where the folder should be")
    memory = of_plan("a")
    assert memory.read() is None
    memory.write(Settings(3, 4, 16), "thread")
    assert memory.note is not None and "could not be remembered" in memory.note


def test_a_write_leaves_one_whole_file(folder: Path) -> None:
    memory = of_plan("a")
    memory.write(Settings(3, 4, 16), "thread")
    memory.write(Settings(2, 4, 16), "thread")
    (path,) = (folder / "settings").iterdir()
    assert json.loads(path.read_text())["workers"] == 2


def test_a_write_that_fails_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    memory = of_plan("a")
    memory.write(Settings(3, 4, 16), "thread")
    assert list((folder / "settings").iterdir()) == []
    assert memory.note is not None and "No space left" in memory.note


def test_only_some_hundred_plans_are_remembered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembering, "MOST_FILES", 3)
    for number in range(6):
        memory = of_plan(str(number))
        memory.write(Settings(3, 4, 16), "thread")
        os.utime(memory.path, (number, number))
    left = [number for number in range(6) if of_plan(str(number)).read() is not None]
    assert left == [3, 4, 5]


def test_the_folder_is_the_users_cache(monkeypatch: pytest.MonkeyPatch, folder: Path, tmp_path: Path) -> None:
    assert cache_folder() == folder
    monkeypatch.delenv("PENSTOCK_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "penstock"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home" / ".cache" / "penstock"
