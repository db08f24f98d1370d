"""The verb `export`: a Source becomes files of another format, whole or not at all; interrupted work goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.errors import PackError, RecipeError
from penstock.formats.exporting.journal import ExportJournal
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
from penstock.packing.manifest import handed_on, skipped_count
from penstock.packing.options import AUTO
from penstock.packing.reader import Pack
from penstock.packing.writer import told_origin
from penstock.samples import Source, Store, as_store
from penstock.storage.blocks import Blocks
from penstock.storage.locations import refuses_urls
from penstock.storage.writing.fields import typed_schema
from penstock.storage.writing.locking import writer_lock
from penstock.storage.writing.places import Places
from penstock.storage.writing.preconditions import check_source, check_unchanged, clear_words, every_damage
from penstock.storage.writing.preparing import BadSample, Preparation, Row
from penstock.storage.writing.progress import ProgressBar
from penstock.storage.writing.stamps import stamp_of_part
from penstock.storage.writing.work import TASK_BYTES, Place, Prepared
from penstock.wording import counted


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
    places.target.parent.mkdir(parents=True, exist_ok=True)
    with writer_lock(places.target):
        places.tidy()
        places.check(resume, overwrite)
        check_source(opened, chosen.preparing())
        chosen = with_pixels_kept(chosen, opened)
        refuse_own_source(opened, places.target)
        if places.target.exists():
            refuse_if_touched(places.target)
        with clear_words(places), every_damage(opened):
            _write(opened, places, chosen, resume, progress)
    return read_export(path)


def _write(source: Store, places: Places, options: ExportOptions, resume: bool, progress: bool | None) -> None:
    exporter = _Exporter(source, places, options)
    exporter.open_journal(resume)
    try:
        with ProgressBar(sum(run.expected for run in exporter.runs), progress, "exporting") as bar:
            exporter.write_pieces(bar)
        exporter.finish()
    except BaseException:
        if not exporter.journal.finished:
            places.abandon()
        raise


class _Exporter:
    """One run of exporting: the source, the format, and what has been finished so far."""

    def __init__(self, source: Store, places: Places, options: ExportOptions) -> None:
        self.source, self.places, self.options = source, places, options
        self.schema = typed_schema(source)
        self.roles = roles_of(self.schema)
        self.names = Names()
        self.runs = plan_runs(source)
        self.format = self._format(any(run.split for run in self.runs))
        self.by_video = self.roles.is_video and self.format.whole_videos
        if self.by_video:
            self.runs = plan_runs(source, by_split=False)
        self.fingerprint = source.fingerprint() or ""
        self.journal = ExportJournal(places)
        self.preparation = self._preparation()
        self.skipped: list[dict[str, Any]] = []
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
                raise RecipeError("executor process is for sources with random access; rasters and videos use threads.")
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
        return isinstance(self.source, Pack) and self.source.manifest.codec == "h264"

    # Where work begins

    def open_journal(self, resume: bool) -> None:
        if resume and self.places.content.exists():
            self.journal.go_on(self._plan())
            self._go_on()
        else:
            self.journal.begin(self._plan())

    def _plan(self) -> dict[str, Any]:
        """What must be the same when work goes on."""
        schema = self.schema
        plan: dict[str, Any] = {
            "options": self.options.content(),
            "fields": [repr(field) for field in schema.fields],
            "classes": list(schema.classes),
            "splits": [run.split for run in self.runs],
            "content of the source": self.fingerprint,
        }
        for run in self.runs:
            if run.parts is None:
                plan[f"samples {run.split}".strip()] = len(run.source)
            else:
                plan[f"files {run.split}".strip()] = {part.key: stamp_of_part(part) for part in run.parts}
        return plan

    def _go_on(self) -> None:
        """Take over what an earlier run finished, after looking whether its sources changed; the rest is removed."""
        known: dict[str, int] = {}
        for number, piece in enumerate(self.journal.finished):
            run = self.runs[piece.run]
            if run.parts is None and not self.fingerprint:
                check_unchanged(run.source, piece.first, self.journal.stamps(number), self.options.worker_count)
            self.skipped += piece.skipped
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

    def write_pieces(self, bar: ProgressBar) -> None:
        finished = self.journal.finished
        bar.advance(sum(piece.rows for piece in finished))
        first = finished[-1].run if finished else 0
        place = Place(*finished[-1].after) if finished else Place(0, 0)
        memory = Blocks(2 * TASK_BYTES)
        for number in range(first, len(self.runs)):
            run = self.runs[number]
            open_piece = _OpenPiece(self, number, place)
            try:
                for prepared in run.prepared(self.preparation, place, memory):
                    open_piece.add(prepared)
                    bar.advance(prepared.sample_count)
                open_piece.close()
            finally:
                open_piece.abandon()
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
        """Write tables and manifest, and give the folder its name."""
        if self.journal.samples == 0:
            first = f" The first is {self.skipped[0]['sample']}: {self.skipped[0]['reason']}." if self.skipped else ""
            raise PackError(
                f"there is nothing to export: {counted(skipped_count(self.skipped), 'sample', 'was')} skipped.{first}"
            )
        self.format.finish(self.journal)
        write_manifest(self.places.content, self._manifest())
        self.places.give_the_name(sync=self.options.sync)

    def _manifest(self) -> dict[str, Any]:
        made_from = told_origin(self.source)
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


class _OpenPiece:
    """The piece that is being written, and what the journal will say of it."""

    def __init__(self, exporter: _Exporter, run_number: int, start: Place) -> None:
        self.exporter, self.run_number = exporter, run_number
        self.run = exporter.runs[run_number]
        self._start_anew(start)

    def _start_anew(self, start: Place) -> None:
        self.piece: Piece | None = None
        self.writer: PieceWriter | None = None
        self.skipped: list[dict[str, Any]] = []
        self.stamps: list[int] = []
        self.start = self.after = start

    def add(self, prepared: Prepared) -> None:
        outcome = prepared.outcome
        if isinstance(outcome, BadSample):
            self.skipped.append(outcome.entry())
        else:
            self._add_row(outcome)
        self.stamps.append(outcome.stamp)
        self.after = prepared.after

    def _add_row(self, row: Row) -> None:
        piece, writer = self._place_for(self.exporter.unit_of(self.run, row))
        writer.add(row)
        piece.rows += 1
        piece.byte_count += len(row.before) + len(row.payload) + len(row.behind)
        note_time(piece, row)

    def _place_for(self, unit: str) -> tuple[Piece, PieceWriter]:
        """The open piece, or a new one where that is full or another output begins."""
        if self.piece is not None and self._is_full(self.piece, unit):
            self.close()
        if self.piece is None or self.writer is None:
            number = len(self.exporter.journal.finished)
            pieces, samples = self.exporter.counts.get(unit, (0, 0))
            self.piece = Piece(number, unit, self.run.split, samples, pieces)
            self.writer = self.exporter.format.begin(self.piece)
        return self.piece, self.writer

    def _is_full(self, piece: Piece, unit: str) -> bool:
        limits = self.exporter.format.limits
        return (
            unit != piece.unit
            or (limits.samples is not None and piece.rows >= limits.samples)
            or (limits.byte_count is not None and piece.byte_count >= limits.byte_count)
        )

    def close(self) -> None:
        """Finish the files and enter them in the journal."""
        self.exporter.skipped += self.skipped
        if self.piece is None or self.writer is None:
            return
        self.writer.close()
        self.exporter.journal.add(self.piece, self.run_number, self.start.sample, self.after, self.stamps, self.skipped)
        self.exporter.count(self.piece.unit, self.piece.rows)
        self._start_anew(self.after)

    def abandon(self) -> None:
        if self.writer is not None:
            self.writer.abandon()
