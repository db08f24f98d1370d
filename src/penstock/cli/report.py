"""`penstock report`: one page on a Run, or on several beside each other."""

from __future__ import annotations

import click

import penstock as ps


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("-o", "--output", default=None, help="The page to write; by default report.html in the first Run.")
def report(runs: tuple[str, ...], output: str | None) -> int:
    """Write a page that needs nothing else: curves, scores, most wrong samples, settings, how the feed did."""
    click.echo(ps.report(runs if len(runs) > 1 else runs[0], output))
    return 0
