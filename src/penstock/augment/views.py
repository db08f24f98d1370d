"""What a geometric step does to an image, as numbers: which part of it, at what size, which part of that, turned how.

    image ──crop──► crop ──resize──► resized ──part──► out ──flip──► out

Each geometric step is one such view of what it gets. Several in a row are often one view too, and then the
decoder needs to decode only what is seen (`compose`). Views are computed for a whole range of samples at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Views:
    """One view for each of n samples, in whole pixels.

    The crop lies inside the image. The part may reach outside of what was resized: there it is `fill`.
    """

    crops: NDArray[np.int64]  # n×4: x, y, width, height, in the image
    resized: NDArray[np.int64]  # n×2: width, height
    parts: NDArray[np.int64]  # n×4: x, y, width, height, in what was resized
    flips: NDArray[np.uint8]  # n: bit 0 horizontal, bit 1 vertical
    fill: int = 0
