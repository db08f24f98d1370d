"""`penstock check`: every problem of raw files at once, before hours are spent."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import click

import penstock as ps
from penstock.cli.examples import examples
from penstock.cli.options import column_choices, make_source, source_options
from penstock.cli.wording import in_own_words
from penstock.formats.repeats import lines_of

# About two screens.
SHOWN_LINES = 100


@click.group(epilog=examples("check images pets/", "check boxes crowns.csv --images flights/"))
def check() -> None:
    """Find every problem of images, boxes, rasters or videos; exit code 1 when there are any."""


def _look(kind: Callable[..., Any], paths: tuple[str, ...], as_json: bool, options: dict[str, Any]) -> int:
    decode = options.pop("decode")
    try:
        result = ps.check(make_source(kind, paths, options), decode=decode)
    except ps.DataError as error:
        return _stopped(error, as_json)
    click.echo(json.dumps(result.as_dict(), ensure_ascii=False) if as_json else in_own_words(_shortened(str(result))))
    return 0 if result.ok else 1


def _shortened(text: str) -> str:
    """On a terminal, as much as a person reads; all of it where it is piped or written to a file."""
    lines = text.splitlines()
    if len(lines) <= SHOWN_LINES or not sys.stdout.isatty():
        return text
    hidden = len(lines) - 1 - SHOWN_LINES
    return "\n".join(
        [*lines[:SHOWN_LINES], f"… and {hidden:,} more; pipe this, or pass --json, to see all.", lines[-1]]
    )


def _stopped(error: ps.DataError, as_json: bool) -> int:
    """Say what kept the look from going on, in the same words and keys as a look that went through."""
    problems = [problem.as_dict() for problem in error.problems]
    if as_json:
        click.echo(json.dumps({"ok": False, "counts": {}, "problems": problems}, ensure_ascii=False))
    else:
        click.echo(in_own_words("\n".join(lines_of(error.problems))))
    return 1


_decode = click.option("--decode", is_flag=True, help="Decode every image fully, to find damage inside.")
_json = click.option("--json", "as_json", is_flag=True, help="Every problem, for programs.")


@check.command("images", epilog=examples("check images photos/ --label-from-name '{label}.*'"))
@click.argument("paths", type=click.Path(), nargs=-1, required=True, metavar="PATH")
@source_options(ps.Images)
@_decode
@_json
def check_images(paths: tuple[str, ...], as_json: bool, **options: Any) -> int:
    """Check a folder of images, or a table of paths and labels."""
    return _look(ps.Images, paths, as_json, options)


@check.command("boxes", epilog=examples("check boxes crowns.csv --images flights/"))
@click.argument("paths", type=click.Path(), nargs=-1, required=True)
@source_options(ps.Boxes)
@_decode
@_json
def check_boxes(paths: tuple[str, ...], as_json: bool, **options: Any) -> int:
    """Check a table of boxes against its images."""
    return _look(ps.Boxes, paths, as_json, options)


@check.command("rasters", epilog=examples("check rasters 'flights/*.tif' --boxes crowns.csv"))
@click.argument("paths", type=click.Path(), nargs=-1, required=True)
@source_options(ps.Rasters)
@_decode
@_json
def check_rasters(paths: tuple[str, ...], as_json: bool, **options: Any) -> int:
    """Check rasters and their boxes."""
    return _look(ps.Rasters, paths, as_json, options)


@check.command("videos", epilog=examples("check videos 'videos/*.mp4' --labels 'labels/{stem}.csv'"))
@click.argument("paths", type=click.Path(), nargs=-1, required=True)
@source_options(ps.Videos)
@_decode
@_json
def check_videos(paths: tuple[str, ...], as_json: bool, **options: Any) -> int:
    """Check videos, and that frames and label rows agree."""
    return _look(ps.Videos, paths, as_json, options)


@check.command(
    "deepethogram", short_help="Check a DeepEthogram project.", epilog=examples("check deepethogram mice_deepethogram")
)
@click.argument("project", type=click.Path())
@source_options(ps.DeepEthogram)
@_decode
@_json
def check_deepethogram(project: str, as_json: bool, **options: Any) -> int:
    """Check a DeepEthogram project: its settings, videos, labels and split."""
    return _look(ps.DeepEthogram, (project,), as_json, options)


@check.command("data", epilog=examples("check data train.h5 --label y"))
@click.argument("path", type=click.Path())
@column_choices()
@_decode
@_json
def check_data(path: str, as_json: bool, **options: Any) -> int:
    """Check anything that penstock.open recognises."""
    return _look(ps.open, (path,), as_json, options)
