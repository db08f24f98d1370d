"""The options of the command line, written once and shared by `check` and `pack`.

Sources of each kind have options of their own; their defaults are those of the Python classes, looked up, not repeated.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

import penstock as ps
from penstock.formats.columns.options import BOX_FORMATS, CHANNELS, LAYOUTS, ColumnOptions
from penstock.formats.exporting.options import CODECS as EXPORT_CODECS
from penstock.formats.exporting.options import SPELLINGS, ExportOptions
from penstock.formats.registry import written_formats
from penstock.formats.videos.label_options import EMPTY_LABELS, UNITS
from penstock.packing.options import PackOptions
from penstock.storage.writing.options import AUTO, CODECS
from penstock.wording import counted

Command = TypeVar("Command", bound=Callable[..., Any])

# The type of an option that may be given several times; it is called by the singular.
MANY: Any = tuple


def pixels_or_metres(text: str) -> float | str:
    """A number of pixels, or a text such as 2m, which the source checks."""
    try:
        return float(text)
    except ValueError:
        return text


# Options of sources: name → (click type, help). Defaults come from the constructors.
SOURCE_OPTIONS: dict[str, tuple[Any, str]] = {
    "images": (str, "Folder of the images that a table names; by default beside the table."),
    "label_from_name": (str, "Pattern for file names, such as '{label}.*' for cat.0.jpg."),
    "labels": (str, "Labels of the videos: a file, a folder, or a pattern such as 'labels/{stem}.csv'."),
    "boxes": (str, "Table, layer or folder of boxes."),
    "classes": (str, "File with one class a line (or class,number), or A,B,C: fixes names and order."),
    "point_buffer": (
        pixels_or_metres,
        "Points become boxes that reach this far from them: pixels, or metres such as 2m.",
    ),
    "clip_boxes": (bool, "Cut boxes at the border of their image instead of reporting them."),
    "group_from": (str, "Pattern for file names, such as '{animal}_*', or a column: what must stay in one split."),
    "split_file": (str, "File with train, val and test as DeepEthogram writes it; auto: that of the project; none."),
    "prefer": (
        click.Choice(["converted", "original"]),
        "Where a video is there as frames or HDF5 and as a video file: which is read.",
    ),
    "split_from": (str, "Column of the table that names the split; by default the one called split."),
    "val": (str, "Second table, whose images are for validation; those of the first are for training."),
    "tile_px": (int, "Side of a tile in pixels."),
    "overlap": (float, "Overlap of neighbouring tiles, as a fraction."),
    "gsd": (
        float,
        "Metres of ground in a pixel that rasters of any resolution are brought to; by default as they are.",
    ),
    "min_kept": (float, "A tile keeps a box of which more than this share lies inside it."),
    "lost_boxes": (
        click.Choice(["assign", "drop", "error"]),
        "A box that no tile keeps goes to the tile with most of it, is left out, or stops the packing.",
    ),
    "bands": (str, "Bands for red, green and blue, such as 1,2,3; counted from 1."),
    "scale": (str, "LOW,HIGH values or LOW-HIGH percentiles that become 0 to 255; auto: 8-bit as it is, else 2-98."),
    "allow_drivers": (MANY, "Let this driver of GDAL, such as VRT, open rasters too; may be given several times."),
    "allow_outside": (bool, "Allow paths in tables to leave the folder of the images."),
    "ignore_other_images": (bool, "Ignore rows that name an image which is not among these rasters."),
    "nodata": (str, "Value of pixels without data, or none; by default what the raster says."),
    "skip_nodata": (bool, "Leave out tiles without any data."),
    "size": (str, "WIDTHxHEIGHT of the stored frames."),
    "fit": (click.Choice(["stretch", "pad", "crop"]), "How a frame of other proportions comes to that size."),
    "crop": (str, "Region of interest x,y,width,height, cut out before anything else."),
    "units": (click.Choice(UNITS), "What start and stop of events are counted in."),
    "subject": (str, "Events of this subject alone; each: a class for each, such as mouseA:groom; any: put together."),
    "empty_labels": (click.Choice(EMPTY_LABELS), "What an empty cell of a frame table is: an error, or -1."),
}

PACK_OPTIONS: dict[str, tuple[Any, str]] = {
    "codec": (
        click.Choice([codec for codec in CODECS if codec != "h264"]),
        "auto keeps the bytes of image files as they are; other pixels become png.",
    ),
    "quality": (int, "Of jpeg, webp and h264, 1 to 100."),
    "longest_side": (int, "Shrink images so that the longest side has this many pixels."),
    "shortest_side": (int, "Shrink images so that the shortest side has this many pixels."),
    "size": (str, "WIDTHxHEIGHT, exactly."),
    "split": (str, "Fractions by group, such as train=0.8,val=0.2; or one name for all; auto: the source's own first."),
    "seed": (int, "Decides which group goes to which split."),
    "validate": (bool, "Decode every image once while packing."),
    "on_bad_sample": (click.Choice(["raise", "skip"]), "skip leaves it out, counts it and lists it in the pack."),
    "shard_mb": (int, "Size at which a shard is closed."),
    "workers": (str, "auto: one for each core."),
    "executor": (
        click.Choice(["thread", "process"]),
        "process for sources whose Python code holds the interpreter lock.",
    ),
    "memory": (str, "What large images may take while they are decoded, such as 2GB; auto: half of what is free."),
    "sync": (bool, "Wait until everything is on the disk before it has its name; --no-sync for scratch disks."),
}

EXPORT_OPTIONS: dict[str, tuple[Any, str]] = {
    "layout": (
        click.Choice(sorted({AUTO, *(layout for one in written_formats().values() for layout in one.layouts)})),
        "directory: named or numbered; hdf5: deepethogram; numpy: npz.",
    ),
    "codec": (
        click.Choice([*EXPORT_CODECS, *SPELLINGS]),
        "auto keeps the bytes of image files as they are; frames of videos become jpeg, other pixels png.",
    ),
    "quality": (int, "Of jpeg and webp, 1 to 100."),
    **{name: PACK_OPTIONS[name] for name in ("longest_side", "shortest_side", "size")},
    "shard_samples": (int, "Samples at which a shard is closed (tfrecord, webdataset, hdf5)."),
    "shard_mb": (int, "Size at which a shard is closed; 128 for tfrecord and webdataset if neither is given."),
    "on_bad_sample": (click.Choice(["raise", "skip"]), "skip leaves it out, counts it and lists it in export.yaml."),
    **{name: PACK_OPTIONS[name] for name in ("workers", "executor", "memory", "sync")},
}

# Options of sources that `export` takes; which source reads the data, looking at it decides.
EXPORTED_SOURCE_OPTIONS = (
    *("labels", "boxes", "images", "classes", "group_from", "split_from", "tile_px", "overlap", "fit", "crop"),
    *("units", "subject", "empty_labels", "prefer", "allow_outside", "allow_drivers"),
)

# Which column is which field, for formats that have columns; `fields` is for Python.
COLUMN_OPTIONS: dict[str, tuple[Any, str]] = {
    "image": (str, "Column of the images."),
    "label": (str, "Column of the classes."),
    "boxes": (str, "Column of the boxes."),
    "box_label": (str, "Column of the classes of the boxes."),
    "classes": SOURCE_OPTIONS["classes"],
    "group_from": (str, "Column, or pattern for file names where samples are files: what must stay in one split."),
    "split_from": (str, "Column that names the split; by default what the files say."),
    "layout": (click.Choice(LAYOUTS), "Axes of stored pixels; auto: channels are the last axis of 1, 3 or 4."),
    "box_format": (click.Choice(BOX_FORMATS), "auto: x y width height in columns called bbox, else corners."),
    "channels": (click.Choice(CHANNELS), "Order of colours; auto: rgb, except in frame files of DeepEthogram."),
}

# Parts that come in order are packed by threads; frames are decoded at the size that Videos is told.
SKIPPED_PACK_OPTIONS = {
    "Rasters": ("executor",),
    "Videos": ("executor", "size", "longest_side", "shortest_side"),
    "DeepEthogram": ("executor", "size", "longest_side", "shortest_side"),
}

# Sources of frames, whose size belongs to the source and not to packing.
FRAME_SOURCES = ("Videos", "DeepEthogram")

# Frames come in order, which h264 needs.
VIDEO_CODECS = (click.Choice(CODECS), "auto is jpeg.")

# Images have classes where videos have tables of behaviours.
IMAGE_LABELS = (click.Choice(["auto", "folders", "none"]), "Whether sub-folders are classes; auto looks.")


def source_options(kind: type[Any]) -> Callable[[Command], Command]:
    """Add the options of a source class to a command."""
    parameters = inspect.signature(kind.__init__).parameters
    defaults = {
        name: parameter.default
        for name, parameter in parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and name in SOURCE_OPTIONS
    }
    options = {name: SOURCE_OPTIONS[name] for name in defaults}
    if kind is ps.Images:
        options["labels"] = IMAGE_LABELS
    return adding(options, defaults)


def column_choices() -> Callable[[Command], Command]:
    """Add the options of columns to a command that takes any format."""
    defaults = {field.name: field.default for field in dataclasses.fields(ColumnOptions)}
    return adding(COLUMN_OPTIONS, defaults)


def open_data(paths: Sequence[str], options: dict[str, Any]) -> Any:
    """The source that `open` recognises, with those options that were given."""
    defaults = {field.name: field.default for field in dataclasses.fields(ColumnOptions)}
    given = {name: options[name] for name in COLUMN_OPTIONS if options.get(name) != defaults[name]}
    return ps.open(paths[0], **given)


def pack_options(kind: type[Any]) -> Callable[[Command], Command]:
    """Add the options of packing to a command, as far as they make sense for a source class."""
    skip = SKIPPED_PACK_OPTIONS.get(kind.__name__, ())
    options = {**PACK_OPTIONS, **({"codec": VIDEO_CODECS} if kind.__name__ in FRAME_SOURCES else {})}
    defaults = {field.name: field.default for field in dataclasses.fields(PackOptions) if field.name not in skip}
    return adding({name: options[name] for name in defaults}, defaults)


def export_options() -> Callable[[Command], Command]:
    """Add the options of exporting, and those of sources without a default: only what is given is passed on."""
    own = {field.name: field.default for field in dataclasses.fields(ExportOptions) if field.name in EXPORT_OPTIONS}
    sources = {name: SOURCE_OPTIONS[name] for name in EXPORTED_SOURCE_OPTIONS}
    unset = {name: False if kind is bool else None for name, (kind, _) in sources.items()}
    return adding({**EXPORT_OPTIONS, **sources}, {**own, **unset})


def adding(options: dict[str, tuple[Any, str]], defaults: dict[str, Any]) -> Callable[[Command], Command]:
    """Add options to a command, each with its Python default."""
    decorators = [_option(name, kind, text, defaults[name]) for name, (kind, text) in options.items()]
    return lambda command: functools.reduce(lambda inner, decorate: decorate(inner), reversed(decorators), command)


def _option(name: str, kind: Any, text: str, default: Any) -> Callable[[Any], Any]:
    flag = "--" + name.replace("_", "-")
    if kind is bool and default:
        return click.option(f"{flag}/--no-{name}", name, default=True, show_default=True, help=text)
    if kind is bool:
        return click.option(flag, name, is_flag=True, default=default, help=text)
    if kind is MANY:
        return click.option(flag.removesuffix("s"), flag, name, multiple=True, default=default, help=text)
    return click.option(flag, name, type=kind, default=default, show_default=default is not None, help=text)


def make_source(kind: Callable[..., Any], paths: Sequence[str], options: dict[str, Any]) -> Any:
    """The source that a command names, from its paths and the options of its class."""
    if kind is ps.open:
        return open_data(paths, options)
    if kind is ps.Images and len(paths) > 1:
        raise ps.OptionError(
            f"images are given as one folder or one table, and here are {counted(len(paths), 'path')}, "
            f"the first {paths[0]}. "
            "Name their folder, without *."
        )
    given: Any = list(paths) if len(paths) > 1 else paths[0]
    chosen = {name: value for name, value in options.items() if name in inspect.signature(kind).parameters}
    return kind(given, **chosen)
