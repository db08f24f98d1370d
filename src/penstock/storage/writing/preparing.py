"""One sample → one row: keep its bytes, or decode, resize and encode. Runs in many workers at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.decoding_room import ROOM
from penstock.codecs.headers import Header, UnreadableImage, cut_short, read_header, sniff
from penstock.codecs.images import DEFAULT_QUALITY, decode_image, encode_image
from penstock.codecs.kernel.bulk import jpeg_headers, measure_halved
from penstock.codecs.resizing import resized, side_target
from penstock.errors import DataError, HopError, PenstockError
from penstock.geometry import as_boxes, parse_size, scaled
from penstock.samples import Raw, ReadSample, Sample, Schema, Store
from penstock.storage.writing.fields import checked_pixels, stored_bytes, stored_fields
from penstock.storage.writing.options import AUTO, SampleOptions
from penstock.storage.writing.stamps import stamp_of
from penstock.storage.writing.statistics import ChannelSums, channel_sums

# From this size on a JPEG of the sample is measured at half its size: the mean is the same, the deviation of
# photographs about one part in a hundred smaller, which is less than the choice of 500 images makes.
HALVED_FROM_PX = 256

# Offsets, lengths and the columns that every row has.
ROW_OVERHEAD_BYTES = 128

MORE_MEMORY = "Allow more memory (memory=…), or make the image smaller with another program"

KEPT_WHEN_RESIZED = ("jpeg", "png", "webp")


@dataclass(slots=True)
class Row:
    """A sample as a shard stores it."""

    values: Sample
    payload: bytes | memoryview
    height: int
    width: int
    sums: ChannelSums | None = None
    stamp: int = 0
    header: Header | None = None  # of an image file that is kept as it is
    position: int = 0  # its place in the group of pictures whose bytes stand in an earlier row
    before: bytes = b""  # what a format has around the payload, so that nobody copies that
    behind: bytes = b""
    _bytes: int = 0

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process, which has no part in mapped memory."""
        values = {name: _own(value) for name, value in self.values.items()}
        rest = self.height, self.width, self.sums, self.stamp, self.header, self.position
        return Row, (values, _own(self.payload), *rest, self.before, self.behind, self._bytes)

    @property
    def bytes(self) -> int:
        """About how much this row takes in a shard, the same on every machine; asked for when nothing changes it."""
        if not self._bytes:
            self._bytes = len(self.payload) + stored_bytes(self.values) + ROW_OVERHEAD_BYTES
        return self._bytes


def _own(value: Any) -> Any:
    return value.tobytes() if isinstance(value, memoryview) else value


@dataclass(frozen=True)
class BadSample:
    """What was left out and why: one sample, or the `count` of them that are left of a part."""

    sample: str
    reason: str
    stamp: int = 0
    count: int = 1

    def entry(self) -> dict[str, Any]:
        """As journals and manifests list it."""
        return {"sample": self.sample, "reason": self.reason, "count": self.count}


class Decodes(Protocol):
    def decode(self, raw: Raw) -> Sample: ...


