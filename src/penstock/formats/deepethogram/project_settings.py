"""project_config.yaml: what a project says of itself, and the safe reading of its YAML files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from penstock.errors import DataError, Problem
from penstock.formats.deepethogram.project_training import NO_TRAINING, ProjectTraining, read_training
from penstock.formats.paths import PathLike
from penstock.formats.videos.frame_labels import BACKGROUND
from penstock.geometry import LARGEST_SIDE
from penstock.problems import raise_problems
from penstock.storage.plain_files import read_file

CONFIG = "project_config.yaml"
DATA_FOLDER = "DATA"


@dataclass(frozen=True)
class ProjectSettings:
    """Where the project lies, its behaviours, the size that it trains at, its split file, and how it trains."""

    config: Path
    data: Path
    classes: tuple[str, ...]
    resize: tuple[int, int] | None = None  # width and height
    split_file: str = ""
    training: ProjectTraining = NO_TRAINING

    @property
    def folder(self) -> Path:
        return self.config.parent


def read_settings(project: PathLike) -> ProjectSettings:
    """The settings of a project, given its folder or its project_config.yaml; everything wrong is said at once."""
    config = _config_file(Path(project))
    settings = read_mapping(config)
    own = _section(settings, "project")
    classes, problems = _classes(config, own.get("class_names"))
    data = config.parent / (last_piece(own.get("data_path")) or DATA_FOLDER)
    if not data.is_dir():
        what = f"there is no folder {data.name}, where the videos of the project should be"
        problems.append(Problem(config.parent.as_posix(), None, what, "Pass the folder that holds DATA"))
    resize, wrong = _resize(config, _section(settings, "augs").get("resize"))
    raise_problems([*problems, *wrong])
    split_file = last_piece(_section(settings, "split").get("file"))
    return ProjectSettings(config, data, classes, resize, split_file, read_training(settings))


def _config_file(given: Path) -> Path:
    config = given if given.name.endswith((".yaml", ".yml")) else given / CONFIG
    if config.is_file():
        return config
    if not given.exists():
        raise DataError([Problem(str(given), None, "no such folder", "Pass the folder of a DeepEthogram project")])
    inner = [path.parent for path in sorted(given.glob(f"*/{CONFIG}"))] if given.is_dir() else []
    hint = f"Did you mean {inner[0].as_posix()}?" if inner else f"Pass the folder that holds {CONFIG}"
    raise DataError([Problem(str(given), None, f"is no DeepEthogram project: it has no {CONFIG}", hint)])


def read_mapping(path: Path) -> dict[str, Any]:
    """A YAML file that holds names and values; tags that would make Python objects are refused."""
    import yaml

    from penstock.storage.documents import load_yaml

    try:
        loaded = load_yaml(read_file(path))
    except OSError as error:
        raise DataError([Problem(str(path), None, f"cannot be read: {error.strerror}", "Check it")]) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or str(error)
        line = None if mark is None else mark.line + 1
        raise DataError(
            [Problem(str(path), line, f"is no readable YAML: {reason}", "Correct it, or restore a copy")]
        ) from error
    if loaded is None:
        return {}
    if not isinstance(loaded, Mapping):
        what = f"holds a {type(loaded).__name__} where names and values were expected"
        raise DataError([Problem(str(path), None, what, "Restore the file that DeepEthogram wrote")])
    return {str(name): value for name, value in loaded.items()}


def last_piece(written: Any) -> str:
    """The file or folder name at the end of a path, which may be one of another machine; empty for anything else."""
    if not isinstance(written, str):
        return ""
    name = PurePosixPath(written.strip().replace("\\", "/")).name
    return "" if name in (".", "..") else name


def _section(settings: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = settings.get(name)
    return found if isinstance(found, Mapping) else {}


def _classes(config: Path, written: Any) -> tuple[tuple[str, ...], list[Problem]]:
    """The behaviours in their order, `background` among them; `none` is another word for it."""
    remedy = "Write class_names: [background, groom, …] under project, in the order of the label columns"
    if not isinstance(written, Sequence) or isinstance(written, str) or not written:
        return (), [Problem(config.as_posix(), None, "project.class_names lists no behaviours", remedy)]
    names = [str(name).strip() for name in written]
    names = [BACKGROUND if name.lower() in ("none", BACKGROUND) else name for name in names]
    wrong = [name for name in dict.fromkeys(names) if names.count(name) > 1 or not name]
    problems = [
        Problem(config.as_posix(), None, f"project.class_names has {name!r} {names.count(name)} times", remedy)
        for name in wrong
    ]
    return (tuple(names) if BACKGROUND in names else (BACKGROUND, *names)), problems


def _resize(config: Path, written: Any) -> tuple[tuple[int, int] | None, list[Problem]]:
    """Width and height from augs.resize: one number is a square, two are height and width."""
    sides = [written] if isinstance(written, int) else written
    if sides is None or sides == []:
        return None, []
    are_whole = isinstance(sides, list) and all(type(side) is int and 0 < side <= LARGEST_SIDE for side in sides)
    if not are_whole or len(sides) > 2:
        what = f"augs.resize is {written!r}, expected one whole number (a square) or [height, width] in px"
        return None, [Problem(config.as_posix(), None, what, "Correct it, or remove the line")]
    return (sides[-1], sides[0]), []
