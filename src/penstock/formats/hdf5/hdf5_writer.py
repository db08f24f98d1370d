"""HDF5: one file for each video, or for each split; with shard options, numbered ones.

    image      one row for each sample: the bytes of an image file (variable length), or N×H×W×3 pixels for codec raw
    label, labels, time, frame …   fields by their names     boxes, box_label   variable length; boxes as x1 y1 x2 y2 …
    key, group, split              texts                     <name>_shape       of fields whose size differs
    classes    names of the classes                          attributes         fps (videos with a clock), samples

The layout deepethogram has `<video>/<video>.h5` with a dataset `frame`, as DeepEthogram writes and reads it: it hands
RGB to an encoder for BGR and turns it back when it reads, so red and blue are exchanged in these images. Labels are in
`<video>/<video>_labels.csv`.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from penstock.errors import OptionError, require
from penstock.formats.exporting.pieces import Brief, Finished, Limits, Piece, PieceWriter, csv_line
from penstock.formats.exporting.rendering import KEPT_KINDS, Rendering
from penstock.formats.exporting.shard_files import shard_name
from penstock.formats.exporting.tables import write_table
from penstock.formats.exporting.videos import frames_per_second
from penstock.formats.exports.export_manifest import FRAME_LIST_NAME
from penstock.formats.hdf5.hdf5_writer_columns import Column, columns_of, encoded_column, pixel_column
from penstock.formats.hdf5.steady_file import SteadyFile
from penstock.storage.writing.preparing import Row

BEHAVIOURS = "behaviours"

# DeepEthogram's name of the frames.
DEEPETHOGRAM_FRAMES = "frame"

# Rows are handed over together: a call for each would take most of the time.
HELD_ROWS = 256
HELD_BYTES = 8 << 20


class Hdf5:
    """The format `hdf5`."""

    whole_videos = True

    def __init__(self, brief: Brief) -> None:
        require("h5py", "formats", "Exporting to HDF5")
        self.brief, self.roles, options = brief, brief.roles, brief.options
        self.for_deepethogram = options.layout == "deepethogram"
        if self.for_deepethogram and not self.roles.is_video:
            raise OptionError("layout deepethogram is for frames of videos, and these samples are none.")
        self.sharded = options.shard_samples is not None or options.shard_mb is not None
        if self.sharded and self.roles.is_video:
            raise OptionError("HDF5 has one file for each video; leave shard_samples and shard_mb out.")
        size = None if options.shard_mb is None else options.shard_mb << 20
        self.limits = Limits(options.shard_samples, size)

    def rendering(self) -> Rendering:
        options = self.brief.options
        if self.for_deepethogram:
            return Rendering(("jpeg", "png"), options.quality, swaps_colours=True)
        return Rendering(() if options.codec == "raw" else KEPT_KINDS, options.quality)

    def left_out(self) -> tuple[str, ...]:
        if not self.for_deepethogram:
            return ()
        return tuple(
            field.name for field in self.roles.others if field != self.roles.behaviours and field.name != "frame"
        )

    def begin(self, piece: Piece) -> PieceWriter:
        if piece.place and not self.sharded:
            raise OptionError(
                f"the frames of {piece.unit} do not follow one another in this source, and a file is written at once. "
                "Pack it sorted by video, or export to directory."
            )
        return _FileWriter(self, piece, self._name(piece))

    def _name(self, piece: Piece) -> str:
        if self.for_deepethogram:
            return f"{piece.unit}/{piece.unit}.h5"
        if self.roles.is_video:
            return f"{piece.unit}.h5"
        return shard_name(piece, "h5") if self.sharded else f"{piece.split or 'samples'}.h5"

    def columns(self, piece: Piece, row: Row) -> list[Column]:
        """What a file holds, which its first sample decides."""
        if self.for_deepethogram:
            return [encoded_column(DEEPETHOGRAM_FRAMES)]
        found = columns_of(self.brief, piece)
        if self.roles.image is not None:
            raw = self.brief.options.codec == "raw"
            name = self.roles.image.name
            found.insert(0, pixel_column(name, row) if raw else encoded_column(name))
        return found

    def add_lines(self, piece: Piece, row: Row) -> None:
        if not self.for_deepethogram:
            return
        path = f"{piece.unit}/{piece.unit}.h5"
        piece.add_line(
            FRAME_LIST_NAME, csv_line([path, piece.position, row.values["key"], *self.brief.places_of(piece, row)])
        )
        if self.roles.behaviours is not None:
            piece.add_line(BEHAVIOURS, csv_line([piece.position, *map(int, row.values[self.roles.behaviours.name])]))

    def finish(self, finished: Finished) -> None:
        if not self.for_deepethogram:
            return
        header = ("path", "frame", "key", *self.brief.place_names)
        write_table(self.brief.folder / FRAME_LIST_NAME, header, finished.lines(FRAME_LIST_NAME))
        if self.roles.behaviours is not None:
            for unit in finished.units:
                name = unit["name"]
                path = self.brief.folder / name / f"{name}_labels.csv"
                write_table(path, ["", *self.roles.classes], finished.lines(BEHAVIOURS, unit=name))


class _FileWriter:
    """Writes one file, some hundred rows at a time."""

    def __init__(self, hdf5: Hdf5, piece: Piece, name: str) -> None:
        import h5py

        self.hdf5, self.piece, self.name = hdf5, piece, name
        self.path = hdf5.brief.folder / name
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.disk = SteadyFile(self.path)
        self.file: Any = h5py.File(self.disk, "w")
        self.columns: list[Column] = []
        self.held: list[Row] = []
        self.held_bytes = 0

    def add(self, row: Row) -> None:
        if not self.columns:
            self.columns = self.hdf5.columns(self.piece, row)
            for column in self.columns:
                column.create(self.file)
        self.hdf5.add_lines(self.piece, row)
        self.held.append(row)
        self.held_bytes += len(row.payload)
        if len(self.held) >= HELD_ROWS or self.held_bytes >= HELD_BYTES:
            self._write_held()

    def _write_held(self) -> None:
        for column in self.columns:
            column.append(self.file, self.held)
        self.disk.raise_failure()
        self.held, self.held_bytes = [], 0

    def close(self) -> None:
        self._write_held()
        self._write_attributes()
        self.file.close()
        self.disk.close()
        self.disk.raise_failure()
        self.piece.note_file(self.name, self.path.stat().st_size)

    def _write_attributes(self) -> None:
        import h5py

        facts, attributes = self.piece.facts, self.file.attrs
        if self.hdf5.roles.classes and not self.hdf5.for_deepethogram:
            self.file.create_dataset("classes", data=list(self.hdf5.roles.classes), dtype=h5py.string_dtype())
        fps = frames_per_second(self.piece.rows, facts.get("first_time"), facts.get("last_time"))
        if fps is not None:
            attributes["fps"] = fps
        attributes["samples"] = np.int64(self.piece.rows)

    def abandon(self) -> None:
        """Let go of it, whatever state it is in."""
        with suppress(OSError, RuntimeError, ValueError):
            self.file.close()
        self.disk.close()
