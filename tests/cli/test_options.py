"""The command line has the options of Python: same names, same defaults, each with a line of help."""

from __future__ import annotations

import dataclasses
import inspect
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import penstock as ps
from commands import run_installed
from penstock.cli import HOMES, penstock
from penstock.cli.options import SKIPPED_PACK_OPTIONS
from penstock.packing.options import PackOptions
from penstock.prediction.behaviour.options import EthogramOptions
from penstock.prediction.boxes.options import FindingOptions

KINDS: dict[str, type[Any]] = {"images": ps.Images, "boxes": ps.Boxes, "rasters": ps.Rasters, "videos": ps.Videos}
LOOK_OPTIONS = {"decode", "as_json"}
RUN_OPTIONS = {"resume", "overwrite", "quiet", "output", "as_json"}


def commands(group: click.Group = penstock, name: str = "penstock") -> Iterator[tuple[str, click.Command]]:
    """Every command with its full name, groups included."""
    context = click.Context(group)
    for each in group.list_commands(context):
        command = group.get_command(context, each)
        assert command is not None
        yield f"{name} {each}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{name} {each}")


COMMANDS = dict(commands())


def options_of(name: str) -> dict[str, click.Option]:
    return {option.name or "": option for option in COMMANDS[name].params if isinstance(option, click.Option)}


def keywords_of(kind: type[Any]) -> dict[str, Any]:
    parameters = inspect.signature(kind).parameters.values()
    return {each.name: each.default for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY}


def test_the_commands_are_those_of_the_contract() -> None:
    verbs = {"check", "pack", "export", "doctor", "train", "evaluate", "predict", "report"}
    assert set(HOMES) == verbs | {"info", "show", "verify", "recipe", "demo"}
    for group in ("check", "pack"):
        kinds = {name.split()[-1] for name in COMMANDS if name.startswith(f"penstock {group} ")}
        assert kinds == {*KINDS, "data", "deepethogram"}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_has_a_line_of_help(name: str) -> None:
    assert COMMANDS[name].help
    for option in options_of(name).values():
        assert option.help, f"{name} {option.opts} says nothing"


@pytest.mark.parametrize("name", HOMES)
def test_the_list_of_commands_is_not_cut_off(name: str) -> None:
    page = penstock.get_help(click.Context(penstock, info_name="penstock"))
    assert f"{HOMES[name][1]}\n" in page + "\n"


@pytest.mark.parametrize("kind", KINDS)
def test_check_has_the_options_of_its_source(kind: str) -> None:
    options = options_of(f"penstock check {kind}")
    assert set(options) - LOOK_OPTIONS == set(keywords_of(KINDS[kind]))


