"""`penstock pack`: raw files become a pack."""

from __future__ import annotations

from typing import Any

import click

import penstock as ps
from penstock.cli.options import PACK_OPTIONS, make_source, pack_options, source_options
from penstock.reporting.packs import pack_facts, pack_text


@click.group()
def pack() -> None:
    """Turn images, boxes, rasters or videos into a pack that is read fast."""


def _pack(kind: str, paths: tuple[str, ...], running: dict[str, Any], options: dict[str, Any]) -> int:
    source = make_source(kind, paths, options)
    chosen = {name: options[name] for name in PACK_OPTIONS if name in options}
    if kind == "videos":
        chosen.pop("size", None)  # belongs to the source: frames are decoded at that size
        from penstock.cli.estimates import video_choices

        click.echo(video_choices(source, chosen["codec"], chosen["quality"]), err=True)
    if str(chosen["workers"]).isdecimal():
        chosen["workers"] = int(chosen["workers"])
    output = running.pop("output")
    packed = ps.pack(source, output, progress=not running.pop("quiet") and None, **running, **chosen)
    click.echo(pack_text(pack_facts(packed)))
    return 0


def _running(command: Any) -> Any:
    for option in (
        click.option("--quiet", is_flag=True, help="No progress bar."),
        click.option("--overwrite", is_flag=True, help="Replace a pack of this name, once the new one is complete."),
        click.option("--resume", is_flag=True, help="Go on with an interrupted pack."),
        click.option("-o", "--output", required=True, help="The pack to write, such as trees.pack."),
    ):
        command = option(command)
    return command


def _divided(options: dict[str, Any]) -> dict[str, Any]:
    return {name: options.pop(name) for name in ("output", "resume", "overwrite", "quiet")}


@pack.command("images")
@click.argument("path")
@source_options(ps.Images)
@pack_options()
@_running
def pack_images(path: str, **options: Any) -> int:
    """Pack class folders, a plain folder, or a table of paths and labels."""
    return _pack("images", (path,), _divided(options), options)


@pack.command("boxes")
@click.argument("paths", nargs=-1, required=True)
@source_options(ps.Boxes)
@pack_options()
@_running
def pack_boxes(paths: tuple[str, ...], **options: Any) -> int:
    """Pack whole images with their boxes: CSV, VOC, COCO, YOLO, or a map layer."""
    return _pack("boxes", paths, _divided(options), options)


@pack.command("rasters")
@click.argument("paths", nargs=-1, required=True)
@source_options(ps.Rasters)
@pack_options(skip=("executor",))
@_running
def pack_rasters(paths: tuple[str, ...], **options: Any) -> int:
    """Pack rasters of any size as overlapping tiles, with their boxes."""
    return _pack("rasters", paths, _divided(options), options)


@pack.command("videos")
@click.argument("paths", nargs=-1, required=True)
@source_options(ps.Videos)
@pack_options(skip=("size", "longest_side", "shortest_side", "executor"))
@_running
def pack_videos(paths: tuple[str, ...], **options: Any) -> int:
    """Pack the frames of videos with a label vector each."""
    return _pack("videos", paths, _divided(options), options)
