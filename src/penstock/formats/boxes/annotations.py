"""Boxes of any format as one thing: every image once, with its boxes in pixels.

    table, VOC, COCO, YOLO, layer ─► Rows (one per annotation) ─► AnnotatedImages (one per image)

Boxes are continuous pixel coordinates of the upright image: (0, 0) is the outer corner of the first pixel and
(width, height) that of the last. What a file says is kept as written; only YOLO's fractions, points and map
coordinates are converted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import Problem
from penstock.formats.reading import ReadingOptions, parse_classes
from penstock.geometry import Boxes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.formats.paths import PathLike


@dataclass(frozen=True)
class AnnotatedImages:
    """Every image once, with its boxes: what all box formats become.

    files     where each image is                    names   as written, or relative to its folder: the sample's key
    sizes     n×2 width, height; 0 0 if unreadable   starts  n+1: boxes of image i are starts[i]:starts[i+1]
    boxes     m×4 x1 y1 x2 y2, pixels                labels  m numbers into classes
    Rows with a problem are in `problems` and not among the boxes, except those that reach over a border.
    rows      m line (or feature) numbers, and `tables` with `table_numbers` say of which annotation file
    unreadable       why the header of an image could not be read, by its number; not repeated in problems
    splits, groups   one text per image, or None where the annotations name none
    """

    files: tuple[Path, ...]
    names: tuple[str, ...]
    sizes: NDArray[np.int64]
    starts: NDArray[np.int64]
    boxes: Boxes
    labels: NDArray[np.int64]
    classes: tuple[str, ...]
    problems: tuple[Problem, ...]
    rows: NDArray[np.int64]
    tables: tuple[str, ...]
    table_numbers: NDArray[np.int64]
    splits: tuple[str, ...] | None = None
    groups: tuple[str, ...] | None = None
    unreadable: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.files)

    def boxes_of(self, image: int) -> Boxes:
        """The boxes of one image, 0×4 for a negative."""
        return self.boxes[self.starts[image] : self.starts[image + 1]]

    def labels_of(self, image: int) -> NDArray[np.int64]:
        """The class numbers of one image, one for each of its boxes."""
        return self.labels[self.starts[image] : self.starts[image + 1]]

    @property
    def negatives(self) -> int:
        """How many images have no boxes."""
        return int(np.count_nonzero(np.diff(self.starts) == 0))


def read_annotations(
    annotations: Any,
    *,
    images: PathLike | None = None,
    files: Sequence[PathLike] | None = None,
    classes: PathLike | Sequence[str] | None = None,
    point_buffer: float | str | None = None,
    clip_boxes: bool = False,
    allow_outside: bool = False,
    group_column: str | None = None,
    split_column: str | None = None,
    ignore_others: bool = False,
    allow_drivers: tuple[str, ...] = (),
    val: Any = None,
) -> AnnotatedImages:
    """Read boxes of any format; problems of rows are in the result, only those of structure are raised.

    annotations   a path, pattern, folder or list of them; a DataFrame or GeoDataFrame
    images        the folder that holds the images; otherwise they are looked for beside the annotations
    files         which images exist: each appears in the result, and a row that names another is a problem
    classes       names in their order, as a list, "A,B" or a file with one name per line; else they are sorted
    point_buffer  half the side of the boxes that points become: pixels, or metres such as "2m"
    clip_boxes    cut what reaches over the border of its image, instead of reporting it
    allow_outside allow paths that leave the folder of the images
    group_column  the column of a table that holds the groups; `group` where it is called so
    split_column  the column of a table that holds the splits; `split` where it is called so
    ignore_others leave out rows of images that are not among `files`, instead of reporting them
    allow_drivers drivers of GDAL that may open `files` beside the usual ones
    val           more annotations, whose images are the split val, and all others train
    """
    from penstock.formats.boxes.assembly import annotated_images

    options = ReadingOptions(
        images=Path(images) if images is not None else None,
        files=tuple(Path(file) for file in files) if files is not None else None,
        classes=parse_classes(classes),
        point_buffer=point_buffer,
        clip_boxes=clip_boxes,
        allow_outside=allow_outside,
        group_column=group_column,
        split_column=split_column,
        ignore_others=ignore_others,
        allow_drivers=allow_drivers,
        val=val,
    )
    return annotated_images(annotations, options)
