"""`penstock report`: one page on a Run, or on several beside each other."""

from __future__ import annotations

from typing import Any

import click

import penstock as ps
from penstock.cli.examples import examples
from penstock.cli.options import SOURCE_OPTIONS


@click.command(
    epilog=examples(
        "report runs/pets -o pets.html", "report crowns.csv --truth 'truth/*.xml' --images flights/ -o crowns.html"
    )
)
@click.argument("runs", type=click.Path(), nargs=-1, required=True, metavar="RUN...")
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    default=None,
    help="The page to write; by default report.html in the first Run.",
)
@click.option("--truth", default=None, help="RUN is a file of predicted boxes, and these are the true ones.")
@click.option("--images", default=None, help="Folder of the images of predicted boxes; by default beside their file.")
@click.option("--min-score", type=float, default=None, help="Leave out predicted boxes below this score.")
@click.option(
    "--allow-driver", "--allow-drivers", "allow_drivers", multiple=True, help=SOURCE_OPTIONS["allow_drivers"][1]
)
def report(runs: tuple[str, ...], output: str | None, **options: Any) -> int:
    """Write a page that needs nothing else: curves, scores, most wrong samples, settings, how the feed did.

    A file of predicted boxes may stand in place of a Run, with or without --truth.
    """
    click.echo(ps.report(runs if len(runs) > 1 else runs[0], output, **options))
    return 0
