"""A hint speaks the language of the surface: arguments in Python, options on the command line."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import click
import cv2
import numpy as np
import pytest

import penstock as ps
from cli.test_options import COMMANDS, options_of
from commands import run_here
from penstock.cli import penstock
from penstock.cli.wording import in_command_words, spellings_of
from penstock.recipes.sections import legal_keys, task_kinds
from picture_making import write_picture

SOURCE = Path(ps.__file__).parent
# Messages that are whole commands to type, or that only a command prints. A text that is nothing but an option is a
# piece of a command as well.
WHOLE_COMMANDS = re.compile(r"penstock |pip install|nvidia-smi|--json lists all|^--from |--query-gpu|--format=csv")
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
        if OPTION.search(text) and not WHOLE_COMMANDS.search(text) and not text.strip().startswith("-")
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
        ("more memory (memory=…), or", "more memory (--memory …), or"),
        ("pass sync=False.", "pass --no-sync."),
        ("task.size=fast", "task.size=fast"),
    ],
)
def test_arguments_become_options(python: str, command: str) -> None:
    assert in_command_words(python, spellings_of(penstock, ["pack", "images", "pets"])) == command


@pytest.mark.parametrize(
    ("python", "command"),
    [
        ("more memory (memory=…), or", "more memory (feed.memory=…), or"),
        ("pass on_bad_sample='substitute' to", "pass feed.on_bad_sample=substitute to"),
        ("Pass augmentation=False.", "Pass task.augmentation=false."),
        ("Pass units='frames'.", "Pass data.options.units=frames."),
        ("Pass epochs=3", "Pass train.epochs=3"),
        ("data.val=none", "data.val=none"),
    ],
)
def test_arguments_become_keys_where_a_recipe_is_taken(python: str, command: str) -> None:
    assert in_command_words(python, spellings_of(penstock, ["train", "pets.yaml"])) == command


def test_a_list_becomes_an_option_for_each() -> None:
    spellings = spellings_of(penstock, ["predict"])
    assert in_command_words("Pass allow_drivers=['VRT', 'MEM'].", spellings) == (
        "Pass --allow-driver VRT --allow-driver MEM."
    )


def test_what_a_command_has_no_word_for_stays_as_it_is() -> None:
    assert in_command_words("Pass overwrite=True.", spellings_of(penstock, ["verify"])) == "Pass overwrite=True."


LEAVES = [name for name, command in COMMANDS.items() if not isinstance(command, click.Group)]


@pytest.mark.parametrize("name", LEAVES)
def test_every_option_of_a_command_is_said_as_the_command_spells_it(name: str) -> None:
    spellings = spellings_of(penstock, name.split()[1:])
    for option in options_of(name).values():
        said = in_command_words(f"Use {option.name}=… here.", spellings)
        flag = said.removeprefix("Use ").removesuffix(" … here.")
        assert flag in option.opts, said
        if option.is_flag:
            assert in_command_words(f"Use {option.name}=True here.", spellings) == f"Use {flag} here."


@pytest.mark.parametrize("name", ["penstock train", "penstock doctor"])
@pytest.mark.parametrize("kind", task_kinds())
def test_every_key_of_a_recipe_is_said_with_its_section(name: str, kind: str) -> None:
    spellings = spellings_of(penstock, name.split()[1:])
    own = set(options_of(name))
    for section, key in legal_keys(kind):
        said = in_command_words(f"Use {key}=… here.", spellings)
        sections = {section for other in task_kinds() for section, one in legal_keys(other) if one == key}
        if key not in own and len(sections) == 1:
            assert said == f"Use {section}.{key}=… here."


def test_an_image_that_is_too_large_names_the_option_for_more_memory(tmp_path: Path) -> None:
    tmp_path.joinpath("in").mkdir()
    row = np.random.default_rng(0).integers(0, 255, (1, 6000, 3), dtype=np.uint8)
    cv2.imwrite(str(tmp_path / "in" / "a.png"), np.repeat(row, 6000, axis=0))
    refused = run_here(
        "pack", "images", tmp_path / "in", "-o", tmp_path / "a.pack", "--memory", "1 MB", "--longest-side", "64"
    )
    assert "(--memory …)" in refused.err and "memory=" not in refused.err


def test_one_error_in_the_words_of_both_surfaces(tmp_path: Path) -> None:
    write_picture(tmp_path / "in" / "a.png")
    ps.pack(ps.Images(tmp_path / "in"), tmp_path / "a.pack")
    with pytest.raises(ps.PackError, match="Pass overwrite=True to replace it, or choose another path") as raised:
        ps.pack(ps.Images(tmp_path / "in"), tmp_path / "a.pack")
    assert "--overwrite" not in str(raised.value) and " -o" not in str(raised.value)
    refused = run_here("pack", "images", tmp_path / "in", "-o", tmp_path / "a.pack")
    assert "Pass --overwrite to replace it" in refused.err and "overwrite=True" not in refused.err
