"""TFRecord files as a stream: record after record, checked, without an index."""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice
from typing import IO, NamedTuple, Protocol

from penstock.codecs.headers import UnreadableImage, read_header
from penstock.errors import DataError, HopError, OptionError, Problem
from penstock.formats.indexed.class_numbers import ClassNumbers
from penstock.formats.indexed.kept_indexes import index_name
from penstock.formats.indexed.mapped_files import FileState
from penstock.formats.indexed.unpacking import unpacked_pieces
from penstock.formats.tfrecord.example_fields import Example, Layout, Wanted, layout_of
from penstock.formats.tfrecord.example_reading import decode_example
from penstock.formats.tfrecord.framing import HEAD_BYTES, TAIL_BYTES, UnreadableRecord, masked_crc32c
from penstock.formats.tfrecord.record_files import checked_compression
from penstock.formats.tfrecord.record_options import RecordOptions
from penstock.formats.tfrecord.record_values import Reading, Record, Size, pixels_of
from penstock.samples import Field, Sample, Schema
from penstock.storage.plain_files import open_file

LOOKED_AT = 16  # records that tell the layout


class Payload(NamedTuple):
    """One record, and where it begins in the unpacked file."""

    number: int
    offset: int
    data: bytes


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Unpacked:
    """The content of a compressed file as something to read from."""

    def __init__(self, file: IO[bytes], path: str, compression: str) -> None:
        self._pieces, self._rest = unpacked_pieces(file, path, compression), bytearray()

    def read(self, size: int, /) -> bytes:
        while len(self._rest) < size:
            piece = next(self._pieces, b"")
            if not piece:
                break
            self._rest += piece
        found = bytes(self._rest[:size])
        del self._rest[:size]
        return found


def payloads(state: FileState, compression: str, check: bool) -> Iterator[Payload]:
    """The records of a file in order; UnreadableRecord at the first that is cut or damaged."""
    with open_file(state.path, 1 << 20) as file:
        is_plain = compression == "none"
        readable: _Readable = file if is_plain else _Unpacked(file, state.path, compression)
        number = offset = 0
        while head := readable.read(HEAD_BYTES):
            length = _checked_length(head)
            if is_plain and length > state.size - offset - HEAD_BYTES - TAIL_BYTES:
                raise UnreadableRecord(f"a record of {length:,} bytes begins here, and the file ends before its end")
            data, tail = readable.read(length), readable.read(TAIL_BYTES)
            if len(data) < length or len(tail) < TAIL_BYTES:
                raise UnreadableRecord(f"a record of {length:,} bytes begins here, and the file ends before its end")
            if check and masked_crc32c(data) != int.from_bytes(tail, "little"):
                raise UnreadableRecord("its checksum does not match, the record is damaged")
            yield Payload(number, offset, data)
            number, offset = number + 1, offset + HEAD_BYTES + length + TAIL_BYTES


def _checked_length(head: bytes) -> int:
    if len(head) < HEAD_BYTES:
        raise UnreadableRecord(f"{len(head)} bytes are left, and a record begins with {HEAD_BYTES}")
    length, crc = struct.unpack("<QI", head)
    if masked_crc32c(head[:8]) != crc:
        raise UnreadableRecord("the checksum of a length does not match")
    return int(length)


class RecordStream:
    """A stream for `Flow`; each file is a part, so that several can be read in turn."""

    length = None

    def __init__(self, states: Sequence[FileState], options: RecordOptions, check: bool) -> None:
        self._states, self._options, self._check = tuple(states), options, check
        self._compressions = [checked_compression(state.path, options.compression) for state in states]
        layout = layout_of(self._first_examples(), options.given)
        self._layout = layout if options.classes is not None else _without_classes(layout)
        first = options.first_class if options.first_class != "auto" else int(layout.box_label is not None)
        by_name = any(wanted.features[-1] for wanted in self._layout.wanted if len(wanted.features) == 2)
        self._classes = ClassNumbers(options.classes or (), by_name, first)
        self.schema = Schema(tuple(wanted.field for wanted in self._layout.wanted), self._classes.names)

    @property
    def parts(self) -> int:
        return len(self._states)

    def fingerprint(self) -> str:
        return index_name(self._states, self._options)

    def _first_examples(self) -> Sequence[Example]:
        for part in range(len(self._states)):
            found = [decode_example(one.data) for one in islice(self._payloads(part), LOOKED_AT)]
            if found:
                return found
        raise DataError([
            Problem(state.path, None, "is empty: it holds no record", "Make it anew") for state in self._states
        ])  # fmt: skip

    def _payloads(self, part: int) -> Generator[Payload, None, None]:
        """As `payloads`, and what fails is told with the file, the number of the record and its first byte."""
        state, number, offset = self._states[part], 0, 0
        try:
            for payload in payloads(state, self._compressions[part], self._check):
                yield payload
                number, offset = number + 1, payload.offset + HEAD_BYTES + len(payload.data) + TAIL_BYTES
        except (UnreadableRecord, OSError) as error:
            raise HopError("read", f"{state.path} record {number} at byte {offset:,}", str(error)) from error

    def open(self, part: int, epoch: int) -> Iterator[Sample]:
        """The samples of one file, from its beginning."""
        reading = Reading(self._layout, self._classes, self._options.box_units == "normalised")
        with closing(self._payloads(part)) as found:
            for payload in found:
                try:
                    yield _sample(payload, reading)
                except UnreadableImage as error:
                    where = f"{self._states[part].path} record {payload.number} at byte {payload.offset:,}"
                    raise HopError("decode", where, str(error)) from error


def _sample(payload: Payload, reading: Reading) -> Sample:
    record = Record(memoryview(payload.data), (0, len(payload.data)), reading.layout)
    image = reading.layout.of_kind("image")
    sample = {
        wanted.field.name: pixels_of(wanted, record.content(wanted.features[0]))
        for wanted in reading.layout.wanted
        if wanted.field.kind in ("image", "mask")
    }
    return {**sample, **reading.fields(record, (1, 1) if image is None else _size(image, record))}


def _size(image: Wanted, record: Record) -> Size:
    if image.pixels is not None:
        return image.pixels[1], image.pixels[0]
    header = read_header(record.content(image.features[0]))
    return header.width, header.height


def _without_classes(layout: Layout) -> Layout:
    """Nobody has seen all labels of a stream: they stay the numbers and texts that the files have."""
    return replace(layout, wanted=tuple(_unnumbered(wanted) for wanted in layout.wanted))


def _unnumbered(wanted: Wanted) -> Wanted:
    if len(wanted.features) != 2:
        return wanted
    (number, text), name = wanted.features, wanted.field.name
    if name == "box_label":
        if not number:
            raise OptionError("a stream of boxes with named classes needs to know all of them: pass classes=[…].")
        return Wanted(wanted.field, (number,))
    return Wanted(Field(name, "number", "int64"), (number,)) if number else Wanted(Field(name, "text"), (text,))
