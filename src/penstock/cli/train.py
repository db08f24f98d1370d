"""`penstock train`: a recipe becomes a Run."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import click

import penstock as ps
from penstock.cli.examples import examples
from penstock.cli.programs import tell_program
from penstock.errors import require_learning


@click.command(epilog=examples("train pets.yaml", "train pets.yaml train.epochs=5 model.backbone=resnet18"))
@click.argument("recipe", type=click.Path())
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--watch", is_flag=True, help="Say every few seconds whether data or compute is the limit.")
@click.option(
    "--resume/--fresh",
    default=None,
    help="Go on with an unfinished Run of the same settings, or refuse a folder in use; by default as the recipe says.",
)
@click.option("--no-progress", is_flag=True, help="No progress bar.")
@click.option("--json", "as_json", is_flag=True, help="The folder of the Run and its scores, for programs.")
def train(recipe: str, overrides: tuple[str, ...], as_json: bool, **flags: Any) -> int:
    """Train by a recipe, or by the settings of a Run; train.epochs=5 and the like change keys of it."""
    require_learning("Training")
    chosen = ps.Recipe.read(recipe, [*overrides, *_from_flags(**flags)])
    # What Lightning and its bars say on the way is no result.
    with contextlib.redirect_stdout(sys.stderr):
        run = ps.train(chosen.task, chosen.data.path, **chosen.options())
    _tell_once(run, as_json)
    return 0


def _tell_once(run: ps.Run, as_json: bool) -> None:
    """With several devices every process comes here, and one of them speaks."""
    from penstock.training.session import is_first_rank

    if is_first_rank():
        tell_program({"run": run.folder, "scores": run.scores()}) if as_json else click.echo(_ending(run))


def _from_flags(watch: bool, resume: bool | None, no_progress: bool) -> list[str]:
    """Flags are short for keys of the section `run`."""
    overrides = ["run.watch=on"] if watch else []
    if resume is not None:
        overrides.append(f"run.resume={'auto' if resume else 'never'}")
    return [*overrides, "run.progress=off"] if no_progress else overrides


def _ending(run: ps.Run) -> str:
    scores = ", ".join(f"{name} {value:.4g}" for name, value in run.scores().items())
    if run.environment.get("outcome") == "tried":
        return (
            f"{run.folder}: tried with one batch of everything; nothing was learned{f' ({scores})' if scores else ''}"
        )
    return f"{run.folder}: {scores or 'trained without validation, so there is no score'}"
