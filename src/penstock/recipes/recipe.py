"""`Recipe`: a short YAML file as the frozen options that Python users pass.

text ──given──► keys with places ──values──► values by type ──► DataOptions, TrainOptions, FeedOptions, RunOptions,
key=value ─────────┘                                            and the settings of a task
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import OptionError, nearest_file, require_learning
from penstock.recipes.reading import sections_of
from penstock.recipes.sections import OPTIONS
from penstock.recipes.templates import TEMPLATES
from penstock.runs.layout import SETTINGS, recipe_sections
from penstock.runs.run import Run, data_words
from penstock.storage.locations import refuses_urls
from penstock.tasks.kinds import task_from
from penstock.training.options import DataOptions, FeedOptions, RunOptions, TrainOptions

if TYPE_CHECKING:
    from penstock.tasks.task import Task

RUNS_FOLDER = "runs"
# No recipe is longer; a picture or a pack that was named by mistake is.
MOST_BYTES = 1_000_000


@dataclass(frozen=True)
class Recipe:
    """Everything that a training needs to know.

    recipe = ps.Recipe.read("pets.yaml", ["train.epochs=5"])
    run = ps.train(recipe.task, recipe.data.path, **recipe.options())
    """

    task: Task
    data: DataOptions = field(default_factory=DataOptions)
    train: TrainOptions = field(default_factory=TrainOptions)
    feed: FeedOptions = field(default_factory=FeedOptions)
    run: RunOptions = field(default_factory=RunOptions)

    @classmethod
    @refuses_urls()
    def read(cls, path: str | Path, overrides: Sequence[str] = ()) -> Recipe:
        """Read a recipe, or the one that a Run was made with; everything that is wrong is said at once."""
        require_learning("Reading a recipe")
        file = recipe_file(path)
        kind, sections = sections_of(file, overrides)
        if not sections["data"].get("path"):
            raise OptionError(_without_data(file))
        options = {name: make(**sections[name]) for name, make in OPTIONS.items()}
        recipe = cls(task_from(kind, {**sections["task"], **sections["model"]}), **options)
        return recipe if recipe.run.folder else recipe._in_folder(f"{RUNS_FOLDER}/{file.stem}")

    def _in_folder(self, folder: str) -> Recipe:
        return replace(self, run=replace(self.run, folder=folder))

    def options(self) -> dict[str, Any]:
        """The keyword arguments of `ps.train`: all options of data, train, feed and run by name, but the path."""
        found = {field.name: getattr(part, field.name) for part in self._parts().values() for field in fields(part)}
        del found["path"]
        return found

    def _parts(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in OPTIONS}

    def sections(self) -> dict[str, dict[str, Any]]:
        """The complete recipe, as a Run writes it."""
        return recipe_sections(self.task.kind, self.task.settings(), **self._parts())


def recipe_file(path: str | Path) -> Path:
    """The file of a recipe; a Run stands for the settings in it."""
    file = Path(path)
    if (file / SETTINGS).is_file():
        return file / SETTINGS
    if not file.exists():
        kinds = "|".join(TEMPLATES)
        raise OptionError(
            f"{path}: there is no such recipe.{nearest_file(str(path))} "
            f"penstock recipe {kinds} > {_suggested(file)} writes one."
        )
    if not file.is_file() or file.stat().st_size > MOST_BYTES:
        what = "a file of more than 1 MB" if file.is_file() else "a folder"
        raise OptionError(f"{path} is {what}, and a recipe is a short YAML file. penstock recipe images writes one.")
    return file


def _without_data(file: Path) -> str:
    if file.name == SETTINGS:
        words = data_words(Run(file.parent))
        return f"{words}: its settings cannot open them. Add data.path=… to name the data, or use ps.train in Python."
    return f"{file}: data.path is empty. Write path: pets.pack below data:, or add data.path=pets.pack to the command."


def _suggested(file: Path) -> str:
    return file.as_posix() if file.suffix in (".yaml", ".yml") else f"{file.stem}.yaml"
