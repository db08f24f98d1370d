"""`ps.predict`: answers for files, folders, patterns, lists, packs and any Source, as a table."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import require
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
) -> pd.DataFrame | Path:
    """Answer every image, in order, and give a table: image_path, label, score, and a column for each class.

    With `output` (.csv, .jsonl or .parquet) the table is written as it comes about, in constant memory, and the path
    is given back. Answers do not depend on `batch_size` or `workers`. With `on_bad_sample="skip"` a file that cannot
    be read has a row without an answer, and the reason in the column `problem`.
    """
    require("torch", "train", "Prediction")
    from penstock.prediction.answering import AnswerOptions
    from penstock.prediction.finding import source_for_prediction
    from penstock.prediction.models import load
    from penstock.prediction.tables import check_table_name, write_table

    if output is not None:
        check_table_name(os.fspath(output))
    options = AnswerOptions(batch_size, workers, on_bad_sample, progress)
    source = source_for_prediction(data)
    model = load(run, device=device)
    model.task.check(source, "prediction")
    batches = _batches(model, source, options)
    return _frame(batches) if output is None else write_table(os.fspath(output), batches)


def _batches(model: Model, source: Source, options: AnswerOptions) -> Iterator[list[dict[str, Any]]]:
    from penstock.prediction.answering import answered, rows_of

    for found in answered(model, source, options, model.answer):
        yield rows_of(model, source, found, lists_problems=options.on_bad_sample == "skip")


def _frame(batches: Iterator[list[dict[str, Any]]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame([row for rows in batches for row in rows])
