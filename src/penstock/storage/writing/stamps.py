"""Numbers and texts that change when what a sample or a part is made of changes."""

from __future__ import annotations

import numpy as np
import xxhash

from penstock.samples import Origin, Sample, Segment, Store


def stamp_of(source: Store, index: int, known: Origin | None = None, values: Sample | None = None) -> int:
    """A number that changes when the file or the annotations behind a sample change; 0 where that is unknown.

    `known` and `values` are its origin and annotations, where somebody has asked for them already.
    """
    if not (source.tells_origins and source.knows_annotations):
        return 0
    try:
        pieces = list(map(str, known or source.origin(index)))
    except OSError:
        return 0  # reading it will say so, with its name
    arrays = []
    for name, value in (source.annotations(index) if values is None else values).items():
        if isinstance(value, np.ndarray):
            arrays.append(value.tobytes())
        else:
            pieces += (name, str(value))
    return xxhash.xxh3_64_intdigest("\0".join(pieces).encode("utf-8", "surrogatepass") + b"".join(arrays))


def stamp_of_part(part: Segment) -> str:
    """A text that changes when the file or the labels behind a part change."""
    return xxhash.xxh3_64_hexdigest(repr(part.origin()).encode() + part.stamp())
