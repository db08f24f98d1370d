"""`penstock pack`: raw files become a pack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

import penstock as ps
from penstock.cli.examples import examples
from penstock.cli.options import (
    FRAME_SOURCES,
    PACK_OPTIONS,
    column_choices,
    make_source,
    pack_options,
    source_options,
)
from penstock.cli.programs import tell_program
from penstock.cli.wording import in_own_words
from penstock.packing.advice import warnings_of
from penstock.packing.options import make_options
from penstock.packing.writer import PACK, write_pack
from penstock.reporting.packs import pack_facts, pack_text
from penstock.storage.writing.places import Places


@click.group(
    epilog=examples("pack images pets/ -o pets.pack", "pack rasters 'flights/*.tif' --boxes crowns.csv -o crowns.pack")
)
def pack() -> None:
    """Turn images, boxes, rasters or videos into a pack that is read fast."""


def _pack(kind: Callable[..., Any], paths: tuple[str, ...], options: dict[str, Any]) -> int:
    running = {name: options.pop(name) for name in ("output", "resume", "overwrite", "quiet")}
    as_json = options.pop("as_json")
    chosen = _pack_choices(kind, options)
    make_options(chosen)  # a wrong option is said before any file is read
    source = make_source(kind, paths, options)
    if not running["quiet"]:
        _tell_before(source, chosen)
    packed = _packed(source, running, chosen)
    facts = pack_facts(packed)
    tell_program(facts) if as_json else click.echo(pack_text(facts))
    return 0


def _pack_choices(kind: Callable[..., Any], options: dict[str, Any]) -> dict[str, Any]:
    """The options that belong to packing; the size of frames belongs to their source."""
    names = [
        name for name in PACK_OPTIONS if name in options and not (kind.__name__ in FRAME_SOURCES and name == "size")
    ]
    chosen = {name: options[name] for name in names}
    if chosen["workers"].isdecimal():
        chosen["workers"] = int(chosen["workers"])
    return chosen


def _tell_before(source: Any, chosen: dict[str, Any]) -> None:
    """What a user wants to know before it takes time: warnings, and for videos what each codec would cost."""
    for text in warnings_of(source):
        click.echo(in_own_words(text), err=True)
    if source.kind.__name__ in FRAME_SOURCES:
        from penstock.cli.estimates import video_choices

        words = video_choices(source, chosen["codec"], chosen["quality"])
        if words:
            click.echo(words, err=True)


def _packed(source: Any, running: dict[str, Any], chosen: dict[str, Any]) -> ps.Pack:
    output, quiet = running.pop("output"), running.pop("quiet")
    try:
        return write_pack(source, output, progress=False if quiet else None, **running, **chosen)
    except KeyboardInterrupt:
        if Places(output, PACK).workshop.exists():
            click.echo("\nFinished shards are kept: run the same command with --resume to go on.", err=True)
        raise


def _running(command: Any) -> Any:
    for option in (
        click.option("--json", "as_json", is_flag=True, help="What is in the pack, for programs."),
        click.option("--quiet", is_flag=True, help="No progress bar, no warnings, no table of codecs."),
        click.option("--overwrite", is_flag=True, help="Replace a pack of this name, once the new one is complete."),
        click.option("--resume", is_flag=True, help="Go on with an interrupted pack, if there is one."),
        click.option("-o", "--output", type=click.Path(), required=True, help="The pack to write, such as trees.pack."),
    ):
        command = option(command)
    return command


@pack.command(
    "images",
    epilog=examples(
        "pack images pets/ -o pets.pack",
        "pack images photos/ --label-from-name '{label}.*' --shortest-side 256 -o photos.pack",
    ),
)
@click.argument("paths", type=click.Path(), nargs=-1, required=True, metavar="PATH")
@source_options(ps.Images)
@pack_options(ps.Images)
@_running
def pack_images(paths: tuple[str, ...], **options: Any) -> int:
    """Pack class folders, a plain folder, or a table of paths and labels."""
    return _pack(ps.Images, paths, options)


@pack.command("boxes", epilog=examples("pack boxes crowns.csv --images flights/ -o trees.pack"))
@click.argument("paths", type=click.Path(), nargs=-1, required=True)
@source_options(ps.Boxes)
@pack_options(ps.Boxes)
@_running
def pack_boxes(paths: tuple[str, ...], **options: Any) -> int:
    """Pack whole images with their boxes: CSV, VOC, COCO, YOLO, or a map layer."""
    return _pack(ps.Boxes, paths, options)


@pack.command(
    "rasters",
    epilog=examples("pack rasters 'flights/*.tif' --boxes crowns.csv --tile-px 400 --overlap 0.05 -o crowns.pack"),
)
@click.argument("paths", type=click.Path(), nargs=-1, required=True)
@source_options(ps.Rasters)
@pack_options(ps.Rasters)
@_running
def pack_rasters(paths: tuple[str, ...], **options: Any) -> int:
    """Pack rasters of any size as overlapping tiles, with their boxes."""
    return _pack(ps.Rasters, paths, options)


@pack.command(
    "videos", epilog=examples("pack videos 'videos/*.mp4' --labels 'labels/{stem}.csv' --size 256x256 -o mice.pack")
)
@click.argument("paths", type=click.Path(), nargs=-1, required=True)
@source_options(ps.Videos)
@pack_options(ps.Videos)
@_running
def pack_videos(paths: tuple[str, ...], **options: Any) -> int:
    """Pack the frames of videos with a label vector each."""
    return _pack(ps.Videos, paths, options)


@pack.command(
    "deepethogram",
    short_help="Pack a DeepEthogram project.",
    epilog=examples("pack deepethogram mice_deepethogram -o mice.pack"),
)
@click.argument("project", type=click.Path())
@source_options(ps.DeepEthogram)
@pack_options(ps.DeepEthogram)
@_running
def pack_deepethogram(project: str, **options: Any) -> int:
    """Pack the videos of a DeepEthogram project, with its labels and its split."""
    return _pack(ps.DeepEthogram, (project,), options)


@pack.command(
    "data",
    short_help="Pack anything that penstock.open recognises.",
    epilog=examples("pack data shards/ -o shards.pack", "pack data train.h5 --label y -o train.pack"),
)
@click.argument("path", type=click.Path())
@column_choices()
@pack_options(ps.Images)
@_running
def pack_data(path: str, **options: Any) -> int:
    """Pack anything that penstock.open recognises: TFRecord, tar, HDF5, NumPy, Parquet, Hugging Face, MDS, a pack."""
    return _pack(ps.open, (path,), options)
