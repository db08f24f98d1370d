"""`ps.predict`: answers for files, folders, patterns, lists, arrays, packs and any Source, as a table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import OptionError, Problem, nearest, require
from penstock.samples import Store
from penstock.storage.locations import refuses_urls

if TYPE_CHECKING:
    import pandas as pd

    from penstock.prediction.answering import AnswerOptions, OnBadSample
    from penstock.prediction.boxes.options import FindingOptions
    from penstock.prediction.inputs import ImageArrays
    from penstock.prediction.models import Model
    from penstock.results.ethograms import Ethogram
    from penstock.runs.run import Run

OnProblem = Callable[[Problem], None] | None


@refuses_urls(model="run")
def predict(
    run: Run | Model | str | os.PathLike[str],
    data: Any,
    *,
    output: str | os.PathLike[str] | None = None,
    batch_size: int | str = "auto",
    workers: int | str = "auto",
    on_bad_sample: OnBadSample = "raise",
    device: Any = None,
    precision: str = "auto",
    progress: bool = False,
    on_problem: OnProblem = None,
    on_facts: Callable[[dict[str, Any]], None] | None = None,
    **options: Any,
) -> pd.DataFrame | Ethogram | list[Ethogram] | Path:
    """Answer every image, in order, and give a table: image_path, label, score, and a column for each class.

    `data` is a path, a pattern, a list of paths, a pack or a Source; or images in memory: an array H×W×3 of uint8
    (RGB), an image of Pillow, or a list of these, which the table calls `image 0`, `image 1` …

    With `output` (.csv, .jsonl or .parquet) the table is written as it comes about, in constant memory, and the path
    is given back. Answers do not depend on `batch_size` or `workers`. With `on_bad_sample="skip"` a file that cannot
    be read has a row without an answer, and the reason in the column `problem`.

    A detector gives a row for each box: xmin ymin xmax ymax, label, score, image_path, and geometry where the image
    is on a map; rasters of any size are looked at window by window. Its table can be saved as .gpkg, .geojson, .shp,
    .parquet, .csv and .json (COCO), `options` are those of `FindingOptions`, `attrs["problems"]` the skipped, and
    `attrs["notes"]` which images were brought to the coordinate system of the first, or have none.
    With `output`, work that was interrupted goes on where it stopped when the same is asked for again.

    A behaviour model gives the Ethogram of a video, a list of them for a folder, a list or a pack, and with `output` (a
    folder, or a file for one video) writes them as they come about; `options` are those of `EthogramOptions`. A frame
    that does not decode keeps its row and is among the problems, which `on_problem` is called with at the end. A video
    that cannot be read does not stop the others: it is an error at the end, or with `on_bad_sample="skip"` only noted.

    `precision` is that of the model's training (auto), 32, bf16 or 16; tables say it in `attrs["precision"]`.
    `on_facts` is called with it, and for behaviour also with how many frames the rule of shortest bouts changed, and
    how many are near a threshold. `device` may be a list: each has a copy of the network, and what is to be answered is
    dealt to them.
    """
    require("torch", "train", "Prediction")
    from penstock.prediction.answering import AnswerOptions
    from penstock.prediction.inputs import source_for_prediction
    from penstock.prediction.models import load
    from penstock.prediction.tables import check_table_name, write_table

    answering = AnswerOptions(batch_size, workers, on_bad_sample, progress)
    model = load(run, device=device, precision=precision)
    if on_facts is not None:
        on_facts(precision_facts(model))
    if model.task.kind == "detection":
        table = _boxes(model, data, output, answering, options, on_problem)
        return table if output is None else Path(output)
    if model.task.kind == "behaviour":
        from penstock.prediction.behaviour.ethogram_predicting import predict_ethograms

        return predict_ethograms(model, data, output, answering, options, on_problem, on_facts)
    if options:
        raise OptionError(f"{', '.join(options)}: these are options of other tasks, and {run} is a {model.task.kind}.")
    if output is not None:
        check_table_name(os.fspath(output))
    source = source_for_prediction(data)
    model.task.check(source, "prediction")
    batches = _batches(model, source, answering)
    return _frame(batches, model) if output is None else write_table(os.fspath(output), batches)


def precision_facts(model: Model) -> dict[str, Any]:
    """With what a model computes, and why."""
    return {"precision": model.precision, "precision_words": model.precision_words}


@refuses_urls(model="run")
def predict_boxes(
    run: Run | Model | str | os.PathLike[str],
    data: Any,
    *,
    output: str | os.PathLike[str] | None = None,
    device: Any = None,
    on_problem: OnProblem = None,
    precision: str = "auto",
    on_facts: Callable[[dict[str, Any]], None] | None = None,
    **options: Any,
) -> Any:
    """The table of boxes that a detector finds, as `predict` gives it; with `output` it is written as well."""
    require("torch", "train", "Prediction")
    from penstock.prediction.answering import AnswerOptions
    from penstock.prediction.models import load

    model = load(run, device=device, precision=precision)
    if model.task.kind != "detection":
        raise OptionError(f"{run} finds no boxes: it is a {model.task.kind}.")
    if on_facts is not None:
        on_facts(precision_facts(model))
    names = [field.name for field in fields(AnswerOptions)]
    answering = AnswerOptions(**{name: options.pop(name) for name in names if name in options})
    return _boxes(model, data, output, answering, options, on_problem)


def _boxes(
    model: Model,
    data: Any,
    output: str | os.PathLike[str] | None,
    answering: AnswerOptions,
    given: dict[str, Any],
    on_problem: OnProblem,
) -> Any:
    from penstock.prediction.boxes.finding_boxes import boxes_in_arrays, boxes_in_files, boxes_in_source
    from penstock.prediction.boxes.journals import Journal
    from penstock.prediction.boxes.options import FindingOptions, unscalable
    from penstock.prediction.boxes.scenes import lacks_place
    from penstock.prediction.inputs import ImageArrays, files_or_source
    from penstock.results.box_writing import check_box_output, check_places, is_layer

    names = [field.name for field in fields(FindingOptions)]
    for name in given:
        if name not in names:
            raise OptionError(f"predict has no option {name!r}.{nearest(name, names)}")
    options = FindingOptions(**given)
    target = None if output is None else check_box_output(output)
    found = files_or_source(data)
    if isinstance(found, (ImageArrays, list)) and answering.batch_size != "auto":
        what = f"batch_size={answering.batch_size}: images are cut into windows, of which the network gets "
        raise OptionError(f"{what}{model.group_rows} at a time. Leave it out.")
    if isinstance(found, ImageArrays):
        _check_arrays(found, options, target if target is not None and is_layer(target) else None)
        table = boxes_in_arrays(model, found, options, answering)
        return table if target is None else _saved(table, target)
    if not isinstance(found, list):
        if options.windowing():
            what = f"{', '.join(options.windowing())}: samples of a pack or another Source are looked at as they are"
            raise OptionError(f"{what}. Leave it out, or name the files of the images.")
        model.task.check(found, "prediction")
        table = boxes_in_source(model, found, options, answering)
        _tell_notes(table, on_problem)
        return table if target is None else _saved(table, target)
    needs_places = (target is not None and is_layer(target)) or options.given_gsd is not None
    unplaced = [str(file) for file in found if needs_places and lacks_place(file, options.allow_drivers)]
    if unplaced and options.given_gsd is not None:
        raise unscalable(unplaced, options.given_gsd)
    if target is not None and is_layer(target):
        check_places(target, unplaced, len(found))
    journal = None if target is None else Journal(target.with_name(f"{target.name}.partial"))
    table = boxes_in_files(model, found, options, answering, journal)
    _tell_notes(table, on_problem)
    if target is not None and journal is not None:
        _saved(table, target)
        journal.end()
    return table


def _check_arrays(images: ImageArrays, options: FindingOptions, layer: Path | None) -> None:
    """Refuse what needs a file or a place on the map, which pixels in memory do not have."""
    from penstock.results.box_writing import check_places

    unused = [name for name in options.windowing() if name not in ("tile_px", "overlap")]
    if unused:
        what = f"{', '.join(unused)}: images in memory have three channels and no georeference"
        raise OptionError(f"{what}. Leave it out, or name the files of the images.")
    if layer is not None:
        check_places(layer, list(images.column("key")), len(images))


def _tell_notes(table: Any, on_problem: OnProblem) -> None:
    if on_problem is None:
        return
    for note in table.attrs.get("notes", ()):
        on_problem(Problem("predictions", None, note, "", warning=True))


def _saved(table: Any, target: Path) -> Any:
    table.save(target)
    return table


def _batches(model: Model, source: Store, options: AnswerOptions) -> Iterator[list[dict[str, Any]]]:
    from penstock.prediction.answering import answered, rows_of

    for found in answered(model, source, options, model.answer):
        yield rows_of(model, source, found, lists_problems=options.on_bad_sample == "skip")


def _frame(batches: Iterator[list[dict[str, Any]]], model: Model) -> pd.DataFrame:
    import pandas as pd

    table = pd.DataFrame([row for rows in batches for row in rows])
    table.attrs["precision"] = model.precision
    return table
