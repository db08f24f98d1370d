"""`penstock export`: any data becomes files of another format."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import click

import penstock as ps
from penstock.cli.examples import examples
from penstock.cli.options import EXPORT_OPTIONS, EXPORTED_SOURCE_OPTIONS, FRAME_SOURCES, export_options
from penstock.cli.programs import tell_program
from penstock.formats.exporting.manifest import EXPORT
from penstock.formats.exporting.options import check_folder_name, make_options
from penstock.formats.registry import written_formats
from penstock.opening import constructor, kind_of
from penstock.reporting.exports import export_text
from penstock.storage.writing.places import Places


@click.command(
    epilog=examples(
        "export crowns.pack --to coco -o crowns/", "export 'videos/*.mp4' --to hdf5 --layout deepethogram -o frames/"
    )
)
@click.argument("sources", type=click.Path(), nargs=-1, required=True, metavar="SOURCE...")
@click.option("--to", required=True, metavar=f"[{'|'.join(written_formats())}]", help="The format to write.")
@click.option("-o", "--output", type=click.Path(), required=True, help="The folder to write.")
@click.option("--resume", is_flag=True, help="Go on with an interrupted export, if there is one.")
@click.option("--overwrite", is_flag=True, help="Replace an export of this name, once the new one is complete.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
@export_options()
@click.option("--json", "as_json", is_flag=True, help="What was written, for programs.")
def export(sources: tuple[str, ...], as_json: bool, **options: Any) -> int:
    """Write a pack, images, boxes, rasters, videos, a DeepEthogram project, or anything else that penstock.open
    recognises, as files of another format."""
    running = {name: options.pop(name) for name in ("output", "resume", "overwrite", "quiet")}
    chosen = {"to": options.pop("to"), **{name: options.pop(name) for name in EXPORT_OPTIONS}}
    if chosen["workers"].isdecimal():
        chosen["workers"] = int(chosen["workers"])
    make_options(chosen)  # a wrong option is said before any file is read
    check_folder_name(running["output"])
    given = {name: options[name] for name in EXPORTED_SOURCE_OPTIONS if options[name]}
    written = _exported(_source(sources, given, chosen), running, chosen)
    tell_program(vars(written)) if as_json else click.echo(export_text(written))
    return 0


def _source(paths: Sequence[str], given: dict[str, Any], chosen: dict[str, Any]) -> Any:
    """The source that reads these paths; the size of frames belongs to it, so that they are decoded at that size."""
    kind = _kind(paths, given)
    if kind == "Pack":
        _refuse(kind, given)
        return ps.open(paths[0])
    if kind in FRAME_SOURCES:
        given["size"] = chosen.pop("size")
    if kind == "Boxes" and "boxes" in given:
        paths, given["images"] = [given.pop("boxes")], paths[0]
    make = constructor(kind)
    legal = inspect.signature(make).parameters
    if not any(one.kind is inspect.Parameter.VAR_KEYWORD for one in legal.values()):
        _refuse(kind, {name: value for name, value in given.items() if name not in legal})
    return make(list(paths) if len(paths) > 1 else paths[0], **given)


def _kind(paths: Sequence[str], given: dict[str, Any]) -> str:
    """The class that reads all of these paths."""
    kinds = {kind_of(path): path for path in paths}
    if len(kinds) > 1:
        described = ", ".join(f"{path} ({kind or 'not recognised'})" for kind, path in kinds.items())
        raise ps.OptionError(f"these are data of several kinds: {described}. Export each for itself.")
    ((kind, first),) = kinds.items()
    if kind == "Images" and "boxes" in given:
        return "Boxes"
    if len(paths) > 1 and kind in ("Pack", "Images", "DeepEthogram"):
        raise ps.OptionError(f"{kind} takes one path, and here are {len(paths):,}, the first {first}.")
    if not kind:
        ps.open(first)  # which says what is there and what was looked for
    return kind


def _refuse(kind: str, unknown: dict[str, Any]) -> None:
    if unknown:
        flag = "--" + next(iter(unknown)).replace("_", "-")
        raise ps.OptionError(f"{flag} says nothing to {kind}, which reads these data. Leave it out.")


def _exported(source: Any, running: dict[str, Any], chosen: dict[str, Any]) -> ps.Export:
    output, quiet = running.pop("output"), running.pop("quiet")
    try:
        return ps.export(source, output, progress=False if quiet else None, **running, **chosen)
    except KeyboardInterrupt:
        if Places(output, EXPORT).workshop.exists():
            click.echo("\nWhat is finished is kept: run the same command with --resume to go on.", err=True)
        raise