@dataclass(frozen=True)
class Preparation:
    """Everything that decides what a row looks like, and nothing that depends on the run."""

    schema: Schema
    options: SampleOptions
    default_codec: str
    measures_sample: bool = False
    measures: bool = True
    stamps: bool = True
    # Whatever else must be done to a row, in the worker: an export makes of it what its format stores.
    finish: Callable[[Row], Row] | None = None
    # What is faster for all rows of a task at once, and cannot fail.
    finish_together: Callable[[Sequence[Row]], None] | None = None

    def target(self, width: int, height: int) -> tuple[int, int]:
        """The size in which an image is stored."""
        if self.options.size is not None:
            return parse_size(self.options.size)
        return side_target(width, height, self.options.longest_side, self.options.shortest_side)

    def keeps(self, original: str) -> bool:
        """Whether the bytes of an image of the right size stay; another quality than usual asks for new ones."""
        options = self.options
        return options.codec == AUTO or (options.codec == original and options.quality == DEFAULT_QUALITY)

    def codec(self, original: str) -> str:
        """The codec for pixels that cannot be kept as they are."""
        if self.options.codec != AUTO:
            return self.options.codec
        return original if original in KEPT_WHEN_RESIZED else self.default_codec

    @functools.cached_property
    def decoding_bytes(self) -> int:
        return self.options.decoding_bytes

    def finished(self, row: Row, number: int) -> Row:
        if self.finish is None:
            return row
        row.values.setdefault("key", str(number))
        return self.finish(row)

    def finished_together(self, outcomes: list[Any]) -> list[Any]:
        if self.finish_together is not None:
            self.finish_together([outcome for outcome in outcomes if isinstance(outcome, Row)])
        return outcomes


def prepare_range(
    source: Store,
    preparation: Preparation,
    indices: range,
    sampled: NDArray[np.int64],
    allocate: Callable[[int], memoryview] | None = None,
) -> list[Any]:
    """The rows of some samples; `sampled` says which of them are decoded for the statistics.

    With `allocate` rows may hold views of its memory, which cannot be sent to another process.
    """
    first, end = np.searchsorted(sampled, (indices.start, indices.stop)).tolist()
    wanted = set(sampled[first:end].tolist())
    known_of = _known_together(source, preparation, indices, wanted, allocate)
    made = []
    with ROOM.within(preparation.decoding_bytes, MORE_MEMORY):
        for index, known in zip(indices, known_of, strict=True):
            with ROOM.sample():
                made.append(prepare_index(source, preparation, index, index in wanted, known))
    return preparation.finished_together(made)


class Known(NamedTuple):
    """What is known of a sample before its turn comes, because many were asked for at once."""

    read: ReadSample | None = None
    values: Sample | None = None
    header: Header | None = None
    sums: ChannelSums | None = None


def _known_together(
    source: Store,
    preparation: Preparation,
    indices: range,
    wanted: set[int],
    allocate: Callable[[int], memoryview] | None,
) -> list[Known]:
    count = len(indices)
    ahead: list[ReadSample | None] = [None] * count
    values: Sequence[Sample | None] = [None] * count
    headers: Sequence[Header | None] = [None] * count
    if allocate is not None:
        ahead = source.read_many(indices, allocate)
    if source.encoded_images:
        values = source.annotations_many(np.arange(indices.start, indices.stop)) or values
        headers = jpeg_headers([b"" if read is None else read.raw.data for read in ahead])
    sums = _measured_together(indices, ahead, wanted, preparation)
    return list(map(Known, ahead, values, headers, sums))


def _measured_together(
    indices: range, ahead: list[ReadSample | None], wanted: set[int], preparation: Preparation
) -> list[ChannelSums | None]:
    """The sums of those images of the sample for which the kernel can tell them; the others are decoded one by one."""
    sums: list[ChannelSums | None] = [None] * len(indices)
    if not preparation.measures_sample:
        return sums
    raws = {
        place: read.raw.data
        for place, (index, read) in enumerate(zip(indices, ahead, strict=True))
        if read is not None and index in wanted and not _is_progressive(read.raw.data)
    }
    for place, halved in zip(raws, measure_halved(list(raws.values()), HALVED_FROM_PX), strict=True):
        sums[place] = None if halved is None else ChannelSums(1, *halved).times(4)
    return sums


def _is_progressive(data: Any) -> bool:
    """Whether it is a JPEG whose decoder holds all of it: such wait for one another."""
    try:
        return sniff(data) == "jpeg" and read_header(data).is_progressive
    except UnreadableImage:
        return False


