"""URLs are refused at every door: nothing is written into a folder called `s3:`, nothing is looked for in one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

import penstock as ps
from cli.test_options import COMMANDS
from commands import run_here
from penstock.storage.locations import refuse_urls
from penstock.training.options import DataOptions, FeedOptions, RunOptions

URL = "s3://data/p.pack"
REFUSED = "is a URL, and Penstock reads and writes local disks only"
# Parameters of public functions and classes that are paths, or may be.
PATHS = ("annotations", "data", "folder", "images", "output", "path", "paths", "place", "project", "raster", "rasters")
PATHS += ("run", "runs", "save_dir", "timeline", "truth", "videos", "what", "boxes", "labels", "split_file")


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def path_parameters() -> list[tuple[str, str]]:
    """Every command that has arguments, with each of its parameters that takes text."""
    found = []
    for name, command in COMMANDS.items():
        if isinstance(command, click.Group) or name == "penstock recipe":
            continue
        for parameter in command.params:
            if isinstance(parameter.type, click.Path) or (
                isinstance(parameter.type, click.types.StringParamType) and not getattr(parameter, "is_flag", False)
            ):
                found.append((name, parameter.name or ""))
    return found


def arguments_with(name: str, url: str, place: str) -> list[str]:
    """A command line of this command that has the URL as this argument, and something harmless as the others."""
    command = COMMANDS[name]
    line = name.split()[1:]
    for parameter in command.params:
        value = url if parameter.name == place else "1" if parameter.type is click.INT else "nothing_here"
        if isinstance(parameter, click.Argument) and (parameter.required or parameter.name == place):
            line.append(value)
        elif parameter.name == place or parameter.required:
            line += [parameter.opts[0], value]
    return line


@pytest.mark.parametrize(("name", "place"), path_parameters())
def test_no_command_takes_a_url_for_a_path(name: str, place: str, tmp_path: Path) -> None:
    outcome = run_here(*arguments_with(name, URL, place))
    assert outcome.exit_code == 2, outcome.err
    assert REFUSED in outcome.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("argument", [f"data.path={URL}", f"run.folder={URL}", f"-o{URL}", f"--output={URL}"])
def test_a_url_after_a_key_or_an_option_is_found(argument: str, tmp_path: Path) -> None:
    outcome = run_here("train", "recipe.yaml", argument)
    assert (outcome.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert REFUSED in outcome.err


REST = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)


def needed_by(door: Callable[..., Any]) -> list[str]:
    parameters = inspect.signature(door).parameters.values()
    return [each.name for each in parameters if each.default is inspect.Parameter.empty and each.kind not in REST]


def call(door: Callable[..., Any], given: dict[str, Any]) -> Any:
    """With nothing for every other argument that must be given; methods take themselves by place only."""
    arguments = dict.fromkeys(needed_by(door)) | given
    own = [arguments.pop("self")] if "self" in arguments else []
    return door(*own, **arguments)


def python_doors() -> list[tuple[str, Callable[..., Any], str]]:
    doors = []
    methods = [(f"{each}.{name}", getattr(getattr(ps, each), name)) for each, name in METHODS]
    for name, door in [(name, getattr(ps, name)) for name in ps.__all__] + methods:
        if not callable(door) or name in NO_DOORS or (inspect.isclass(door) and issubclass(door, BaseException)):
            continue
        doors += [(name, door, each) for each in inspect.signature(door).parameters if each in PATHS]
    return doors


METHODS = (("Flow", "cache"), ("Flow", "log_metrics"), ("Recipe", "read"), ("TFRecords", "stream"), ("Model", "save"))
METHODS += (("Model", "predict"), ("Evaluation", "save"))
# Tasks name fields of samples, results hold what was made, and training modules take data that is open.
NO_DOORS = {
    "Classification",
    "Detection",
    "Behaviour",
    "Ethogram",
    "Export",
    "Recipe",
    "Diagnosis",
    "Evaluation",
    "Problem",
    "Raw",
    "module_for",
}


@pytest.mark.parametrize(("name", "door", "parameter"), python_doors())
@pytest.mark.parametrize("url", [URL, Path(URL), [URL]], ids=["text", "path", "list"])
def test_no_python_function_takes_a_url_for_a_path(
    name: str, door: Callable[..., Any], parameter: str, url: Any, tmp_path: Path
) -> None:
    with pytest.raises(ps.OptionError, match=REFUSED):
        call(door, {parameter: url})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "door", "parameter"),
    [one for one in python_doors() if one[2] in (*needed_by(one[1]), "data", "images")],
)
def test_no_python_function_takes_an_empty_path_for_the_current_folder(
    name: str, door: Callable[..., Any], parameter: str
) -> None:
    with pytest.raises(ps.OptionError, match="the path is empty"):
        call(door, {parameter: ""})


@pytest.mark.parametrize("options", [DataOptions, RunOptions, FeedOptions])
def test_recipes_have_no_urls(options: Callable[..., Any]) -> None:
    key = {DataOptions: "path", RunOptions: "folder", FeedOptions: "cache"}[options]  # type: ignore[index]
    with pytest.raises(ps.OptionError, match=REFUSED):
        options(**{key: "gs://bucket/mice"})


@pytest.mark.parametrize("url", ["s3://a", "gs://a", "az://a/b", "http://a/b", "https://a", "abfss://a", "x-y.z+1://a"])
def test_any_scheme_is_a_url(url: str) -> None:
    with pytest.raises(ps.OptionError, match=REFUSED):
        refuse_urls(url)


@pytest.mark.parametrize("path", ["C:/data", "C://data", "data", "/data/a:b", "2024-01-01T12:30:00.mp4", "a/s3://b"])
def test_paths_are_no_urls(path: str) -> None:
    refuse_urls(path, Path(path))


def test_a_folder_that_has_the_name_of_a_scheme_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "http:").mkdir()
    refuse_urls(Path("http:/"), *Path().glob("*"))


def test_a_model_may_be_named_by_hf_and_nothing_else_may() -> None:
    refuse_urls("hf://owner/name", is_model=True)
    with pytest.raises(ps.OptionError, match="names a model"):
        ps.predict("hf://owner/name", "hf://owner/data")
    assert "names a model" in run_here("info", "hf://owner/name").err


def test_classes_may_have_the_names_of_an_ontology() -> None:
    images = np.zeros((2, 8, 8, 3), np.uint8)
    names = ["http://purl.obolibrary.org/obo/PO_1", "http://purl.obolibrary.org/obo/PO_2"]
    assert ps.Arrays(images, np.arange(2), classes=names).classes == tuple(names)
