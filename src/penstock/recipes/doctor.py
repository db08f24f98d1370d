"""`ps.doctor`, the door of the diagnosis: a recipe, a Run, data or a flow becomes a flow and a model to examine;
remedies are written into the recipe, and the timeline into a page. It stands here because it needs recipes, training
and reporting, which are above `diagnosis`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.diagnosis.diagnosing import DEFAULT_SECONDS, Options, apply_remedies, diagnose
from penstock.diagnosis.diagnosis import Diagnosis
from penstock.diagnosis.spelling import Spelling
from penstock.diagnosis.variants import USUAL_BATCH, usual_flow, with_batches
from penstock.errors import OptionError
from penstock.flow.flow import Flow
from penstock.recipes.changing import change_recipe
from penstock.recipes.recipe import Recipe
from penstock.recipes.training_steps import training_of
from penstock.reporting.timelines import checked_page, write_timeline
from penstock.runs.layout import SETTINGS
from penstock.samples import Source, as_store
from penstock.storage.locations import refuses_urls

FEED_SETTINGS = {  # of a recipe, by the name of the remedy
    "executor": ("executor", "process"),
    "workers": ("workers", "auto"),
    "prefetch": ("prefetch", "auto"),
    "cache": ("cache", "memory"),
}
PACK_COMMANDS = {"Images": "images", "Boxes": "boxes", "Rasters": "rasters", "Videos": "videos"}
Step = Callable[[dict[str, Any]], Any]


@refuses_urls()
def doctor(
    what: Any,
    step: Step | None = None,
    *,
    seconds: float = DEFAULT_SECONDS,
    apply: bool = False,
    timeline: str | Path | None = None,
    batch_size: int | None = None,
    overrides: Sequence[str] = (),
) -> Diagnosis:
    """Measure what holds a training back, and say what would help and by how much.

    `what` is a Flow, a Source, a Recipe, or a path: a recipe, a Run, a pack, or anything that `ps.open` recognises.
    `step` is the model: a function of a batch, as the flow gives it, that returns when its work is done; a recipe
    brings its own. Data without a flow are cropped to 224 px and put in batches of `batch_size` (64). `apply` puts the
    best cheap remedies in place, one after another, and measures again; those that helped are written into the section
    `feed` of a recipe, and the old recipe is kept beside it. `timeline` is a page to write, with who worked and who
    waited. `overrides` change keys of a recipe.
    """
    if step is not None and not callable(step):
        raise OptionError(f"step={step!r} must be a function of a batch, as your training loop has it.")
    page = None if timeline is None else checked_page(timeline)
    flow, step, spelling, name = _case(what, step, batch_size, overrides)
    options = Options(seconds=seconds)
    found = diagnose(flow, step, options=options, spelling=spelling, name=name)
    if apply:
        found = _written(apply_remedies(flow, step, options, spelling, found), spelling)
    if page is not None:
        write_timeline(found, page)
    return found


def _written(found: Diagnosis, spelling: Spelling) -> Diagnosis:
    """With what helped in the recipe; a Run tells how it was made, and stays as it is."""
    if not found.applied:
        return replace(found, written=_why_nothing(found))
    changes = dict(FEED_SETTINGS[one.remedy.name] for one in found.applied if one.is_kept)
    if not spelling.recipe or spelling.is_run:
        return found
    if not changes:
        return replace(found, written=f"{spelling.recipe} stays as it is: what was tried did not help")
    kept = change_recipe(Path(spelling.recipe), "feed", changes)
    words = ", ".join(f"feed.{name}: {value}" for name, value in changes.items())
    return replace(found, written=f"Written into {spelling.recipe}: {words}; the recipe before is {kept}")


def _why_nothing(found: Diagnosis) -> str:
    if not found.remedies:
        return "Nothing was applied: no remedy was found"
    return "Nothing was applied: none of these remedies is a setting of the feed that leaves batches as they are"


# What is looked at


def _case(
    what: Any, step: Step | None, batch_size: int | None, overrides: Sequence[str]
) -> tuple[Flow, Step | None, Spelling, str]:
    """The flow and the model, and how the user calls them."""
    if batch_size is not None and batch_size < 1:
        raise OptionError(f"batch_size={batch_size} must be at least 1.")
    if batch_size is not None and (isinstance(what, Recipe) or _names_recipe(what)):
        raise OptionError(f"batch_size is for data; a recipe has its own. Give train.batch_size={batch_size} instead.")
    batch_size = batch_size or USUAL_BATCH
    if isinstance(what, Recipe):
        return _recipe_case(what, "", (), step)
    if _names_recipe(what):
        return _recipe_case(Recipe.read(Path(what), overrides), os.fspath(what), tuple(overrides), step)
    if overrides:
        raise OptionError(f"{overrides[0]}: only recipes have keys to change, and {what} is none.")
    if isinstance(what, Flow):
        return with_batches(what, batch_size), step, Spelling(), ""
    if isinstance(what, (str, os.PathLike)):
        from penstock.opening import kind_of
        from penstock.opening import open as open_any

        path = os.fspath(what)
        spelling = Spelling(data=path, kind=PACK_COMMANDS.get(kind_of(path), "data"))
        return usual_flow(open_any(path), batch_size), step, spelling, path
    if isinstance(what, Source):
        return usual_flow(as_store(what), batch_size), step, Spelling(), ""
    raise OptionError(f"doctor takes a Flow, a Source, a Recipe or a path, not {type(what).__name__}.")


def _recipe_case(
    recipe: Recipe, path: str, changes: tuple[str, ...], step: Step | None
) -> tuple[Flow, Step | None, Spelling, str]:
    from penstock.opening import kind_of

    flow, own = training_of(recipe)
    data = recipe.data.path if isinstance(recipe.data.path, str) else ""
    kind = PACK_COMMANDS.get(kind_of(data), "data") if data else "data"
    options, file, is_run = recipe.data.options or {}, path, bool(path) and Path(path).is_dir()
    if is_run:  # it is finished: what it was made with is trained anew elsewhere
        file, changes = str(Path(path) / SETTINGS), (*changes, f"run.folder={path.rstrip('/')}-again")
    spelling = Spelling(file, changes, data, options, kind, caches_source=True, is_run=is_run)
    return flow, step or own, spelling, path


def _names_recipe(what: Any) -> bool:
    return isinstance(what, (str, os.PathLike)) and is_recipe(what)


def is_recipe(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a recipe or a Run, and not data."""
    file = Path(path)
    return file.suffix in (".yaml", ".yml") or (file / SETTINGS).is_file()