def prepare_index(source: Store, preparation: Preparation, index: int, measured: bool, known: Known) -> Row | BadSample:
    """One sample of a source with random access."""
    values, ahead, stamp, hop = known.values, known.read, 0, "read"
    try:
        if values is None and source.encoded_images:
            values = source.annotations(index)
        if preparation.stamps:
            stamp = stamp_of(source, index, None if ahead is None else ahead.origin, values)
        raw = source.read(index) if ahead is None else ahead.raw
        hop = "decode"
        if values is not None:
            row = _row_from_file(raw.data, values, preparation, measured, known)
        else:
            row = row_from_sample(source.decode(raw), preparation)
        hop = "encode"
        row = preparation.finished(row, index)
    except PenstockError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a source raises, the user must learn which sample it was
        return _bad(preparation, source.describe(index), hop, error, stamp)
    row.stamp = stamp
    row.values.setdefault("key", str(index))
    row.bytes  # noqa: B018 - worked out here, so that the thread that writes needn't
    return row


def prepare_raws(part: Decodes, key: str, preparation: Preparation, raws: Sequence[Raw]) -> list[Any]:
    """The rows of consecutive samples of a part, in order; for h264 one group of pictures, bad ones first."""
    is_grouped, outcomes = preparation.options.codec == "h264", []
    with ROOM.within(preparation.decoding_bytes, MORE_MEMORY):
        for raw in raws:
            with ROOM.sample():
                make = _framed if is_grouped else row_from_sample
                outcomes.append(_attempted(part, key, raw, preparation, make, finishes=not is_grouped))
    if not is_grouped:
        return preparation.finished_together(outcomes)
    bad = [item for item in outcomes if isinstance(item, BadSample)]
    return bad + _group_of_pictures([item for item in outcomes if not isinstance(item, BadSample)], preparation)


def _attempted(
    part: Decodes,
    key: str,
    raw: Raw,
    preparation: Preparation,
    make: Callable[[Sample, Preparation], Any],
    finishes: bool = False,
) -> Any:
    hop = "decode"
    try:
        made = make(part.decode(raw), preparation)
        hop = "encode"
        return preparation.finished(made, raw.index) if finishes else made
    except PenstockError as error:
        if preparation.options.on_bad_sample != "skip" or not (isinstance(error, DataError) and error.is_unreadable):
            raise
        return BadSample(f"{key}#{raw.index}", error.reasons)
    except Exception as error:  # noqa: BLE001 - as above
        return _bad(preparation, f"{key} sample {raw.index}", hop, error, 0)


def _bad(preparation: Preparation, name: str, hop: str, error: Exception, stamp: int) -> BadSample:
    reason = str(error) or type(error).__name__
    if preparation.options.on_bad_sample == "skip":
        return BadSample(name, reason, stamp)
    raise HopError(hop, name, reason, "Fix or remove it, or pass on_bad_sample='skip' to leave it out.") from error


def _row_from_file(
    data: bytes | memoryview, values: Sample, preparation: Preparation, measured: bool, known: Known
) -> Row:
    """A row from the bytes of an image file, which stay as they are wherever that is possible."""
    header = known.header or read_header(data)
    width, height = preparation.target(header.width, header.height)
    same_size = (width, height) == (header.width, header.height)
    if same_size and preparation.keeps(header.kind):
        sums = known.sums
        if missing := cut_short(data, header.kind):  # nothing decodes bytes that are kept
            raise UnreadableImage(missing)
        if measured and sums is None:
            sums = _measured_sums(data, header, preparation)
        return Row(stored_fields(values, preparation.schema), data, height, width, sums, header=header)
    # Nobody but the callee holds the pixels: of a large image they are gone before it is encoded.
    at_least = _decoded_size(header, width, height)
    return _encoded(decode_image(data, at_least=at_least), values, preparation, header, (width, height))


