"""`penstock predict`: answers for new images."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import click

from penstock.cli.answering import answer_options
from penstock.cli.options import SOURCE_OPTIONS, adding
from penstock.errors import RecipeError, require_learning
from penstock.prediction import predicting
from penstock.prediction.boxes.options import OVERLAP, FindingOptions


def gsd(text: str) -> float | str:
    """Metres in a pixel, auto or none."""
    try:
        return text if text in ("auto", "none") else float(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is neither a number of metres nor auto or none.") from None


# Options of detection; of other tasks they are an error, so nothing is passed on that was not given.
BOX_OPTIONS: dict[str, tuple[Any, str]] = {
    "tile_px": (int, "Boxes: side of the windows that large images are cut into. [default: 400]"),
    "overlap": (float, f"Boxes: overlap of neighbouring windows, as a fraction. [default: {OVERLAP}]"),
    "bands": (str, f"Boxes: {SOURCE_OPTIONS['bands'][1][0].lower()}{SOURCE_OPTIONS['bands'][1][1:]}"),
    "gsd": (gsd, "Boxes: metres in a pixel that rasters are brought to, or none. [default: as trained]"),
    "within": (str, "Boxes: layer of polygons outside of which nothing is looked for."),
    "precision": (
        click.Choice(["auto", "32", "bf16"]),
        "Boxes: bf16 is faster where the device has it. [default: auto]",
    ),
    "score_threshold": (float, "Boxes: score from which a box is an answer. [default: the model's]"),
    "nms_threshold": (float, "Boxes: of two whose IoU is above this only the better stays. [default: the model's]"),
}


@click.command()
@click.argument("run")
@click.argument("data", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    default=None,
    help="The table to write (.csv, .jsonl, .parquet; boxes also as .gpkg, .geojson, .shp, .json); else it is shown.",
)
@answer_options(predicting.predict)
@adding(BOX_OPTIONS, {field.name: None for field in dataclasses.fields(FindingOptions)})
@click.option("--plot", default=None, help="Boxes: draw them over their images (.png, .jpg, .webp).")
def predict(run: str, data: tuple[str, ...], output: str | None, plot: str | None, **options: Any) -> int:
    """Answer for images: files, folders, patterns or a pack, by what a Run or a checkpoint has learned."""
    require_learning("Prediction")
    given = {name: value for name, value in options.items() if name not in BOX_OPTIONS or value is not None}
    paths: Any = list(data) if len(data) > 1 else data[0]
    if plot is None:
        return _told(predicting.predict(run, paths, output=output, **given))
    return _plotted(run, paths, output, plot, given)


def _plotted(run: str, paths: Any, output: str | None, plot: str, given: dict[str, Any]) -> int:
    from penstock.reporting.box_plots import check_plot_name, plot_boxes

    check_plot_name(plot)
    table: Any = predicting.predict(run, paths, **given)
    if not hasattr(table, "image_sizes"):
        raise RecipeError(f"--plot draws boxes, and {run} finds none: it is no detector.")
    _told(table if output is None else table.save(output))
    click.echo(f"{plot_boxes(table, plot)}")
    return 0


def _told(answers: Any) -> int:
    click.echo(f"{answers}" if isinstance(answers, Path) else answers.to_string(index=False))
    return 0
