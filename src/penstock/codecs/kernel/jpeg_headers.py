"""The headers of many JPEGs in one call, where the kernel is built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.codecs import kernel
from penstock.codecs.headers import Header


def jpeg_headers(images: Sequence[Any]) -> list[Header | None]:
    """What `read_header` says of JPEGs without EXIF, but not whether they are progressive; None for all other images,
    and for those that are damaged.
    """
    native = kernel.native_extension()
    if native is None:
        return [None] * len(images)
    found = np.empty((len(images), 4), np.int64)
    native.jpeg_headers(tuple(images), found)
    return [
        Header("jpeg", width, height, 1, channels, bits) if width else None
        for width, height, channels, bits in found.tolist()
    ]
