"""Files appear whole or not at all, under names that nobody can foresee, and what a killed process left goes away."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.storage import whole_files
from penstock.storage.whole_files import whole_file, write_whole

pytestmark = pytest.mark.skipif(os.name != "posix", reason="locks of folders are those of POSIX")

KILLED = """
import os, signal, sys
from penstock.storage.whole_files import whole_file
with whole_file(sys.argv[1]) as partial:
    partial.write_text("half")
    print(partial, flush=True)
    if sys.argv[2] == "waits":
        sys.stdin.read()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def start(path: Path, how: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", KILLED, str(path), how]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_what_a_killed_process_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    child = start(tmp_path / "page.html", "dies")
    child.communicate()
    assert child.returncode == -signal.SIGKILL
    assert [path.name[:10] for path in tmp_path.iterdir()] == [".page.html"]
    write_whole(tmp_path / "other.html", "whole")
    assert [path.name for path in tmp_path.iterdir()] == ["other.html"]


def test_what_a_living_process_writes_is_left_alone(tmp_path: Path) -> None:
    child = start(tmp_path / "page.html", "waits")
    assert child.stdout is not None
    partial = Path(child.stdout.readline().strip())
    write_whole(tmp_path / "other.html", "whole")
    assert partial.read_text() == "half"
    child.communicate()


def test_folders_of_others_are_left_alone(tmp_path: Path) -> None:
    for name in (".page.html.partial", "page.abcd1234.partial", ".page.ABCD1234.partial", ".page.html.abcd1234.part"):
        (tmp_path / name).mkdir()
    (tmp_path / ".file.abcd1234.partial").write_text("a file")
    (tmp_path / "kept").mkdir()
    (tmp_path / ".link.abcd1234.partial").symlink_to("kept")
    before = sorted(tmp_path.iterdir())
    write_whole(tmp_path / "page.html", "whole")
    assert sorted(tmp_path.iterdir()) == sorted([*before, tmp_path / "page.html"])


def test_names_cannot_be_foreseen_and_nobody_else_may_enter(tmp_path: Path) -> None:
    names = set()
    for _ in range(20):
        with whole_file(tmp_path / "page.html") as partial:
            names.add(partial.parent.name)
            assert stat.S_IMODE(partial.parent.stat().st_mode) == 0o700
            partial.write_text("whole")
    assert len(names) == 20
    assert all(re.fullmatch(r"\.page\.html\.[a-z0-9_]{8}\.partial", name) for name in names)
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_a_file_has_the_mode_that_the_umask_gives(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "page.html", "whole")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "page.html").stat().st_mode) == 0o640


def test_a_link_of_the_old_names_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / f".page.html.{os.getpid()}.partial").symlink_to(victim)
    (tmp_path / "page.html").symlink_to(victim)
    write_whole(tmp_path / "page.html", "whole")
    assert victim.read_text() == "precious"
    assert (tmp_path / "page.html").read_text() == "whole" and not (tmp_path / "page.html").is_symlink()


def test_nothing_is_left_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), whole_file(tmp_path / "page.html") as partial:
        partial.write_text("half")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_a_name_may_be_as_long_as_names_can_be(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    write_whole(path, "whole")
    assert path.read_text() == "whole"


def test_only_this_module_makes_temporary_files() -> None:
    """One mechanism for all: other ways to make them would need the same care again."""
    sources = Path(whole_files.__file__).parents[1].rglob("*.py")
    ways = re.compile(r"mkstemp|mkdtemp|NamedTemporaryFile|getpid\(\)\}")
    users = {path.name for path in sources if ways.search(path.read_text("utf-8"))}
    assert users == {"whole_files.py"}
