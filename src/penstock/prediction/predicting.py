"""`ps.predict`: answers for files, folders, patterns, lists, packs and any Source, as a table."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import RecipeError, nearest, require
from penstock.samples import Source

if TYPE_CHECKING:
    import pandas as pd

    from penstock.prediction.answering import AnswerOptions, OnBadSample
    from penstock.prediction.models import Model
    from penstock.runs.run import Run


def predict(
    run: Run | Model | str | os.PathLike[str],
    data: Any,
    *,
    output: str | os.PathLike[str] | None = None,
    batch_size: int | str = "auto",
    workers: int | str = "auto",
    on_bad_sample: OnBadSample = "raise",
    device: Any = None,
    progress: bool = False,
    **options: Any,
) -> pd.DataFrame | Path:
    """Answer every image, in order, and give a table: image_path, label, score, and a column for each class.

    With `output` (.csv, .jsonl or .parquet) the table is written as it comes about, in constant memory, and the path
    is given back. Answers do not depend on `batch_size` or `workers`. With `on_bad_sample="skip"` a file that cannot
    be read has a row without an answer, and the reason in the column `problem`.

    A detector gives a row for each box: x1 y1 x2 y2, label, score, image_path, and geometry where the image is on a
    map; rasters of any size are looked at window by window. Its table can be saved as .gpkg, .geojson, .shp,
    .parquet, .csv and .json (COCO), `options` are those of `FindingOptions`, and `attrs["problems"]` the skipped.
    """
    require("torch", "train", "Prediction")
    from penstock.prediction.answering import AnswerOptions
    from penstock.prediction.finding import source_for_prediction
    from penstock.prediction.models import load
    from penstock.prediction.tables import check_table_name, write_table

    answering = AnswerOptions(batch_size, workers, on_bad_sample, progress)
    model = load(run, device=device)
    if model.task.kind == "detection":
        return _boxes(model, data, output, answering, options)
    if options:
        raise RecipeError(f"{', '.join(options)}: these are options of detection, and {run} is a {model.task.kind}.")
    if output is not None:
        check_table_name(os.fspath(output))
    source = source_for_prediction(data)
    model.task.check(source, "prediction")
    batches = _batches(model, source, answering)
    return _frame(batches) if output is None else write_table(os.fspath(output), batches)


def _boxes(
    model: Model, data: Any, output: str | os.PathLike[str] | None, answering: AnswerOptions, given: dict[str, Any]
) -> pd.DataFrame | Path:
    from penstock.prediction.boxes.finding_boxes import boxes_in_files, boxes_in_source
    from penstock.prediction.boxes.options import FindingOptions
    from penstock.prediction.finding import files_or_source
    from penstock.results.box_writing import check_box_output

    if output is not None:
        check_box_output(output)
    names = [field.name for field in fields(FindingOptions)]
    for name in given:
        if name not in names:
            raise RecipeError(f"predict has no option {name!r}.{nearest(name, names)}")
    options = FindingOptions(**given)
    found = files_or_source(data)
    if isinstance(found, list):
        table: Any = boxes_in_files(model, found, options, answering)
    else:
        model.task.check(found, "prediction")
        table = boxes_in_source(model, found, options, answering)
    result: pd.DataFrame | Path = table if output is None else table.save(output)
    return result


def _batches(model: Model, source: Source, options: AnswerOptions) -> Iterator[list[dict[str, Any]]]:
    from penstock.prediction.answering import answered, rows_of

    for found in answered(model, source, options, model.answer):
        yield rows_of(model, source, found, lists_problems=options.on_bad_sample == "skip")


def _frame(batches: Iterator[list[dict[str, Any]]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame([row for rows in batches for row in rows])
