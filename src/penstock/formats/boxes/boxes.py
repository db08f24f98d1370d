"""Whole images with their boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.codecs.headers import UnreadableImage
from penstock.codecs.images import decode_image
from penstock.errors import Problem
from penstock.formats.boxes.annotations import read_annotations
from penstock.formats.boxes.locating import unreadable
from penstock.formats.grouping import crop_rasters, groups_of, is_pattern, text_column
from penstock.formats.paths import PathLike, origin_of, read_bytes
from penstock.formats.provenance import provenance
from penstock.samples import Field, Origin, Raw, Sample, Schema, Store
from penstock.samples.store import ImageStorage
from penstock.storage.locations import refuses_urls
from penstock.wording import counted

_FIELDS = (Field("image", "image"), Field("boxes", "boxes"), Field("box_label", "labels", "int64"))


class Boxes(Store):
    """Images with boxes, from a table, Pascal VOC, COCO, YOLO or a vector layer.

    annotations   a path, pattern, folder or list of them; a DataFrame or GeoDataFrame
    images        the folder that holds the images; otherwise they are looked for beside the annotations
    classes       names in their order, as a list, "A,B" or a file with one name per line; else they are sorted
    point_buffer  half the side of the boxes that points become: pixels, or metres such as "2m"
    clip_boxes    cut what reaches over the border of its image, instead of reporting it
    group_from    a pattern such as '{site}_*', or a column of the table; else each image is its own group, and the
                  crops that `split_raster` wrote are grouped by their raster
    split_from    the column of the table that names the split; else `split` where there is one
    allow_outside allow a table's paths to leave the folder of the images
    val           more annotations, whose images are for validation: the split val; all others are the split train

    Boxes are continuous pixel coordinates of the upright image, x1 y1 x2 y2. Tables, VOC and WKT are kept as
    written (VOC's numbers are not shifted by one); COCO's x y width height and YOLO's fractions become corners;
    points and the features of a layer become boxes that end at the border of the image.
    An image without boxes is a negative sample: a row 0,0,0,0 or with empty coordinates, a file without objects,
    an image that COCO lists alone. Each image header is opened once, here; problems of rows do not raise, but are
    in `problems()`.
    """

    @refuses_urls()
    def __init__(
        self,
        annotations: Any,
        *,
        images: PathLike | None = None,
        classes: PathLike | Sequence[str] | None = None,
        point_buffer: float | str | None = None,
        clip_boxes: bool = False,
        group_from: str | None = None,
        split_from: str | None = None,
        allow_outside: bool = False,
        val: Any = None,
    ) -> None:
        self.annotated = read_annotations(
            annotations,
            images=images,
            classes=classes,
            point_buffer=point_buffer,
            clip_boxes=clip_boxes,
            allow_outside=allow_outside,
            group_column=None if is_pattern(group_from) else group_from,
            split_column=split_from,
            val=val,
        )
        files = [str(file) for file in self.annotated.files]
        self._groups, misfits = groups_of(self.annotated.names, files, self.annotated.groups, group_from)
        self._crops: dict[int, str] = {}
        if group_from is None and self.annotated.groups is None:
            self._crops = crop_rasters(self.annotated.names, self.annotated.files)
            self._groups = tuple(self._crops.get(place, group) for place, group in enumerate(self._groups))
        self._problems = (*self.annotated.problems, *misfits)
        self._schema = Schema(_FIELDS, self.annotated.classes)
        self._given = provenance(
            annotations=annotations,
            images=images,
            classes=classes,
            point_buffer=point_buffer,
            clip_boxes=clip_boxes,
            group_from=group_from,
            split_from=split_from,
            val=val,
        )

    @property
    def image_storage(self) -> ImageStorage:
        """The bytes that `read` gives are a whole encoded image, which a pack may keep as they are."""
        return "encoded"

    def __len__(self) -> int:
        return len(self.annotated)

    def __repr__(self) -> str:
        return (
            f"Boxes({counted(len(self), 'image')}, {counted(len(self.annotated.boxes), 'box')}, "
            f"{counted(len(self.classes), 'class')})"
        )

    def read(self, index: int) -> Raw:
        if not self.annotated.sizes[index, 0]:
            raise UnreadableImage(self.annotated.unreadable.get(index, "the image file is missing"))
        return Raw(index, read_bytes(self.annotated.files[index]))

    def decode(self, raw: Raw) -> Sample:
        return {"image": decode_image(raw.data), **self.annotations(raw.index)}

    def annotations(self, index: int) -> Sample:
        """Every field but the pixels."""
        sample: Sample = {
            "key": self.annotated.names[index],
            "group": self._groups[index],
            "boxes": self.annotated.boxes_of(index).copy(),
            "box_label": self.annotated.labels_of(index).copy(),
        }
        if self.annotated.splits is not None:
            sample["split"] = self.annotated.splits[index]
        return sample

    def column(self, name: str) -> NDArray[Any]:
        """key, group, or split (where the annotations have one) of every image."""
        texts = {"key": self.annotated.names, "group": self._groups, "split": self.annotated.splits}
        return text_column(texts, name)

    def origin(self, index: int) -> Origin:
        return origin_of(self.annotated.files[index])

    @property
    def negatives(self) -> int:
        """How many images have no boxes."""
        return self.annotated.negatives

    def counts(self) -> dict[str, int]:
        """What there is, for whoever looks."""
        found = {"boxes": len(self.annotated.boxes), "images without boxes": self.negatives}
        rasters = len(set(self._crops.values()))
        return {**found, "rasters that crops were cut from": rasters} if rasters else found

    def notes(self) -> dict[str, str]:
        """What was decided about groups."""
        if not self._crops:
            return {}
        rasters = counted(len(set(self._crops.values())), "raster")
        return {
            "groups": f"{counted(len(self._crops), 'crop')} of {rasters}: those of one overlap, and stay in one split"
        }

    def guard(self, position: int) -> int:
        """How many images from this one on may show what those before it show: crops of one raster may all."""
        return len(self) - position if self._crops else 0

    def problems(self) -> list[Problem]:
        """What is wrong with the annotations and with the files that they name."""
        return list(self._problems)

    def label_counts(self) -> NDArray[np.int64]:
        """How often each class occurs in each image."""
        annotated, classes = self.annotated, max(1, len(self.classes))
        image = np.repeat(np.arange(len(self)), np.diff(annotated.starts))
        counts = np.bincount(image * classes + annotated.labels, minlength=len(self) * classes)
        return counts.reshape(len(self), classes)

    def made_from(self) -> dict[str, Any]:
        return dict(self._given)

    # The headers were read to compare the boxes with them.
    damage_is_known = True

    def damage(self) -> list[Problem]:
        """Images that cannot be read or were cut short, as far as each header and end tell."""
        files = self.annotated.files
        return [unreadable(str(files[number]), reason) for number, reason in self.annotated.unreadable.items()]
