"""How a value of a column becomes a field of a sample."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.images import decode_image, decode_mask
from penstock.formats.columns.choosing import Taken
from penstock.formats.columns.options import ColumnOptions
from penstock.formats.columns.pixel_shapes import as_rgb, pixel_order


def image_of(taken: Taken, value: Any, options: ColumnOptions) -> NDArray[Any]:
    """H×W×3 RGB from an encoded image or from pixels; a mask as it is stored."""
    if taken.field.kind == "mask":
        return decode_mask(value)
    if taken.how == "encoded":
        pixels = decode_image(value)
        return np.ascontiguousarray(pixels[:, :, ::-1]) if options.channels == "bgr" else pixels
    order = pixel_order(taken.holds, options.layout)
    assert order is not None  # it was chosen as pixels for that
    return as_rgb(value, order, options.channels)


def field_of(taken: Taken, value: Any, options: ColumnOptions) -> Any:
    """A value in the type that its field promises; classes are numbered elsewhere."""
    if value is None:
        return _nothing(taken)
    if taken.how == "text":
        return str(value)
    if taken.how == "number":
        return np.dtype(taken.field.dtype).type(np.asarray(value).reshape(())[()])
    if taken.how == "boxes":
        return corners(np.asarray(value), is_sized(taken, options))
    return np.asarray(value, np.dtype(taken.field.dtype))


def _nothing(taken: Taken) -> Any:
    """A row that has no value: an empty text or list, not a number; a whole number has no way to say that."""
    if taken.how == "text":
        return ""
    if taken.how == "boxes":
        return np.zeros((0, 4), np.float32)
    if taken.how == "number" and taken.field.dtype.startswith("float"):
        return np.dtype(taken.field.dtype).type(np.nan)
    if taken.field.shape is None and taken.how == "labels":
        return np.zeros(0, np.dtype(taken.field.dtype))
    raise ValueError(f"column {taken.column!r} has no value here (null)")


def is_sized(taken: Taken, options: ColumnOptions) -> bool:
    """Whether boxes are x y width height."""
    if options.box_format != "auto":
        return options.box_format == "xywh"
    return taken.column.lower().split(".")[-1].removesuffix("es") == "bbox"


def corners(boxes: NDArray[Any], sized: bool) -> NDArray[np.float32]:
    """n×4 float32 x1 y1 x2 y2."""
    array = np.array(boxes, np.float32).reshape(-1, 4)
    if sized:
        array[:, 2:] += array[:, :2]
    return array