@pytest.mark.parametrize("kind", KINDS)
def test_pack_has_the_options_of_its_source_and_of_packing(kind: str) -> None:
    skipped = set(SKIPPED_PACK_OPTIONS.get(KINDS[kind].__name__, ()))
    packing = {field.name for field in dataclasses.fields(PackOptions)} - skipped
    assert set(options_of(f"penstock pack {kind}")) - RUN_OPTIONS == packing | set(keywords_of(KINDS[kind]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("verb", ["check", "pack"])
def test_defaults_are_those_of_python(verb: str, kind: str) -> None:
    packing = {field.name: field.default for field in dataclasses.fields(PackOptions)} if verb == "pack" else {}
    expected = {**packing, **keywords_of(KINDS[kind])}
    context = click.Context(COMMANDS[f"penstock {verb} {kind}"])
    for name, option in options_of(f"penstock {verb} {kind}").items():
        if name not in LOOK_OPTIONS | RUN_OPTIONS:
            assert option.get_default(context) == expected[name], name


@pytest.mark.parametrize("name", [name for name in COMMANDS if name.startswith("penstock pack ")])
def test_options_are_spelt_like_keywords(name: str) -> None:
    for keyword, option in options_of(name).items():
        assert "--" + keyword.removeprefix("as_").replace("_", "-") in option.opts


def test_choices_are_those_that_python_accepts() -> None:
    for kind, source in KINDS.items():
        for name, option in options_of(f"penstock pack {kind}").items():
            if isinstance(option.type, click.Choice) and name in {
                field.name for field in dataclasses.fields(PackOptions)
            }:
                for choice in option.type.choices:
                    assert getattr(PackOptions(**{name: choice}), name) == choice, (source, name)


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from penstock.cli import penstock; "
        "penstock.main(['--help'], standalone_mode=False); "
        "print([n for n in ('numpy', 'pyarrow', 'cv2', 'pandas', 'rich', 'av', 'rasterio') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_looking_at_a_pack_loads_no_source() -> None:
    code = (
        "import sys, penstock.cli.looks; "
        "print([n for n in sys.modules if n.startswith('penstock.formats') or n in ('pandas', 'av', 'rasterio')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("verb", ["evaluate", "predict"])
def test_options_of_answering_are_those_of_python(verb: str) -> None:
    function = getattr(ps, verb)
    # Options of a task are passed on where they are given; `plot` and `output` say where files go.
    boxes = dict.fromkeys((*(field.name for field in dataclasses.fields(FindingOptions)), "plot"))
    videos = {field.name: field.default for field in dataclasses.fields(EthogramOptions)}
    expected = {**keywords_of(function), **({"output": None} if verb == "evaluate" else boxes | videos)}
    for name in ("on_problem", "on_facts"):  # functions; the command prints what they would be called with
        expected.pop(name, None)
    options = options_of(f"penstock {verb}")
    context = click.Context(COMMANDS[f"penstock {verb}"])
    assert {name: option.get_default(context) for name, option in options.items() if name != "as_json"} == expected


def test_help_of_learning_loads_no_torch() -> None:
    code = (
        "import sys; from penstock.cli import penstock\n"
        "for verb in ('recipe', 'train', 'evaluate', 'predict'):\n"
        "    penstock.main([verb, '--help'], standalone_mode=False)\n"
        "print([n for n in ('torch', 'lightning', 'torchvision', 'pandas', 'av', 'rasterio') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_an_example_that_it_understands(name: str) -> None:
    context = click.Context(COMMANDS[name], info_name=name, **penstock.context_settings)
    page = COMMANDS[name].get_help(context)
    shown = [line.strip() for line in page.partition("Example")[2].splitlines() if line.startswith("    penstock ")]
    assert shown and all(line.startswith(f"{name} ") for line in shown)
    for line in shown:
        _parse(line)


def _parse(line: str) -> None:
    """Read a command as click does, without running it: unknown options and missing arguments are errors."""
    words = shlex.split(line.split(" > ")[0])[1:]
    command: click.Command = penstock
    context = click.Context(penstock, **penstock.context_settings)
    while isinstance(command, click.Group):
        found = command.get_command(context, words.pop(0))
        assert found is not None, line
        command = found
    command.make_context(command.name, words, parent=context)


def test_the_list_of_commands_ends_with_examples_that_are_understood() -> None:
    page = penstock.get_help(click.Context(penstock, info_name="penstock"))
    for line in page.partition("Examples:")[2].strip().splitlines():
        _parse(line.strip())


@pytest.mark.parametrize(("words", "expected"), [("penstock tr", "train"), ("penstock pack im", "images")])
def test_shells_complete_commands(words: str, expected: str, tmp_path: Path) -> None:
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1), "_PENSTOCK_COMPLETE": "bash_complete"}
    assert run_installed(folder=tmp_path, **asked).out == f"plain,{expected}\n"


@pytest.mark.parametrize("name", [name for name in COMMANDS if not isinstance(COMMANDS[name], click.Group)])
def test_shells_complete_paths_where_a_command_takes_one(name: str) -> None:
    for parameter in COMMANDS[name].params:
        if isinstance(parameter, click.Argument) and parameter.name not in ("number", "kind", "overrides"):
            assert isinstance(parameter.type, click.Path), parameter.name
