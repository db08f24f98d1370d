"""One sample → one row: keep its bytes, or decode, resize and encode. Runs in many workers at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import xxhash
from numpy.typing import NDArray

from penstock.codecs.headers import Header, read_header
from penstock.codecs.images import decode_image, encode_image
from penstock.codecs.resizing import resized, side_target
from penstock.errors import HopError, PenstockError, RecipeError
from penstock.geometry import parse_size, scaled
from penstock.packing.options import AUTO, PackOptions
from penstock.packing.statistics import ChannelSums, channel_sums
from penstock.samples import Raw, Sample, Schema, Source, annotations_of, describe

# From this size on a JPEG of the sample is measured at half its size: the mean is the same, the deviation of
# photographs about one part in a hundred smaller, which is less than the choice of 500 images makes.
HALVED_FROM_PX = 256

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
    position: int = 0  # its place in the group of pictures whose bytes stand in an earlier row


@dataclass(frozen=True)
class BadSample:
    """A sample that was left out, and why."""

    sample: str
    reason: str
    stamp: int = 0


class Decodes(Protocol):
    def decode(self, raw: Raw) -> Sample: ...


@dataclass(frozen=True)
class Preparation:
    """Everything that decides what a row looks like, and nothing that depends on the run."""

    schema: Schema
    options: PackOptions
    default_codec: str
    measures_sample: bool = False

    def target(self, width: int, height: int) -> tuple[int, int]:
        """The size in which an image is stored."""
        if self.options.size is not None:
            return parse_size(self.options.size)
        return side_target(width, height, self.options.longest_side, self.options.shortest_side)

    def codec(self, original: str) -> str:
        """The codec for pixels that cannot be kept as they are."""
        if self.options.codec != AUTO:
            return self.options.codec
        return original if original in KEPT_WHEN_RESIZED else self.default_codec


def prepare_range(source: Source, preparation: Preparation, indices: range, sampled: NDArray[np.int64]) -> list[Any]:
    """The rows of some samples; `sampled` says which of them are decoded for the statistics."""
    wanted = set(sampled[(sampled >= indices.start) & (sampled < indices.stop)].tolist())
    return [prepare_index(source, preparation, index, index in wanted) for index in indices]


def prepare_index(source: Source, preparation: Preparation, index: int, measured: bool) -> Row | BadSample:
    """One sample of a source with random access."""
    stamp = stamp_of(source, index)
    hop = "read"
    try:
        raw = source.read(index)
        hop = "decode"
        if getattr(source, "encoded_images", False):
            row = _row_from_file(raw.data, annotations_of(source, index), preparation, measured)
        else:
            row = row_from_sample(source.decode(raw), preparation)
    except PenstockError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a source raises, the user must learn which sample it was
        return _bad(preparation, describe(source, index), hop, error, stamp)
    row.stamp = stamp
    return row


def prepare_raws(part: Decodes, key: str, preparation: Preparation, raws: Sequence[Raw]) -> list[Any]:
    """The rows of consecutive samples of a part, in order; for h264 one group of pictures, bad ones first."""
    outcomes = [_decoded(part, key, preparation, raw) for raw in raws]
    if preparation.options.codec != "h264":
        return [item if isinstance(item, BadSample) else row_from_sample(item, preparation) for item in outcomes]
    bad = [item for item in outcomes if isinstance(item, BadSample)]
    samples = [item for item in outcomes if not isinstance(item, BadSample)]
    return bad + (_group_of_pictures(samples, preparation) if samples else [])


def _decoded(part: Decodes, key: str, preparation: Preparation, raw: Raw) -> Sample | BadSample:
    try:
        return part.decode(raw)
    except PenstockError:
        raise
    except Exception as error:  # noqa: BLE001 - as above
        return _bad(preparation, f"{key} sample {raw.index}", "decode", error, 0)


def _bad(preparation: Preparation, name: str, hop: str, error: Exception, stamp: int) -> BadSample:
    reason = str(error) or type(error).__name__
    if preparation.options.on_bad_sample == "skip":
        return BadSample(name, reason, stamp)
    raise HopError(hop, name, reason, "Mend or remove it, or pass --on-bad-sample skip to leave it out.") from error


def _row_from_file(data: bytes | memoryview, values: Sample, preparation: Preparation, measured: bool) -> Row:
    """A row from the bytes of an image file, which stay as they are wherever that is possible."""
    header = read_header(data)
    width, height = preparation.target(header.width, header.height)
    same_size = (width, height) == (header.width, header.height)
    if same_size and preparation.options.codec in (AUTO, header.kind):
        return Row(values, data, height, width, _measured_sums(data, header, preparation) if measured else None)
    pixels = decode_image(data, at_least=_decoded_size(header, width, height))
    return _encoded(pixels, values, preparation, header, (width, height))


def _measured_sums(data: bytes | memoryview, header: Header, preparation: Preparation) -> ChannelSums:
    """Sums over an image whose bytes are kept: all its pixels, or half its size where it is one of a sample."""
    halved = preparation.measures_sample and header.kind == "jpeg" and header.channels in (1, 3)
    if not halved or min(header.width, header.height) < HALVED_FROM_PX:
        return channel_sums(decode_image(data))
    half = decode_image(data, at_least=(-(-header.width // 2), -(-header.height // 2)))
    return channel_sums(half).times(4 if half.shape[1] < header.width else 1)


def _decoded_size(header: Header, width: int, height: int) -> tuple[int, int] | None:
    """A JPEG at least twice too large in both directions may be decoded at reduced scale: a good filter, and fast."""
    if header.width >= 2 * width and header.height >= 2 * height:
        return width, height
    return None


def row_from_sample(sample: Sample, preparation: Preparation) -> Row:
    """A row from decoded fields."""
    image = preparation.schema.image
    if image is None:
        return Row(sample, b"", 0, 0)
    values = dict(sample)
    pixels = _checked_pixels(values.pop(image.name))
    header = Header("pixels", pixels.shape[1], pixels.shape[0])
    return _encoded(pixels, values, preparation, header, preparation.target(header.width, header.height))


def _encoded(
    pixels: NDArray[np.uint8], values: Sample, preparation: Preparation, header: Header, size: tuple[int, int]
) -> Row:
    width, height = size
    pixels = resized(pixels, width, height)
    values = _scaled_fields(values, preparation.schema, header, size)
    codec = preparation.codec(header.kind)
    payload = encode_image(pixels, codec, preparation.options.quality)
    return Row(values, payload, height, width, channel_sums(pixels))


def _group_of_pictures(samples: list[Sample], preparation: Preparation) -> list[Row]:
    """Frames as one closed group of pictures; its bytes stand in the row of the first."""
    from penstock.codecs.video import encode_gop

    image = preparation.schema.image
    if image is None:
        raise RecipeError("codec h264 needs an image field.")
    rows = []
    frames = []
    for position, sample in enumerate(samples):
        values = dict(sample)
        pixels = _checked_pixels(values.pop(image.name))
        header = Header("pixels", pixels.shape[1], pixels.shape[0])
        width, height = preparation.target(header.width, header.height)
        frames.append(resized(pixels, width, height))
        values = _scaled_fields(values, preparation.schema, header, (width, height))
        rows.append(Row(values, b"", height, width, channel_sums(frames[-1]), position=position))
    rows[0].payload = encode_gop(frames, preparation.options.quality)
    return rows


def _checked_pixels(pixels: Any) -> NDArray[np.uint8]:
    array = np.asarray(pixels)
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3:
        raise ValueError(f"an image must be H×W×3 uint8, and this one is {array.dtype} of shape {array.shape}")
    return np.ascontiguousarray(array)


def _scaled_fields(values: Sample, schema: Schema, header: Header, size: tuple[int, int]) -> Sample:
    """Boxes and masks follow their image when its size changes."""
    width, height = size
    if (width, height) == (header.width, header.height):
        return values
    scaled_values = dict(values)
    for field in schema.fields:
        if field.kind == "boxes":
            scaled_values[field.name] = scaled(values[field.name], width / header.width, height / header.height)
        elif field.kind == "mask":
            scaled_values[field.name] = resized(values[field.name], width, height, nearest=True)
    return scaled_values


def stamp_of(source: Source, index: int) -> int:
    """A number that changes when the file or the annotations behind a sample change; 0 where that is unknown."""
    origin = getattr(source, "origin", None)
    annotations = getattr(source, "annotations", None)
    if origin is None or annotations is None:
        return 0
    digest = xxhash.xxh3_64()
    try:
        digest.update(repr(origin(index)).encode())
    except OSError:
        return 0  # reading it will say so, with its name
    for name, value in annotations(index).items():
        digest.update(name.encode())
        digest.update(value.tobytes() if isinstance(value, np.ndarray) else str(value).encode())
    return digest.intdigest()
