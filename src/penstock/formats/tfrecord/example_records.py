"""Records of tf.train.Examples around something large, such as an image, that nobody copies."""

from __future__ import annotations

from typing import Any

from penstock.codecs import kernel
from penstock.formats.tfrecord.examples import start_around
from penstock.formats.tfrecord.framing import ends_of_records


def records_around(name: str, pieces: tuple[Any, ...]) -> list[tuple[bytes, bytes]]:
    """What records have before and behind the bytes of the feature `name`, all in one call without the GIL.

    Three pieces are given of each Example: the entries of the features before it, its bytes, and the entries behind it.
    """
    native = kernel.native_extension()
    if native is not None:
        found: list[tuple[bytes, bytes]] = native.frame_examples(pieces, name.encode())
        return found
    payloads: list[Any] = []
    for earlier, content, later in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        payloads += (start_around(earlier, name, len(content), later), content, later)
    ends = ends_of_records(tuple(payloads))
    return [
        (head + start, later + tail)
        for (head, tail), start, later in zip(ends, payloads[::3], payloads[2::3], strict=True)
    ]
