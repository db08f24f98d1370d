"""Links that somebody laid where Penstock writes: they are not followed, and what they point to stays as it is."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from commands import run_here
from made_sources import Pictures


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder of somebody else, that looks like unfinished work."""
    folder = tmp_path / "elsewhere"
    (folder / "pack").mkdir(parents=True)
    for name in ("plan.json", "pack/precious", "pack.json", "precious"):
        (folder / name).write_text("precious")
    return folder


def content(folder: Path) -> list[tuple[str, str]]:
    return sorted((str(path), path.read_text()) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", ["p.pack.partial", ".p.pack.replaced"])
@pytest.mark.parametrize("how", [{"resume": True}, {"overwrite": True}, {}])
def test_a_workshop_that_is_a_link_is_refused(name: str, how: dict[str, Any], tmp_path: Path, elsewhere: Path) -> None:
    (tmp_path / name).symlink_to(elsewhere)
    before = content(elsewhere)
    with pytest.raises(ps.PackError, match="in the way and not ours"):
        ps.pack(Pictures(5), tmp_path / "p.pack", progress=False, **how)
    assert content(elsewhere) == before


def test_a_lock_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".p.pack.lock").symlink_to(tmp_path / "made by us")
    with pytest.raises(ps.PackError, match="is a link and not ours"):
        ps.pack(Pictures(5), tmp_path / "p.pack", progress=False)
    assert not (tmp_path / "made by us").exists()


@pytest.mark.parametrize("verb", ["pack", "export"])
def test_a_link_that_leads_back_to_itself_is_said_to(verb: str, tmp_path: Path) -> None:
    data = ps.pack(Pictures(5), tmp_path / "p.pack", progress=False).path
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    line = ("pack", "data", data) if verb == "pack" else ("export", data, "--to", "csv")
    outcome = run_here(*line, "-o", tmp_path / "a")
    assert outcome.exit_code == 4
    assert "leads back to itself" in outcome.err and "Traceback" not in outcome.err


def test_an_output_that_is_deleted_meanwhile_is_said_to_be(tmp_path: Path) -> None:
    class Deleting(Pictures):
        def read(self, index: int) -> ps.Raw:
            if index == 30:
                shutil.rmtree(tmp_path / "p.pack.partial")
            return super().read(index)

    with pytest.raises(ps.PackError, match="was removed while it was being written to"):
        ps.pack(Deleting(40), tmp_path / "p.pack", workers=1, progress=False)
    assert not (tmp_path / "p.pack").exists()


def test_packs_are_as_open_to_others_as_the_umask_says(tmp_path: Path) -> None:
    pack = ps.pack(Pictures(5), tmp_path / "p.pack", progress=False).path
    assert stat.S_IMODE(pack.stat().st_mode) & 0o022 == 0
    for file in pack.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) & 0o133 == 0
