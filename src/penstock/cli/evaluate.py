"""`penstock evaluate`: how well a Run answers."""

from __future__ import annotations

from typing import Any

import click

from penstock.cli.answering import answer_options, tell_decisions
from penstock.cli.examples import examples
from penstock.cli.programs import tell_program
from penstock.errors import require_learning
from penstock.prediction import evaluating


@click.command(
    epilog=examples("evaluate runs/pets --split val", "evaluate crowns.csv --truth 'truth/*.xml' --min-score 0.2")
)
@click.argument("run", type=click.Path())
@click.argument("data", type=click.Path(), required=False)
@click.option("--split", default=None, help="The split to look at; by default all of DATA, or the Run's validation.")
@answer_options(evaluating.evaluate)
@click.option(
    "-o", "--output", type=click.Path(), default=None, help="Write the answer to every sample (.csv, .jsonl, .parquet)."
)
@click.option("--json", "as_json", is_flag=True, help="Scores and details, for programs.")
def evaluate(run: str, data: str | None, output: str | None, as_json: bool, **options: Any) -> int:
    """Score a Run or a checkpoint; DATA is what the Run was trained on, unless you name other data.

    With --truth, RUN is a file or folder of boxes or ethograms made by anything.
    """
    if options["truth"] is None:
        require_learning("Evaluation")
    found = evaluating.evaluate(run, data, **options)
    if output is not None:
        found.save(output)
    tell_decisions(found.facts)
    facts = {"samples": found.samples, "scores": found.scores, "facts": found.facts, "details": found.details}
    if options["truth"] is not None:
        facts |= found.scores
        _say_unlisted(found.details["not_in_truth"], "video" if "behaviours" in found.details else "image")
    tell_program(facts) if as_json else click.echo(str(found))
    return 0


def _say_unlisted(names: list[str], kind: str) -> None:
    """That the truth does not know some images or videos is often a mistake, and sometimes meant."""
    if names:
        count = f"1 {kind}" if len(names) == 1 else f"{len(names):,} {kind}s"
        click.echo(f"{count} with predictions not in the truth, such as {names[0]}.", err=True)
