"""The verb `pack`: a Source becomes a pack, whole or not at all, and interrupted work goes on where it stopped."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.packing import layout
from penstock.packing.advice import tell_before
from penstock.packing.index import open_index, write_index
from penstock.packing.journal import FinishedShard, Journal
from penstock.packing.manifest import Manifest, ShardEntry
from penstock.packing.options import PackOptions, make_options
from penstock.packing.reader import Pack
from penstock.packing.shards import ShardWriter, file_checksum
from penstock.packing.splitting import SplitPlan, plan_part_splits, plan_splits
from penstock.samples import Segment, Source, Store, as_store
from penstock.seeds import random_bits
from penstock.storage.blocks import Blocks
from penstock.storage.locations import refuses_urls
from penstock.storage.writing.fields import typed_schema
from penstock.storage.writing.options import AUTO
from penstock.storage.writing.parallel import thread_pool
from penstock.storage.writing.places import Made, Places
from penstock.storage.writing.preconditions import (
    check_quality,
    check_unchanged,
    clear_words,
    every_damage,
)
from penstock.storage.writing.preparing import BadSample, Preparation, Row
from penstock.storage.writing.progress import ProgressBar
from penstock.storage.writing.statistics import SAMPLE_COUNT, ChannelSums
from penstock.storage.writing.work import TASK_BYTES, Place, Prepared, prepared_parts, prepared_samples
from penstock.storage.writing.writer import Output, Writer, place_to_write, plan_of, stamps_of_parts

PACK = Made("pack", layout.MANIFEST_NAME)


@refuses_urls()
def pack(
    source: Source | str | Path,
    path: str | Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool | None = None,
    **options: Any,
) -> Pack:
    """Pack a source, or what `ps.open` reads at a path, into a folder, and open it.

    `options` are those of `PackOptions`.

    resume     go on with an interrupted pack of the same data and options
    overwrite  replace a pack that is there (only once the new one is complete)
    progress   show a bar on stderr, by default when that is a terminal; False also leaves out warnings and advice
    """
    chosen = make_options(options)
    opened = as_store(source)
    if progress is not False:
        tell_before(opened, chosen)
    return write_pack(opened, path, resume=resume, overwrite=overwrite, progress=progress, **options)


def write_pack(
    source: Source | str | Path,
    path: str | Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool | None = None,
    **options: Any,
) -> Pack:
    """The same without a word before it."""
    chosen = make_options(options)
    opened = as_store(source)
    places = Places(path, PACK)
    preparing = chosen.preparing()
    with place_to_write(places, opened, preparing, resume, overwrite):
        check_quality(opened, preparing)
        with clear_words(places), every_damage(opened):
            _PackWriter(opened, places, chosen).write(resume, progress)
    return Pack(path)


class _PackWriter(Writer[FinishedShard]):
    """One run of packing: shards of Arrow, an index, pack.json."""

    verb, doing = "pack", "packing"
    journal: Journal
    pool: Executor

    def __init__(self, source: Store, places: Places, options: PackOptions) -> None:
        super().__init__(source, places, typed_schema(source), Journal(places))
        self.parts: tuple[Segment, ...] | None = None if source.parts is None else tuple(source.parts)
        self.options = self._resolved(options)
        self.syncs = options.sync
        self.measures_all = self._measures_all()
        preparing = self.options.preparing()
        self.preparation = Preparation(self.schema, preparing, source.default_codec, not self.measures_all)
        self.splits = self._plan_splits()
        self.sums = ChannelSums()
        self.raw_size: tuple[int, int] | None = None
        self.memory = Blocks(2 * TASK_BYTES)

    @property
    def expected(self) -> int:
        """How many samples there will be, for the progress bar."""
        return len(self.source) if self.parts is None else sum(part.expected for part in self.parts)

    def _resolved(self, options: PackOptions) -> PackOptions:
        """Options that need knowledge of the source."""
        if self.parts is not None and options.codec == AUTO:
            options = replace(options, codec=self.source.default_codec)
        if options.codec == "h264" and (self.parts is None or "frame" not in self.schema):
            raise OptionError("codec h264 is for videos, whose frames come in order; use jpeg, png, webp or raw here.")
        if self.parts is not None and options.executor == "process":
            raise OptionError("executor process is for sources with random access; rasters and videos use threads.")
        return options

    def _plan_splits(self) -> SplitPlan:
        if self.parts is None:
            return plan_splits(self.source, self.options)
        return plan_part_splits(self.parts, len(self.schema.classes), self.options)

    def _measures_all(self) -> bool:
        """Whether every image is decoded anyway, so that the statistics cover all of them."""
        keeps = self.source.encoded_images and self.options.codec == AUTO
        must_decode = self.options.validate or self.options.changes_pixels or not keeps
        return must_decode or len(self.source) <= SAMPLE_COUNT

    # Where work begins

    def plan(self) -> dict[str, Any]:
        plan = plan_of(self.options.content(), self.schema, self.splits.how)
        if self.parts is None:
            plan["samples"] = len(self.source)
        else:
            plan["files"] = stamps_of_parts(self.parts)
        return plan

    def take_over(self) -> None:
        finished = self.journal.finished
        start = 0
        for number, shard in enumerate(finished):
            self.sums += ChannelSums.from_dict(shard.sums)
            if self.parts is None:
                check_unchanged(self.source, start, self.journal.stamps(number), self.options.worker_count)
                start = shard.sample
        keep = {shard.entry.file for shard in finished}
        for path in self.places.content.iterdir():
            if path.name not in keep:
                path.unlink()
        if finished and self.options.codec == "raw":
            self.raw_size = _raw_size(self.places.content / finished[0].entry.file)

    # The shards

    def write_outputs(self, bar: ProgressBar) -> None:
        with thread_pool(self.options.worker_count) as self.pool:
            super().write_outputs(bar)

    def outputs(self) -> Iterator[tuple[Output, Iterator[Prepared]]]:
        finished = self.journal.finished
        start = Place(finished[-1].part, finished[-1].sample) if finished else Place(0, 0)
        yield _OpenShard(self, start), self._prepared(start)

    def _prepared(self, start: Place) -> Iterator[Prepared]:
        if self.parts is not None:
            return prepared_parts(self.parts, self.preparation, start)
        return prepared_samples(self.source, self.preparation, self._sampled(), start, self.memory)

    def _sampled(self) -> NDArray[np.int64]:
        """The samples that are decoded for the statistics: all, or a seeded few hundred."""
        count = len(self.source)
        if self.measures_all:
            return np.arange(count)
        draws = random_bits(self.options.seed, np.arange(4 * SAMPLE_COUNT)) % np.uint64(count)
        return np.sort(np.unique(draws)[:: max(1, len(np.unique(draws)) // SAMPLE_COUNT)][:SAMPLE_COUNT]).astype(
            np.int64
        )

    def arrow_schema(self, first: Row) -> Any:
        if self.options.codec != "raw":
            return layout.arrow_schema(self.schema)
        self.raw_size = self.raw_size or (first.width, first.height)
        return layout.arrow_schema(self.schema, self.raw_size)

    # The end

    def finish(self) -> None:
        """Write index and manifest."""
        folder = self.places.content
        shards = [shard.entry for shard in self.journal.finished]
        samples = sum(shard.rows for shard in shards)
        names = list(self.splits.names)
        write_index(folder, [shard.file for shard in shards], samples, self.schema, names)
        self._manifest(samples, shards, names).write(folder)

    def _manifest(self, samples: int, shards: list[ShardEntry], names: list[str]) -> Manifest:
        folder = self.places.content
        columns = open_index(folder, samples)
        in_split = np.bincount(columns["split"], minlength=len(names)) if samples else np.zeros(len(names), int)
        index = folder / layout.INDEX_NAME
        return Manifest(
            schema=self.schema,
            samples=samples,
            codec=self._codec_name(),
            splits={name: int(in_split[number]) for number, name in enumerate(names)},
            groups=len(np.unique(columns["group"])),
            shards=tuple(shards),
            index=ShardEntry(layout.INDEX_NAME, samples, index.stat().st_size, file_checksum(index)),
            statistics=self._statistics(samples),
            options=self.options.content(),
            made_from=self._made_from(),
            skipped=tuple(self.skipped),
            notes={"split": self.splits.how, **self.source.notes()},
        )

    def _codec_name(self) -> str:
        if self.schema.image is None:
            return "none"
        if self.options.codec == AUTO:
            return "kept" if self.source.encoded_images else self.preparation.default_codec
        return self.options.codec

    def _statistics(self, samples: int) -> dict[str, Any]:
        mean, std = self.sums.mean_and_std()
        of = "all images" if self.measures_all else "a seeded sample of images, JPEGs at half their size"
        return {"mean": mean, "std": std, "images": self.sums.images, "of": of}

    def _made_from(self) -> dict[str, Any]:
        return {"source": self.source.kind.__name__, **self.source.made_from_for_copies()}


class _OpenShard(Output):
    """The shard that is being filled."""

    def __init__(self, writer: _PackWriter, start: Place) -> None:
        self.writer = writer
        super().__init__(start)

    def start_anew(self, start: Place) -> None:
        super().start_anew(start)
        self.shard: ShardWriter | None = None
        self.sums = ChannelSums()

    def is_full(self, outcome: Row | BadSample) -> bool:
        # A group of pictures stays in one shard: only its first row may begin the next.
        may_end = isinstance(outcome, BadSample) or outcome.position == 0
        return self.shard is not None and self.shard.bytes >= self.writer.options.shard_mb << 20 and may_end

    def add_row(self, row: Row, prepared: Prepared) -> None:
        row.values.setdefault("key", str(prepared.sample))
        if self.shard is None:
            path = self.writer.places.content / layout.shard_name(len(self.writer.journal.finished))
            schema, columns = self.writer.schema, self.writer.arrow_schema(row)
            self.shard = ShardWriter(path, schema, columns, self.writer.pool)
        raw_size = self.writer.raw_size
        if raw_size is not None and raw_size != (row.width, row.height):
            raise OptionError(
                f"codec raw needs one size for all images: {row.values['key']} has {row.width}x{row.height} px and the "
                f"first had {raw_size[0]}x{raw_size[1]}. Pass size='WIDTHxHEIGHT', or use another codec."
            )
        part = prepared.part if self.writer.parts is not None or self.writer.splits.blocks else prepared.sample
        self.shard.add(row, self.writer.splits.name(part, prepared.sample))
        if row.sums is not None:
            self.sums += row.sums

    def close(self) -> None:
        self.writer.skipped += self.skipped
        if self.shard is None:
            return
        self.shard.close()
        file = self.shard.file
        entry = ShardEntry(self.shard.path.name, self.shard.rows, file.bytes, file.checksum())
        line = FinishedShard(
            entry, self.after.part, self.after.sample, self.shard.rows, self.sums.as_dict(), self.skipped
        )
        self.writer.journal.add(line, np.array(self.stamps, np.uint64))
        self.writer.sums += self.sums
        self.start_anew(self.after)

    def abandon(self) -> None:
        if self.shard is not None:
            self.shard.abandon()


def _raw_size(path: Path) -> tuple[int, int]:
    """Width and height of the images in a shard of raw pixels."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as mapped:
        first = pa.ipc.open_file(mapped).get_batch(0)
        return first.column("width")[0].as_py(), first.column("height")[0].as_py()
