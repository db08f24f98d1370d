"""`penstock predict`: answers for new images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from penstock.cli.answering import answer_options
from penstock.errors import require_learning
from penstock.prediction import predicting


@click.command()
@click.argument("run")
@click.argument("data", nargs=-1, required=True)
@click.option("-o", "--output", default=None, help="The table to write (.csv, .jsonl, .parquet); else it is shown.")
@answer_options(predicting.predict)
def predict(run: str, data: tuple[str, ...], **options: Any) -> int:
    """Answer for images: files, folders, patterns or a pack, by what a Run or a checkpoint has learned."""
    require_learning("Prediction")
    answers = predicting.predict(run, list(data) if len(data) > 1 else data[0], **options)
    click.echo(f"{answers}" if isinstance(answers, Path) else answers.to_string(index=False))
    return 0
