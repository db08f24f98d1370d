"""The verb `export`: a Source becomes files of another format, whole or not at all; interrupted work goes on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.errors import OptionError
from penstock.formats.exporting.journal import ExportJournal, FinishedPiece
from penstock.formats.exporting.manifest import EXPORT, Export, files_of, read_export, refuse_if_touched, write_manifest
from penstock.formats.exporting.names import Names, clean
from penstock.formats.exporting.options import ExportOptions, check_folder_name, make_options, with_pixels_kept
from penstock.formats.exporting.own_source import refuse_own_source
from penstock.formats.exporting.pieces import NAMES, Brief, FormatWriter, Piece, PieceWriter
from penstock.formats.exporting.roles import roles_of
from penstock.formats.exporting.runs import Run, plan_runs
from penstock.formats.exporting.videos import frame_rate, note_time, video_of
from penstock.formats.exports.export_manifest import fields_as_dicts
from penstock.formats.format import load
from penstock.formats.registry import written_formats
from penstock.samples import Source, Store, as_store
from penstock.samples.store import handed_on
from penstock.storage.blocks import Blocks
from penstock.storage.locations import refuses_urls
from penstock.storage.writing.fields import typed_schema
from penstock.storage.writing.options import AUTO
from penstock.storage.writing.places import Places
from penstock.storage.writing.preconditions import check_unchanged, clear_words, every_damage
from penstock.storage.writing.preparing import BadSample, Preparation, Row
from penstock.storage.writing.work import TASK_BYTES, Place, Prepared
from penstock.storage.writing.writer import Output, Writer, place_to_write, plan_of, stamps_of_parts


@refuses_urls()
def export(
    source: Source | str | Path,
    path: str | Path,
    *,
    to: str,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool | None = None,
    **options: Any,
) -> Export:
    """Write a source, or what `ps.open` reads at a path, as files of another format into a folder.

    `options` are those of `ExportOptions`.

    to         tfrecord, hdf5, directory, webdataset, numpy, yolo, coco, voc or csv
    resume     go on with an interrupted export of the same data and options
    overwrite  replace an export that is there (only once the new one is complete)
    progress   show a bar on stderr; by default when that is a terminal
    """
    chosen = make_options({"to": to, **options})
    check_folder_name(path)
    opened = as_store(source)
    places = Places(path, EXPORT)
    with place_to_write(places, opened, chosen.preparing(), resume, overwrite):
        chosen = with_pixels_kept(chosen, opened)
        refuse_own_source(opened, places.target)
        if places.target.exists():
            refuse_if_touched(places.target)
        with clear_words(places), every_damage(opened):
            _Exporter(opened, places, chosen).write(resume, progress)
    return read_export(path)


class _Exporter(Writer[FinishedPiece]):
    """One run of exporting: pieces of a format, its tables, export.yaml."""

    verb, doing = "export", "exporting"
    journal: ExportJournal

    def __init__(self, source: Store, places: Places, options: ExportOptions) -> None:
        super().__init__(source, places, typed_schema(source), ExportJournal(places))
        self.options = options
        self.syncs = options.sync
        self.roles = roles_of(self.schema)
        self.names = Names()
        self.runs = plan_runs(source)
        self.format = self._format(any(run.split for run in self.runs))
        self.by_video = self.roles.is_video and self.format.whole_videos
        if self.by_video:
            self.runs = plan_runs(source, by_split=False)
        self.fingerprint = source.fingerprint() or ""
        self.preparation = self._preparation()
        self.memory = Blocks(2 * TASK_BYTES)
        self.counts: dict[str, tuple[int, int]] = {}
        self.videos: dict[str, str] = {}

    def _format(self, has_splits: bool) -> FormatWriter:
        brief = Brief(self.schema, self.roles, self.options, has_splits, self.places.content, self.names)
        made: FormatWriter = load(written_formats()[self.options.to].writer)(brief)
        return made

    def _preparation(self) -> Preparation:
        options = self.options.preparing()
        default = "jpeg" if self._stores_video() else self.source.default_codec
        if self.source.parts is not None:
            if options.executor == "process":
                raise OptionError("executor process is for sources with random access; rasters and videos use threads.")
            options = replace(options, codec=default if options.codec == AUTO else options.codec)
        rendering = self.format.rendering()
        return Preparation(
            self.schema,
            options,
            default,
            measures=False,
            stamps=not self.fingerprint,
            finish=rendering,
            finish_together=rendering.frame,
        )

    def _stores_video(self) -> bool:
        """Whether it is a pack of groups of pictures, which have lost more than JPEG takes."""
        return self.source.stored_codec == "h264"

    # Where work begins

    @property
    def expected(self) -> int:
        return sum(run.expected for run in self.runs)

    def plan(self) -> dict[str, Any]:
        plan = plan_of(self.options.content(), self.schema, [run.split for run in self.runs])
        plan["content of the source"] = self.fingerprint
        for run in self.runs:
            if run.parts is None:
                plan[f"samples {run.split}".strip()] = len(run.source)
            else:
                plan[f"files {run.split}".strip()] = stamps_of_parts(run.parts)
        return plan

    def take_over(self) -> None:
        known: dict[str, int] = {}
        for number, piece in enumerate(self.journal.finished):
            run = self.runs[piece.run]
            if run.parts is None and not self.fingerprint:
                check_unchanged(run.source, piece.first, self.journal.stamps(number), self.options.worker_count)
            self.count(piece.unit, piece.rows)
            known.update(self.journal.files(number))
            for name in self.journal.piece_lines(number, NAMES):
                self.names.take(name)
            if self.by_video:
                self.names.take(piece.unit)
                self.videos[piece.facts["video"]] = piece.unit
        for path in files_of(self.places.content):
            size = known.get(path.relative_to(self.places.content).as_posix())
            if size is None:
                path.unlink()
            elif path.stat().st_size > size:  # a file that pieces append to
                with path.open("r+b") as file:
                    file.truncate(size)

    # The pieces

    def outputs(self) -> Iterator[tuple[Output, Iterator[Prepared]]]:
        finished = self.journal.finished
        first = finished[-1].run if finished else 0
        place = Place(*finished[-1].after) if finished else Place(0, 0)
        for number in range(first, len(self.runs)):
            rows = self.runs[number].prepared(self.preparation, place, self.memory)
            yield _OpenPiece(self, number, place), rows
            place = Place(0, 0)

    def unit_of(self, run: Run, row: Row) -> str:
        """The output that a row belongs to: its video under a name that no other has, or its split."""
        if not self.by_video:
            return run.split
        video = video_of(row)
        if video not in self.videos:
            self.videos[video] = self.names.claim(clean(video, folders=False))
        return self.videos[video]

    def count(self, unit: str, rows: int) -> None:
        pieces, samples = self.counts.get(unit, (0, 0))
        self.counts[unit] = pieces + 1, samples + rows

    # The end

    def finish(self) -> None:
        """Write tables and manifest."""
        self.format.finish(self.journal)
        write_manifest(self.places.content, self._manifest())

    def _manifest(self) -> dict[str, Any]:
        made_from = self.source.made_from_for_copies()
        units = self.journal.units
        return {
            "to": self.options.to,
            "samples": self.journal.samples,
            "splits": self.journal.splits,
            "classes": list(self.roles.classes),
            "fields": fields_as_dicts(self.schema),
            "videos": [frame_rate(unit) for unit in units] if self.by_video else [],
            "left_out": list(self.format.left_out()),
            "options": self.options.content(),
            "made_from": {"source": self.source.kind.__name__, **made_from},
            "handed_on": handed_on(made_from),
            "skipped": self.skipped,
        }


class _OpenPiece(Output):
    """The piece that is being written."""

    def __init__(self, exporter: _Exporter, run_number: int, start: Place) -> None:
        self.exporter, self.run_number = exporter, run_number
        self.run = exporter.runs[run_number]
        super().__init__(start)

    def start_anew(self, start: Place) -> None:
        super().start_anew(start)
        self.piece: Piece | None = None
        self.writer: PieceWriter | None = None

    def is_full(self, outcome: Row | BadSample) -> bool:
        """Whether the open piece is full, or another output begins."""
        if self.piece is None or isinstance(outcome, BadSample):
            return False
        limits = self.exporter.format.limits
        return (
            self.exporter.unit_of(self.run, outcome) != self.piece.unit
            or (limits.samples is not None and self.piece.rows >= limits.samples)
            or (limits.byte_count is not None and self.piece.byte_count >= limits.byte_count)
        )

    def add_row(self, row: Row, prepared: Prepared) -> None:
        piece, writer = self._opened(row)
        writer.add(row)
        piece.rows += 1
        piece.byte_count += len(row.before) + len(row.payload) + len(row.behind)
        note_time(piece, row)

    def _opened(self, row: Row) -> tuple[Piece, PieceWriter]:
        if self.piece is None or self.writer is None:
            unit = self.exporter.unit_of(self.run, row)
            number = len(self.exporter.journal.finished)
            pieces, samples = self.exporter.counts.get(unit, (0, 0))
            self.piece = Piece(number, unit, self.run.split, samples, pieces)
            self.writer = self.exporter.format.begin(self.piece)
        return self.piece, self.writer

    def close(self) -> None:
        self.exporter.skipped += self.skipped
        if self.piece is None or self.writer is None:
            return
        self.writer.close()
        self.exporter.journal.add(self.piece, self.run_number, self.start.sample, self.after, self.stamps, self.skipped)
        self.exporter.count(self.piece.unit, self.piece.rows)
        self.start_anew(self.after)

    def abandon(self) -> None:
        if self.writer is not None:
            self.writer.abandon()
