"""`penstock doctor`: what holds a training back, and what to do about it."""

from __future__ import annotations

import inspect

import click

import penstock as ps
from penstock.cli.examples import examples
from penstock.diagnosis.variants import USUAL_BATCH
from penstock.recipes.doctor import doctor as examine

DEFAULTS = {name: parameter.default for name, parameter in inspect.signature(examine).parameters.items()}


@click.command(epilog=examples("doctor pets.yaml --timeline pets.html", "doctor pets.pack"))
@click.argument("what", type=click.Path(), metavar="RECIPE|DATA")
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
@click.option(
    "--seconds", type=float, default=DEFAULTS["seconds"], show_default=True, help="How long to measure, about."
)
@click.option("--batch-size", type=int, help=f"For data; a recipe has its own.  [default: {USUAL_BATCH}]")
@click.option(
    "--apply",
    is_flag=True,
    help="Put the best cheap remedies in place and measure again; into a recipe they are written.",
)
@click.option("--timeline", default=None, help="Write a page with who worked and who waited.", metavar="PAGE.html")
@click.option("--json", "as_json", is_flag=True, help="Everything, for programs.")
def doctor(
    what: str,
    overrides: tuple[str, ...],
    seconds: float,
    batch_size: int | None,
    apply: bool,
    timeline: str | None,
    as_json: bool,
) -> int:
    """Measure what holds a training back, and say what would help; exit code 1 when the model waits for data.

    A recipe is examined with its model. Data (a pack, a folder of images, a video, a raster, HDF5, TFRecord …) are
    examined with the crops that most trainings have.
    """
    found = ps.doctor(what, seconds=seconds, apply=apply, timeline=timeline, batch_size=batch_size, overrides=overrides)
    click.echo(found.json() if as_json else str(found))
    return 1 if found.is_input_bound else 0