def _measured_sums(data: bytes | memoryview, header: Header, preparation: Preparation) -> ChannelSums:
    """Sums over an image whose bytes are kept: all its pixels, or half its size where it is one of a sample."""
    halved = preparation.measures_sample and header.kind == "jpeg" and header.channels in (1, 3)
    if not halved or min(header.width, header.height) < HALVED_FROM_PX:
        return channel_sums(decode_image(data))
    ROOM.enter(read_header(data), at_least=(1, 1))
    (known,) = measure_halved([data], HALVED_FROM_PX)
    if known is not None:
        return ChannelSums(1, *known).times(4)
    half = decode_image(data, at_least=(-(-header.width // 2), -(-header.height // 2)))
    return channel_sums(half).times(4 if half.shape[1] < header.width else 1)


def _decoded_size(header: Header, width: int, height: int) -> tuple[int, int] | None:
    """A JPEG at least twice too large in both directions may be decoded at reduced scale: a good filter, and fast."""
    if header.width >= 2 * width and header.height >= 2 * height:
        return width, height
    return None


def row_from_sample(sample: Sample, preparation: Preparation) -> Row:
    """A row from decoded fields."""
    if preparation.schema.image is None:
        return Row(stored_fields(sample, preparation.schema), b"", 0, 0)
    pixels, values, header = _pixels_and_values(sample, preparation)
    return _encoded(pixels, values, preparation, header, preparation.target(header.width, header.height))


def _pixels_and_values(sample: Sample, preparation: Preparation) -> tuple[NDArray[np.uint8], Sample, Header]:
    image = preparation.schema.image
    if image is None or image.name not in sample:
        raise ValueError(f"field {image.name if image else 'image'!r} is missing")
    values = dict(sample)
    pixels = checked_pixels(values.pop(image.name))
    return pixels, values, Header("pixels", pixels.shape[1], pixels.shape[0])


def _encoded(
    pixels: NDArray[np.uint8], values: Sample, preparation: Preparation, header: Header, size: tuple[int, int]
) -> Row:
    row, stored = _resized(pixels, values, preparation, header, size)
    del pixels
    row.payload = encode_image(stored, preparation.codec(header.kind), preparation.options.quality)
    return row


def _resized(
    pixels: NDArray[np.uint8], values: Sample, preparation: Preparation, header: Header, size: tuple[int, int]
) -> tuple[Row, NDArray[np.uint8]]:
    """A row that lacks only its bytes, and the pixels for them."""
    width, height = size
    pixels = resized(pixels, width, height)
    values = stored_fields(_scaled_fields(values, preparation.schema, header, size), preparation.schema)
    return Row(values, b"", height, width, channel_sums(pixels) if preparation.measures else None), pixels


def _framed(sample: Sample, preparation: Preparation) -> tuple[Row, NDArray[np.uint8]]:
    pixels, values, header = _pixels_and_values(sample, preparation)
    return _resized(pixels, values, preparation, header, preparation.target(header.width, header.height))


def _group_of_pictures(frames: list[tuple[Row, NDArray[np.uint8]]], preparation: Preparation) -> list[Row]:
    """Frames as one closed group of pictures; its bytes stand in the row of the first."""
    from penstock.codecs.video import encode_gop

    rows = [row for row, _ in frames]
    for position, row in enumerate(rows):
        row.position = position
    if rows:
        rows[0].payload = encode_gop([pixels for _, pixels in frames], preparation.options.quality)
    return rows


def _scaled_fields(values: Sample, schema: Schema, header: Header, size: tuple[int, int]) -> Sample:
    """Boxes and masks follow their image when its size changes."""
    width, height = size
    if (width, height) == (header.width, header.height):
        return values
    scaled_values = dict(values)
    for field in schema.fields:
        if field.kind == "boxes" and field.name in values:
            boxes = as_boxes(values[field.name])
            scaled_values[field.name] = scaled(boxes, width / header.width, height / header.height)
        elif field.kind == "mask" and field.name in values:
            scaled_values[field.name] = resized(values[field.name], width, height, nearest=True)
    return scaled_values
