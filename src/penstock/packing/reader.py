"""Pack: a pack as a Source. Reading a sample is a slice of mapped memory.

index columns ──► shard, offset, length ──► memoryview of the bytes ──► decode
             └──► shard, row            ──► labels, boxes, key, …   ──┘
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from penstock.codecs.images import decode_image, decode_mask
from penstock.errors import MissingExtra, OptionError, PackError, nearest
from penstock.packing.columns import row_checksum
from penstock.packing.index import Columns, open_index
from penstock.packing.layout import (
    INDEX_NAME,
    MANIFEST_NAME,
    UNREADABLE_ARROW,
    column_types,
    shape_column,
)
from penstock.packing.manifest import Manifest, read_manifest
from penstock.packing.mapping import MappedShard
from penstock.packing.ranges import gathered, stored_rows
from penstock.packing.row_checks import BLOCK_BITS, RowChecks
from penstock.samples import RESERVED, Field, Origin, Raw, ReadSample, Sample, Schema, Subset
from penstock.samples.mapped_store import MappedStore, Stretches
from penstock.samples.store import ImageStorage, Places, handed_on, objects
from penstock.storage.locations import refuses_urls
from penstock.storage.plain_files import read_file
from penstock.storage.writing.fields import restored
from penstock.storage.writing.options import GOP_FRAMES
from penstock.wording import counted

if TYPE_CHECKING:
    import datasets
    import pyarrow as pa

# Decoded groups of pictures that each thread keeps: clips that follow one another share them.
KEPT_GROUPS = 2


class Pack(MappedStore):
    """A pack on disk as a Source: mapped, safe in threads, pickled as its path."""

    @refuses_urls()
    def __init__(self, path: str | Path, *, verify: bool = False) -> None:
        # Absolute, so that a pack stays readable when the working directory changes.
        self._path = Path(path).absolute()
        self.verify_on_read = verify
        self.manifest: Manifest = read_manifest(self.path)
        self._open()

    def _open(self) -> None:
        self.columns = open_index(self.path, self.manifest.samples)
        self._checks = RowChecks(self.path, self.manifest, self.columns)
        self._known = self._checks.known
        self._shards: list[MappedShard | None] = [None] * len(self.manifest.shards)
        # memoryviews give plain ints, in half the time of numpy scalars
        self._shard = self.columns["shard"].data
        self._row = self.columns["row"].data
        self._offset = self.columns["offset"].data
        self._length = self.columns["length"].data
        self._groups = threading.local()

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "verify": self.verify_on_read}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["path"], verify=state["verify"])  # type: ignore[misc]

    def __repr__(self) -> str:
        return f"<Pack {self.path.name}: {counted(len(self), 'sample')}, {counted(len(self.classes), 'class')}>"

    # What it is

    @property
    def path(self) -> Path:
        return self._path

    @property
    def schema(self) -> Schema:
        return self.manifest.schema

    @property
    def splits(self) -> dict[str, int]:
        """How many samples each split has."""
        return dict(self.manifest.splits)

    @property
    def statistics(self) -> dict[str, Any]:
        """Channel mean and std of values 0 to 255, and which images they were taken from."""
        return dict(self.manifest.statistics)

    @property
    def image_storage(self) -> ImageStorage | None:
        """As image files or as pixels; other codecs and several images a sample are decoded by `decode`."""
        pixels = [field for field in self.schema.fields if field.kind in ("image", "mask")]
        if self.manifest.codec == "raw" and self.schema.image is not None:
            return "raw"
        return "encoded" if len(pixels) == 1 and self.manifest.codec not in ("raw", "h264", "none") else None

    def made_from(self) -> dict[str, Any]:
        return dict(self.manifest.made_from)

    def made_from_for_copies(self) -> dict[str, Any]:
        """Not the source of the pack: that pack is the source now."""
        return handed_on(self.manifest.made_from)

    @property
    def stored_codec(self) -> str:
        return self.manifest.codec

    @property
    def has_gaps(self) -> bool:
        return bool(self.manifest.skipped)

    def __len__(self) -> int:
        return self.manifest.samples

    # A sample

    def read(self, index: int) -> Raw:
        """The bytes of a sample, as a view of the mapped shard."""
        if not self._known[index >> BLOCK_BITS]:
            self._checks.check_block(index >> BLOCK_BITS)
        number = self._shard[index]
        shard = self._shards[number] or self._map(number)
        start = self._offset[index]
        data = shard.data[start : start + self._length[index]]
        if self.verify_on_read:
            self._check(shard, index, data)
        return Raw(index, data)

    def decode(self, raw: Raw) -> Sample:
        """Every field of a sample; arrays of labels are views and read-only."""
        sample = self.annotations(raw.index)
        image = self.schema.image
        if image is not None:
            sample[image.name] = self._pixels(raw)
        for field in self.schema.fields:
            if field.kind in ("image", "mask") and field != image:
                data = self._stored(raw.index, field.name)
                sample[field.name] = _mask(data, field) if field.kind == "mask" else decode_image(data)
        return sample

    def annotations(self, index: int) -> Sample:
        """Every field but the pixels, and where the sample comes from."""
        shard = self._shard_of(index)
        views, row = shard.row(self._row[index])
        try:
            sample = {name: views[name].value(row) for name in RESERVED}
            for field in self.schema.fields:
                if field.kind not in ("image", "mask"):
                    shape = views[shape_column(field)].value(row) if shape_column(field) in views else None
                    sample[field.name] = restored(field, views[field.name].value(row), shape)
        except UNREADABLE_ARROW as error:
            raise shard.damaged(error, self._row[index]) from error
        return sample

    def annotations_many(self, indices: NDArray[np.int64]) -> list[Sample]:
        """What `annotations` gives for these samples, column by column."""
        fields = [field for field in self.schema.fields if field.kind not in ("image", "mask")]
        if any(field.kind == "array" for field in fields):  # whose shapes may stand in other columns
            return [self.annotations(index) for index in indices.tolist()]
        names = (*RESERVED, *(field.name for field in fields))
        try:
            rows = stored_rows(names, self._checked(indices), self.mapped_file, indices)
        except UNREADABLE_ARROW:  # one by one, it is found which
            return [self.annotations(index) for index in indices.tolist()]
        samples = [dict(zip(names, row, strict=True)) for row in rows]
        for field in fields:
            for sample in samples:
                sample[field.name] = restored(field, sample[field.name], None)
        return samples

    def _map(self, number: int) -> MappedShard:
        # Two threads may map the same shard at once; the later one wins and nothing is lost.
        shard = MappedShard(self.path, self.manifest.shards[number], self._types)
        self._shards[number] = shard
        return shard

    def _checked(self, indices: NDArray[np.int64]) -> Columns:
        """The index, in which these rows are known to point into their shards."""
        self._checks.check(indices)
        return self.columns

    def _shard_of(self, index: int) -> MappedShard:
        if not self._known[index >> BLOCK_BITS]:
            self._checks.check_block(index >> BLOCK_BITS)
        return self.mapped_file(self._shard[index])

    @functools.cached_property
    def _types(self) -> dict[str, Any]:
        """The Arrow types that the columns of every shard have."""
        side = int(self.columns["width"][0]), int(self.columns["height"][0])
        return column_types(self.schema, side if self.manifest.codec == "raw" else None)

    def mapped_file(self, number: int) -> MappedShard:
        return self._shards[number] or self._map(number)

    def _stored(self, index: int, name: str) -> Any:
        return self._shard_of(index).value(name, self._row[index])

    def _pixels(self, raw: Raw) -> NDArray[np.uint8]:
        codec = self.manifest.codec
        if codec == "raw":
            height, width = int(self.columns["height"][raw.index]), int(self.columns["width"][raw.index])
            return np.frombuffer(raw.data, np.uint8).reshape(height, width, 3)
        if codec == "h264":
            return self._frame(raw)
        return decode_image(raw.data)

    def _frame(self, raw: Raw) -> NDArray[np.uint8]:
        """One frame out of its group of pictures; the last groups of this thread are kept."""
        from penstock.codecs.video import decode_gop

        position = int(self.columns["position"][raw.index])
        first = raw.index - position
        kept: dict[int, Any] = self._groups.__dict__.setdefault("kept", {})
        if first not in kept:
            while len(kept) >= KEPT_GROUPS:
                del kept[next(iter(kept))]
            following = self.columns["position"][first + 1 : first + GOP_FRAMES]
            count = 1 + int(np.argmin(np.append(following, 0) > 0))
            kept[first] = decode_gop(raw.data, count)
        frame: NDArray[np.uint8] = kept[first][position]
        return frame

    def _check(self, shard: MappedShard, index: int, data: memoryview) -> None:
        """Compare the row with its checksum, and the index with the row."""
        row, leader = self._row[index], self._row[index] - int(self.columns["position"][index])
        try:
            if not all(self._matches(shard, each) for each in {row, leader}):
                raise PackError(f"{shard.path} row {row} (sample {index}) is damaged: its checksum does not match.")
            views, inner = shard.row(row)
            pointed = int(views["checksum"].value(inner)) == int(self.columns["checksum"][index])
            if self.schema.image is not None:
                views, inner = shard.row(leader)
                pointed &= views[self.schema.image.name].content(inner) == data
        except (IndexError, KeyError):
            pointed = False
        if not pointed:
            raise PackError(f"{self.path / INDEX_NAME} is damaged: sample {index} is not where it points to.")

    @staticmethod
    def _matches(shard: MappedShard, row: int) -> bool:
        views, inner = shard.row(row)
        return row_checksum(views, inner) == int(views["checksum"].value(inner))

    # Many samples

    def origin(self, index: int) -> Origin:
        """The shard and the checksum of the row: what is packed from it notices when this pack is replaced."""
        self._shard_of(index)
        shard = self.manifest.shards[self._shard[index]]
        return Origin((self.path / shard.file).as_posix(), shard.bytes, int(self.columns["checksum"][index]))

    def split(self, name: str) -> Subset:
        """The samples of one split, in order."""
        names = list(self.manifest.splits)
        if name not in names:
            raise OptionError(f"there is no split {name!r}; there are {', '.join(names)}.{nearest(name, names)}")
        return Subset(self, np.flatnonzero(self.columns["split"] == names.index(name)))

    def column(self, name: str) -> NDArray[Any]:
        """One stored value for every sample: a field, or key, group, split, origin, height, width."""
        if name == "split":
            return np.take(np.array(list(self.manifest.splits)), self.index_column("split"))
        if name in ("height", "width"):
            return self.columns[name]
        label = self.schema.label
        if label is not None and name == label.name:
            return self.index_column("label")
        if name not in ("key", "group", "origin"):
            field = self.schema[name]
            if field.kind in ("image", "mask", "boxes") or (field.kind == "array" and None in (field.shape or ())):
                raise OptionError(f"field {name!r} has another length in every sample; read it sample by sample.")
        values = self.table([name]).column(0).to_pylist()
        return np.array(values)

    def index_column(self, name: str) -> NDArray[Any]:
        """The column `split` or `label` of the index; each number is known to name something."""
        self._checks.check_column(name)
        return self.columns[name]

    def read_many(self, indices: Sequence[int], allocate: Callable[[int], memoryview]) -> list[ReadSample | None]:
        """Several encoded images, as views of the mapped shards; none where each is checked when it is read."""
        if self.verify_on_read or not self.encoded_images:
            return [None] * len(indices)
        return [ReadSample(self.read(index)) for index in indices]

    # What flows ask of many samples at once

    def fingerprint(self) -> str:
        """Changes with whatever is in the pack."""
        return xxhash.xxh3_128_hexdigest(read_file(self.path / MANIFEST_NAME))

    def image_sizes(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """Width and height of these images, n×2."""
        columns = self._checked(indices)
        return np.stack([columns["width"][indices], columns["height"][indices]], axis=1).astype(np.int64)

    def uniform_image_size(self) -> tuple[int, int] | None:
        """Width and height, where all images have the same."""
        width, height = self.columns["width"], self.columns["height"]
        if not len(self) or (width != width[0]).any() or (height != height[0]).any():
            return None
        return int(width[0]), int(height[0])

    def pixel_places(self, indices: NDArray[np.int64]) -> Places:
        """For codec raw: the mapped shards, and for each image which one, where in it, width and height."""
        columns = self._checked(indices)
        return self.places_in(*(columns[name][indices] for name in ("shard", "offset", "width", "height")))

    def encoded_places(self, indices: NDArray[np.int64]) -> Places | None:
        """The mapped shards, and for each encoded image which one, where in it, and its bytes; None if each is
        checked when it is read."""
        return None if self.verify_on_read else self.places_in(*self.stretches_of(indices))

    def stretches_of(self, indices: NDArray[np.int64]) -> Stretches:
        columns = self._checked(indices)
        return Stretches(*(columns[name][indices] for name in ("shard", "offset", "length")))

    @property
    def bytes(self) -> int:
        """The size of all shards."""
        return sum(shard.bytes for shard in self.manifest.shards)

    def group_numbers(self) -> NDArray[Any]:
        """A number for each sample that is the same within a group: a hash of its name, nothing to parse."""
        return self.columns["group"]

    def gather(self, name: str, indices: NDArray[np.int64]) -> NDArray[Any]:
        """A field of these samples as one array; fields without a fixed size come as an array of objects."""
        columns, label = self._checked(indices), self.schema.label
        if label is not None and name == label.name:
            return columns["label"][indices]
        field = self.schema[name]
        values = gathered(name, columns, self.mapped_file, indices)
        if values is None:
            return objects([self.annotations(index)[name] for index in indices.tolist()])
        return values if field.shape is None else values.reshape(len(indices), *field.shape)

    def table(self, names: list[str] | None = None) -> pa.Table:
        """The shards as one pyarrow table over mapped memory."""
        import pyarrow as pa

        shards = [self.mapped_file(number) for number in range(len(self._shards))]
        batches = [batch for shard in shards for batch in shard.valid_batches(names)]
        return pa.Table.from_batches(batches)

    def raw_views(self) -> list[NDArray[np.uint8]]:
        """For codec raw: the pixels of every record batch as one n×H×W×3 view, nothing copied."""
        image = self.schema.image
        if self.manifest.codec != "raw" or image is None:
            raise OptionError(f"raw_views needs a pack with codec raw; this one has {self.manifest.codec}.")
        shape = (-1, int(self.columns["height"][0]), int(self.columns["width"][0]), 3)
        column = self.table([image.name]).column(0)
        return [np.frombuffer(chunk.buffers()[1], np.uint8).reshape(shape)[: len(chunk)] for chunk in column.chunks]

    def to_hf(self) -> datasets.Dataset:
        """The pack as a Hugging Face dataset over the same mapped files."""
        try:
            import datasets as library
        except ModuleNotFoundError as error:
            raise MissingExtra("Handing a pack to Hugging Face needs datasets. Run: pip install datasets") from error
        table = library.table.InMemoryTable(self.table())
        dataset = library.Dataset(table)
        image = self.schema.image
        if image is not None and self.manifest.codec not in ("raw", "h264"):
            dataset = dataset.cast_column(image.name, library.Image())
        return dataset

    def verify(self) -> None:
        """Check every file and every row; raises PackError that names what is damaged, by shard and row."""
        from penstock.packing.verifying import verify_pack  # the writing side, which reading does not need

        verify_pack(self.path, self.manifest)


def _mask(data: Any, field: Field) -> NDArray[Any]:
    mask = decode_mask(data)
    return mask.astype(field.dtype) if field.dtype else mask
