"""Tables that users see: pandas DataFrames with the names that the field knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

CORNERS = ("xmin", "ymin", "xmax", "ymax")
BOX_COLUMNS = ("image_path", *CORNERS, "label")


def box_frame(
    image_paths: Sequence[str] | NDArray[Any],
    boxes: NDArray[np.floating],
    labels: Sequence[str] | NDArray[Any],
) -> pd.DataFrame:
    """The six-column table; coordinates are whole numbers where all of them are."""
    import pandas as pd

    corners = np.asarray(boxes, np.float64).reshape(-1, 4)
    if (corners == np.floor(corners)).all():
        corners = corners.astype(np.int64)
    columns = [
        pd.Series(list(image_paths), dtype="str"),
        *map(pd.Series, corners.T),
        pd.Series(list(labels), dtype="str"),
    ]
    return pd.DataFrame(dict(zip(BOX_COLUMNS, columns, strict=True)))
