"""`penstock predict`: answers for new images and videos."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from penstock.cli.answering import ANSWER_OPTIONS, answer_options, tell_decisions
from penstock.cli.examples import examples
from penstock.cli.options import SOURCE_OPTIONS, adding
from penstock.cli.programs import tell_program
from penstock.errors import SHOWN_PROBLEMS, Problem, require_learning
from penstock.formats.videos.framing import FITS
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
    "allow_drivers": (
        SOURCE_OPTIONS["allow_drivers"][0],
        "Boxes: let this driver of GDAL, such as VRT, open rasters too; may be given several times.",
    ),
    "score_threshold": (float, "Boxes: score from which a box is an answer. [default: the model's]"),
    "nms_threshold": (float, "Boxes: of two whose IoU is above this only the better stays. [default: the model's]"),
}

# The same for behaviour.
VIDEO_OPTIONS: dict[str, tuple[Any, str]] = {
    "fit": (click.Choice(FITS), "Behaviour: how frames are brought to the model's size. [default: as trained]"),
    "crop": (str, "Behaviour: x,y,width,height of the frame that is looked at. [default: as trained]"),
    "fresh": (bool, "Behaviour: predict again what is there already."),
    "min_bout_frames": ANSWER_OPTIONS["min_bout_frames"],
}


@click.command(
    epilog=examples(
        "predict runs/pets new_photos/ -o labels.csv",
        "predict runs/trees ortho.tif -o crowns.gpkg --plot crowns.png",
        "predict runs/mice new_videos/ -o predictions/",
    )
)
@click.argument("run", type=click.Path())
@click.argument("data", type=click.Path(), nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    default=None,
    help="The table to write (.csv, .jsonl, .parquet; boxes also as .gpkg, .geojson, .shp, .json), "
    "or the folder for what is found in videos; else it is shown.",
)
@answer_options(predicting.predict)
@adding(BOX_OPTIONS, {field.name: None for field in dataclasses.fields(FindingOptions)})
@adding(VIDEO_OPTIONS, {"fit": None, "crop": None, "fresh": False, "min_bout_frames": None})
@click.option("--plot", default=None, help="Boxes: draw them over their images (.png, .jpg, .webp).")
@click.option("--json", "as_json", is_flag=True, help="The rows, or the files that were written, for programs.")
def predict(
    run: str, data: tuple[str, ...], output: str | None, plot: str | None, as_json: bool, **options: Any
) -> int:
    """Predict on images, rasters or videos (files, folders, patterns or a pack) with a Run or a checkpoint."""
    require_learning("Prediction")
    own = BOX_OPTIONS | VIDEO_OPTIONS
    given = {name: value for name, value in options.items() if name not in own or value not in (None, False, ())}
    paths: Any = list(data) if len(data) > 1 else data[0]
    facts: dict[str, Any] = {}
    if plot is None:
        found = [_answered(run, paths, output, given, facts)]
    else:
        found = _plotted(run, paths, output, plot, given, facts)
    tell_decisions(facts)
    return _told(found, facts, as_json)


def _answered(run: str, paths: Any, output: str | None, given: dict[str, Any], facts: dict[str, Any]) -> Any:
    """What is found; `facts` gets what is counted on the way."""
    with _telling(output) as on_problem:
        return predicting.predict(run, paths, output=output, on_problem=on_problem, on_facts=facts.update, **given)


@contextmanager
def _telling(output: str | None) -> Iterator[Callable[[Problem], None]]:
    """What was noticed on the way is told beside the result, also where something cannot be read and is an error."""
    problems: list[Problem] = []
    try:
        yield problems.append
    finally:
        for problem in problems[:SHOWN_PROBLEMS]:
            click.echo(f"warning: {problem}", err=True)
        if len(problems) > SHOWN_PROBLEMS:
            listed = "; predictions.json lists all" if output is not None and Path(output).is_dir() else ""
            click.echo(f"… and {len(problems) - SHOWN_PROBLEMS:,} more{listed}.", err=True)


def _plotted(
    run: str, paths: Any, output: str | None, plot: str, given: dict[str, Any], facts: dict[str, Any]
) -> list[Any]:
    from penstock.reporting.box_plots import check_plot_name, plot_boxes

    check_plot_name(plot)
    with _telling(output) as on_problem:
        table: Any = predicting.predict_boxes(
            run, paths, output=output, on_problem=on_problem, on_facts=facts.update, **given
        )
    rasters = {name: given[name] for name in ("bands", "allow_drivers") if name in given}
    return [table if output is None else Path(output), plot_boxes(table, plot, **rasters)]


def _told(results: list[Any], facts: dict[str, Any], as_json: bool) -> int:
    """Say which files were written, or show the table."""
    files = [result for result in results if isinstance(result, Path)]
    tables = [_table(result) for result in results if not isinstance(result, Path)]
    if as_json:
        tell_program({"files": files, "facts": facts, **({"rows": _rows(tables[0])} if tables else {})})
    else:
        click.echo("\n".join([*(table.to_string(index=False) for table in tables), *map(str, files)]))
    return 0


def _table(answers: Any) -> Any:
    """A table as it is; of ethograms how much time each behaviour takes."""
    if hasattr(answers, "to_string"):
        return answers
    import pandas as pd

    return pd.concat([one.summary() for one in (answers if isinstance(answers, list) else [answers])])


def _rows(table: Any) -> list[dict[str, Any]]:
    """Rows as JSON has them; the outline of a box says nothing that its corners do not."""
    rows: list[dict[str, Any]] = table.drop(columns="geometry", errors="ignore").to_dict("records")
    return rows
