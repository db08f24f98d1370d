"""Rows of uncompressed tiles in one call without the GIL, which would be handed over for each of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.codecs import kernel


def read_tiles(
    descriptor: int, offsets: NDArray[np.int64], row_bytes: int, left_bytes: int, out: NDArray[np.uint8]
) -> bool:
    """Fill rows of an H×W×C image with those of tiles beside one another, or say that it is left to the caller.

    `offsets` is where the rows of each tile begin in the file, each of `row_bytes`; of the first tile so many bytes lie
    left of the image. EOFError where the file ends within them.
    """
    native: Any = kernel.native_extension()
    return native is not None and native.read_tiles(descriptor, offsets, row_bytes, left_bytes, out)
