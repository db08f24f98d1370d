"""On the way to its name a pack may be killed anywhere: what was there stays, and the next run puts all in order."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import penstock as ps
from made_sources import Pictures, folder_bytes

TESTS = Path(__file__).resolve().parents[2]
OPTIONS = {"shard_mb": 1, "size": "96x96", "codec": "png"}

# Ends itself without a word at the n-th file operation of the last steps.
CHILD = """
import os, sys
import penstock as ps
import penstock.packing.writer as writer
from made_sources import Pictures

left = [int(sys.argv[1])]

def deadly(operation):
    def run(*arguments, **options):
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), 9)
        return operation(*arguments, **options)
    return run

finish = writer._PackWriter.finish
def armed(self):
    for name in ("unlink", "rename", "rmdir", "mkdir", "open"):
        setattr(os, name, deadly(getattr(os, name)))
    finish(self)
writer._PackWriter.finish = armed
ps.pack(Pictures(160), sys.argv[2], shard_mb=1, size="96x96", codec="png", overwrite=True)
"""


def run_and_die(operation: int, path: Path) -> bool:
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    command = [sys.executable, "-c", CHILD, str(operation), str(path)]
    return subprocess.run(command, env=environment, capture_output=True).returncode == -9


@pytest.mark.slow
def test_killed_at_any_step_of_replacing_a_pack_loses_neither_the_old_nor_the_new(tmp_path: Path) -> None:
    ps.pack(Pictures(160), tmp_path / "reference.pack", **OPTIONS)
    reference = folder_bytes(tmp_path / "reference.pack")
    path = tmp_path / "home" / "one.pack"
    operation, killed = 1, True
    while killed:
        ps.pack(Pictures(20), path, overwrite=True)
        killed = run_and_die(operation, path)
        # Whatever was left, one command brings the new pack, and nothing else stays.
        if killed:
            ps.pack(Pictures(160), path, resume=True, overwrite=True, **OPTIONS)
        assert folder_bytes(path) == reference
        assert [item.name for item in path.parent.iterdir()] == ["one.pack"]
        operation += 1
    assert operation > 8


def test_the_old_pack_comes_back_when_its_replacement_never_got_the_name(tmp_path: Path) -> None:
    ps.pack(Pictures(20), tmp_path / "one.pack")
    (tmp_path / "one.pack").rename(tmp_path / ".one.pack.replaced")
    with pytest.raises(ps.PackError, match="exists already"):
        ps.pack(Pictures(30), tmp_path / "one.pack")
    assert len(ps.open(tmp_path / "one.pack")) == 20


def test_an_interrupted_replacement_is_resumed_without_starting_anew(tmp_path: Path) -> None:
    ps.pack(Pictures(20), tmp_path / "one.pack")
    with pytest.raises(ps.HopError):
        ps.pack(Pictures(200, broken=(199,)), tmp_path / "one.pack", overwrite=True, **OPTIONS)
    assert len(ps.open(tmp_path / "one.pack")) == 20
    assert len(ps.pack(Pictures(200), tmp_path / "one.pack", resume=True, **OPTIONS)) == 200


@pytest.mark.parametrize("name", ["one.pack.partial", ".one.pack.replaced"])
def test_folders_of_the_user_are_left_alone(tmp_path: Path, name: str) -> None:
    mine = tmp_path / name
    mine.mkdir()
    (mine / "precious.txt").write_text("mine")
    for options in ({}, {"overwrite": True}, {"resume": True}):
        try:
            ps.pack(Pictures(5), tmp_path / "one.pack", **options)
        except ps.PackError as error:
            assert "left alone" in str(error) or "exists already" in str(error)
        assert (mine / "precious.txt").read_text() == "mine"


def test_a_link_stays_a_link_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    link = tmp_path / "one.pack"
    link.symlink_to(tmp_path / "disk" / "real.pack")
    assert len(ps.pack(Pictures(5), link)) == 5
    assert len(ps.pack(Pictures(7), link, overwrite=True)) == 7
    assert link.is_symlink() and len(ps.open(tmp_path / "disk" / "real.pack")) == 7


def test_a_pack_stays_readable_when_the_working_directory_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pack = ps.pack(Pictures(5), "one.pack")
    monkeypatch.chdir("/")
    assert pack[3]["key"] == "pictures/3.png"
