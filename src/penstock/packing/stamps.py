"""Numbers and texts that change when what a sample or a part is made of changes."""

from __future__ import annotations

import numpy as np
import xxhash

from penstock.samples import Origin, Part, Sample, Source


def stamp_of(source: Source, index: int, known: Origin | None = None, values: Sample | None = None) -> int:
    """A number that changes when the file or the annotations behind a sample change; 0 where that is unknown.

    `known` and `values` are its origin and annotations, where somebody has asked for them already.
    """
    origin = getattr(source, "origin", None)
    annotations = getattr(source, "annotations", None)
    if origin is None or annotations is None or not getattr(source, "tells_origins", True):
        return 0
    try:
        pieces = list(map(str, known or origin(index)))
    except OSError:
        return 0  # reading it will say so, with its name
    arrays = []
    for name, value in (annotations(index) if values is None else values).items():
        if isinstance(value, np.ndarray):
            arrays.append(value.tobytes())
        else:
            pieces += (name, str(value))
    return xxhash.xxh3_64_intdigest("\0".join(pieces).encode("utf-8", "surrogatepass") + b"".join(arrays))


def stamp_of_part(part: Part) -> str:
    """A text that changes when the file or the labels behind a part change."""
    stamp = part.stamp() if hasattr(part, "stamp") else repr(sorted(part.label_counts.items())).encode()
    return xxhash.xxh3_64_hexdigest(repr(part.origin()).encode() + stamp)
