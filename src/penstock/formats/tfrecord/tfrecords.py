"""TFRecord files with tf.train.Examples, read without TensorFlow.

file ──► records (framing, checksums) ──► features (wire format) ──► fields
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.errors import Problem
from penstock.formats.indexed.class_numbers import First, classes_from
from penstock.formats.indexed.indexed_source import (
    FILE,
    HEIGHT,
    IMAGE_LENGTH,
    LENGTH,
    OFFSET,
    WIDTH,
    IndexedSource,
)
from penstock.formats.indexed.kept_indexes import index_name, kept_index
from penstock.formats.indexed.mapped_files import FileState, MappedFiles, Numbers, state_of, unchanged
from penstock.formats.paths import PathLike
from penstock.formats.provenance import provenance
from penstock.formats.tfrecord.example_fields import Given, Wanted, layout_from
from penstock.formats.tfrecord.framing import HEAD_BYTES, TAIL_BYTES, UnreadableRecord, are_whole, masked_crc32c
from penstock.formats.tfrecord.record_files import Compression, plain_file, record_files
from penstock.formats.tfrecord.record_index import make_index
from penstock.formats.tfrecord.record_options import BoxUnits, RecordOptions, record_options
from penstock.formats.tfrecord.record_streams import RecordStream
from penstock.formats.tfrecord.record_values import Reading, Record, pixels_of
from penstock.samples import Raw, Sample, Schema
from penstock.storage.locations import refuses_urls


class TFRecords(IndexedSource):
    """TFRecord files with an image, a class or boxes in each record, in random order as fast as a pack.

    paths        a file, a pattern such as 'train-*.tfrecord', a folder, or a list of these
    fields       which feature becomes which field: {"image": "img_bytes", "label": "y"}. A value is the name of a
                 feature, a ps.Field of that name that says its kind, dtype and shape, or four names for boxes. Without
                 it the usual names are looked for, such as image/encoded, image/class/label, image/object/bbox/xmin
    classes      names in their order, as a list, "A,B" or a file with one name per line; else as the files say
    first_class  the number of the first class, 0 or 1; "auto" is 1 where numbers can only be meant so
    box_units    "normalised" (parts of the image's width and height) or "pixels"
    compression  "auto" looks at each file, "none", "gzip", "zlib"; compressed files are unpacked into the cache folder
    check        compare each record with its checksum whenever it is read

    An index is made when files are opened for the first time, and kept in the cache folder.
    """

    @refuses_urls()
    def __init__(
        self,
        paths: PathLike | Sequence[PathLike],
        *,
        fields: Given | None = None,
        classes: PathLike | Sequence[str] | None = None,
        first_class: First = "auto",
        box_units: BoxUnits = "normalised",
        compression: Compression = "auto",
        check: bool = True,
    ) -> None:
        files = record_files(paths)
        options = record_options(files, fields, classes, first_class, box_units, compression)
        self._given = provenance(paths=paths, classes=classes)
        self._open([state_of(path) for path in files], options, check)

    def _open(self, originals: list[FileState], options: RecordOptions, check: bool) -> None:
        self._options, self.check = options, check
        files = MappedFiles([plain_file(state, options.compression) for state in originals])
        name = index_name(originals, options)
        index = kept_index(name, lambda: make_index(originals, files, options))
        layout = layout_from(index.about["layout"])
        schema = Schema(tuple(wanted.field for wanted in layout.wanted), tuple(index.about["classes"]["names"]))
        super().__init__(originals, files, index, name, schema)
        self._reading = Reading(layout, classes_from(index.about["classes"]), options.box_units == "normalised")
        self._image = layout.of_kind("image")
        pixels = [field for field in schema.fields if field.kind in ("image", "mask")]
        plain = None if self._image is None else self._image.pixels
        if len(pixels) == 1 and self._image is not None and plain is None:
            self._image_storage = "encoded"
        elif plain is not None and plain[2] == 3 and self._are_full():
            self._image_storage = "raw"
        self._offset, self._length = self.columns[OFFSET].data, self.columns[LENGTH].data

    @staticmethod
    @refuses_urls()
    def stream(
        paths: PathLike | Sequence[PathLike],
        *,
        fields: Given | None = None,
        classes: PathLike | Sequence[str] | None = None,
        first_class: First = "auto",
        box_units: BoxUnits = "normalised",
        compression: Compression = "auto",
        check: bool = True,
    ) -> RecordStream:
        """The same files as a stream for `Flow`: each is read from its beginning to its end, and no index is made.

        Without `classes` a label is the number or the text that the file has: nobody has seen all of them.
        """
        files = record_files(paths)
        options = record_options(files, fields, classes, first_class, box_units, compression)
        return RecordStream([state_of(path) for path in files], options, check)

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("origins", "_options", "check", "_given")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._given = state["_given"]
        self._open(unchanged(state["origins"]), state["_options"], state["check"])

    # A sample

    def read(self, index: int) -> Raw:
        """The bytes of the image (of the whole record where there is none), as a view of the mapped file."""
        data = self.files[self._file[index]].data
        if self.check:
            offset = self._offset[index]
            end = offset + self._length[index]
            if masked_crc32c(data[offset:end]) != int.from_bytes(data[end : end + TAIL_BYTES], "little"):
                raise UnreadableRecord(self._damaged(index))
        start = self._start[index]
        return Raw(index, data[start : start + self._bytes[index]])

    def _damaged(self, index: int) -> str:
        return f"{self._where(index)}: its checksum does not match, the record is damaged"

    def _where(self, index: int) -> str:
        """File, number of the record in it, and its first byte."""
        file = self._file[index]
        record = index - int(np.searchsorted(self.columns[FILE], file))
        return f"{self.origins[file].path} record {record} at byte {self._offset[index] - HEAD_BYTES:,}"

    def decode(self, raw: Raw) -> Sample:
        record = self._record(raw.index)
        sample = self._annotations(raw.index, record)
        for wanted in self._reading.layout.wanted:
            if wanted.field.kind in ("image", "mask"):
                sample[wanted.field.name] = self._pixels(wanted, raw, record)
        return sample

    def _pixels(self, wanted: Wanted, raw: Raw, record: Record) -> Any:
        try:
            content = raw.data if wanted == self._image and len(raw.data) else record.content(wanted.features[0])
            return pixels_of(wanted, content)
        except UnreadableRecord as error:
            raise UnreadableRecord(f"{self._where(raw.index)}: {error}") from error

    def annotations(self, index: int) -> Sample:
        return self._annotations(index, self._record(index))

    def _record(self, index: int) -> Record:
        view = self.files[self._file[index]].data
        try:
            return Record(view, (self._offset[index], self._length[index]), self._reading.layout)
        except UnreadableRecord as error:
            raise UnreadableRecord(f"{self._where(index)}: {error}") from error

    def _annotations(self, index: int, record: Record) -> Sample:
        size = (int(self.columns[WIDTH][index]), int(self.columns[HEIGHT][index])) if self._image else (1, 1)
        try:
            return {**self.named(index), **self._reading.fields(record, size)}
        except UnreadableRecord as error:
            raise UnreadableRecord(f"{self._where(index)}: {error}") from error

    # Many samples

    def _are_full(self) -> bool:
        """Whether all images of plain pixels have the bytes that their size needs."""
        needed = self.columns[WIDTH] * self.columns[HEIGHT] * 3
        return bool((self.columns[IMAGE_LENGTH] == needed).all())

    def damaged(self, indices: Numbers) -> dict[int, str]:
        """Which of these records do not have their checksum, by position, and where they are; all in one call."""
        if not self.check:
            return {}
        return {position: self._damaged(int(indices[position])) for position in self._broken(indices)}

    def _broken(self, indices: Numbers) -> list[int]:
        buffers, places = self.places_in(*self.stretches_of(indices))
        broken: list[int] = np.flatnonzero(~are_whole(buffers, places)).tolist()
        return broken

    def damage(self) -> list[Problem]:
        """Records whose bytes are not those that were written; every one is compared, whatever `check` says."""
        return [
            Problem(
                self.origins[self._file[index]].path,
                None,
                self._damaged(index).removeprefix(f"{self.origins[self._file[index]].path} "),
                "Copy or write the file again, or pack with on_bad_sample='skip'",
                unreadable=True,
            )
            for index in self._broken(np.arange(len(self)))
        ]

    def made_from(self) -> dict[str, Any]:
        return dict(self._given)
