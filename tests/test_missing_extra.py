"""Without the libraries of the extra `train`, learning says the exact pip line, and everything else works."""

from __future__ import annotations

import subprocess
import sys

import pytest

import penstock as ps
from penstock.errors import LEARNING_LIBRARIES

# A finder in front that knows nothing of a library, as if it were not installed.
HIDING = """
import importlib.machinery, sys
class Hidden(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.split(".")[0] == {library!r} else super().find_spec(name, path, target)
sys.meta_path[:] = [Hidden if finder is importlib.machinery.PathFinder else finder for finder in sys.meta_path]
"""


def without(library: str, code: str) -> subprocess.CompletedProcess[str]:
    script = HIDING.format(library=library) + code
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)


def learning_names() -> list[str]:
    return [name for name, home in ps._HOMES.items() if home.startswith(ps._LEARNING)]


@pytest.mark.parametrize("library", LEARNING_LIBRARIES)
def test_names_of_learning_say_the_pip_line(library: str) -> None:
    code = f"""
import penstock as ps
for name in {learning_names()!r}:
    try:
        getattr(ps, name)
    except ps.MissingExtra as error:
        print(error)
"""
    done = without(library, code)
    lines = [f"penstock.{name} needs {library}. Run: pip install 'penstock[train]'" for name in learning_names()]
    assert done.stdout.splitlines() == lines, done.stderr


@pytest.mark.parametrize("command", [["train", "a.yaml"], ["evaluate", "a"], ["predict", "a", "b"]])
def test_commands_of_learning_say_the_pip_line(command: list[str]) -> None:
    done = without("torch", f"from penstock.cli import main; main({command!r})")
    assert done.returncode == 2
    assert "needs torch. Run: pip install 'penstock[train]'" in done.stderr and "Traceback" not in done.stderr


def test_a_recipe_is_written_without_any_of_them() -> None:
    code = "from penstock.cli import main; main(['recipe', 'images'])"
    done = without("torch", code)
    assert done.returncode == 0 and "  backbone: mobilenet_v2 " in done.stdout, done.stderr
