"""A hint speaks the language of the surface: arguments in Python, options on the command line."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import penstock as ps
from commands import run_here
from penstock.cli.wording import in_command_words
from picture_making import write_picture

SOURCE = Path(ps.__file__).parent
# Messages that are whole commands to type, or that only a command prints. A text that is nothing but an option is a
# piece of a command as well.
COMMANDS = re.compile(r"penstock |pip install|nvidia-smi|--json lists all|^--from |--query-gpu|--format=csv")
# Styles of pages are full of names that begin so.
PAGES = ("page_style.py", "timelines.py", "heat_maps.py", "markup.py", "classes.py")
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]+|-o)(?![\w(:])")


def texts_of(path: Path) -> list[str]:
    """Every text of a module but its docstrings; those of an f-string as they stand."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docs]
    return [node.value for node in nodes if isinstance(node.value, str)]


def test_no_text_outside_of_the_command_line_names_an_option() -> None:
    spoken = [
        f"{path.relative_to(SOURCE)}: {text}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path.relative_to(SOURCE).parts[0] != "cli" and path.name not in PAGES
        for text in texts_of(path)
        if OPTION.search(text) and not COMMANDS.search(text) and not text.strip().startswith("-")
    ]
    assert not spoken, "write the argument (overwrite=True): cli/wording.py makes the option of it"


@pytest.mark.parametrize(
    ("python", "command"),
    [
        ("Pass overwrite=True to replace it.", "Pass --overwrite to replace it."),
        ("run again with resume=True.", "run again with --resume."),
        ("pass on_bad_sample='skip' to leave it out.", "pass --on-bad-sample skip to leave it out."),
        ("Pass size='WIDTHxHEIGHT', or", "Pass --size WIDTHxHEIGHT, or"),
        ("or pass allow_outside=True.", "or pass --allow-outside."),
        ("task.size=fast", "task.size=fast"),
    ],
)
def test_arguments_become_options(python: str, command: str) -> None:
    assert in_command_words(python) == command


def test_one_error_in_the_words_of_both_surfaces(tmp_path: Path) -> None:
    write_picture(tmp_path / "in" / "a.png")
    ps.pack(ps.Images(tmp_path / "in"), tmp_path / "a.pack")
    with pytest.raises(ps.PackError, match="Pass overwrite=True to replace it, or choose another path") as raised:
        ps.pack(ps.Images(tmp_path / "in"), tmp_path / "a.pack")
    assert "--overwrite" not in str(raised.value) and " -o" not in str(raised.value)
    refused = run_here("pack", "images", tmp_path / "in", "-o", tmp_path / "a.pack")
    assert "Pass --overwrite to replace it" in refused.err and "overwrite=True" not in refused.err
