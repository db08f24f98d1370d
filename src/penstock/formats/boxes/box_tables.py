"""The table of boxes as people have it: corners, WKT geometry, or points, one row per box.

image_path,xmin,ymin,xmax,ymax,label in any order and spelling, or those six without a header. A row 0,0,0,0 or
with empty coordinates lists an image without boxes. x,y,w,h are boxes too: the upper left corner and the size; so are
cx,cy,w,h, with the centre. A table without an image column is about the image that
has its stem. WKT and points are in pixels of the image.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.errors import DataError, Problem, nearest, require
from penstock.formats.boxes.rows import ImageName, Rows, make_rows
from penstock.formats.reading import ReadingOptions, parse_buffer
from penstock.formats.tables import Table, read_table, role_column, wrong_columns
from penstock.results import BOX_COLUMNS, box_frame

if TYPE_CHECKING:
    import pandas as pd

_CORNERS = ("x1", "y1", "x2", "y2")
_POINT_TYPE = 0


class _Found(NamedTuple):
    """Boxes of a table: NaN where a row has none, which rows are broken, and which were points."""

    box: NDArray[np.float64]
    broken: NDArray[np.bool_]
    points: NDArray[np.bool_]
    problems: list[Problem]


def read_box_table(path: Path, options: ReadingOptions) -> Rows:
    """A CSV or Parquet file; an empty CSV is about the image of its stem, which has no boxes."""
    if path.suffix.lower() not in (".parquet", ".pq") and path.stat().st_size == 0:
        image = ImageName("", path.parent, stem=path.stem)
        return make_rows(tables=[str(path)], images=[image], labels=[], line=[1], image=0, label=-1, box=[[np.nan] * 4])
    return box_table_rows(read_table(path, headerless=BOX_COLUMNS), options)


def box_table_rows(table: Table, options: ReadingOptions) -> Rows:
    """Rows of a table, each with its line."""
    return _rows(table, _boxes(table, options), options)


def pixel_shape_rows(table: Table, shapes: NDArray[Any], options: ReadingOptions) -> Rows:
    """Rows of shapes that are already in pixels, with the table of their attributes."""
    box, points = shape_boxes(shapes, options, table.name)
    return _rows(table, _Found(box, np.zeros(len(table), bool), points, []), options)


def _rows(table: Table, found: _Found, options: ReadingOptions) -> Rows:
    image_column = table.find("image")
    image, images, problems = table_images(table, image_column, options)
    label, labels = table_labels(table, options)
    broken = found.broken | (image < 0)
    return make_rows(
        tables=[table.name],
        images=images,
        labels=labels,
        line=table.lines,
        image=image,
        label=label,
        box=np.where(broken[:, None], np.nan, found.box),
        broken=broken,
        point=found.points,
        score=table_scores(table),
        problems=[*table.problems, *found.problems, *problems, *_mixed_crs(table), *_torn_images(table, image)],
        splits=_per_image(table, role_column(table, "split", options.split_column), image),
        groups=_per_image(table, role_column(table, "group", options.group_column), image),
    )


def _boxes(table: Table, options: ReadingOptions) -> _Found:
    corners = [table.find(role) for role in _CORNERS]
    if all(corners):
        return _from_corners(table, [str(column) for column in corners])
    geometry = table.find("geometry")
    if geometry is not None:
        return _from_wkt(table, geometry, options)
    for roles, share in ((("x", "y", "w", "h"), 0.0), (("cx", "cy", "w", "h"), 0.5)):
        columns = [table.find(role) for role in roles]
        if all(columns):
            return _from_sizes(table, [str(column) for column in columns], share)
    x, y = table.find("x"), table.find("y")
    if x is not None and y is not None:
        return _from_points(table, x, y, options)
    raise wrong_columns(table, BOX_COLUMNS, "not a table of boxes")


def _from_corners(table: Table, columns: list[str]) -> _Found:
    box, empty, broken, problems = _coordinates(table, columns)
    negative = empty | (box == 0).all(axis=1)
    box[negative | broken] = np.nan
    return _Found(box, broken, np.zeros(len(table), bool), [*problems, *_fractions(table, box)])


def _from_sizes(table: Table, columns: list[str], share: float) -> _Found:
    """Boxes as a point, width and height: x, y is the upper left corner, as in COCO, and cx, cy the centre."""
    given, empty, broken, problems = _coordinates(table, columns)
    corner = given[:, :2] - share * given[:, 2:]
    box = np.hstack([corner, corner + given[:, 2:]])
    box[empty | broken | (given == 0).all(axis=1)] = np.nan
    return _Found(box, broken, np.zeros(len(table), bool), [*problems, *_fractions(table, box)])


def _fractions(table: Table, box: NDArray[np.float64]) -> list[Problem]:
    """Boxes that all lie within the first pixel are fractions of width and height, which tables do not have."""
    known = box[~np.isnan(box[:, 0])]
    if not len(known) or not ((known >= 0) & (known <= 1)).all():
        return []
    what = "all coordinates lie between 0 and 1, as fractions of width and height; expected pixels"
    return [Problem(table.name, None, what, "Multiply them by the size of the image, or write YOLO files")]


def _from_points(table: Table, x: str, y: str, options: ReadingOptions) -> _Found:
    buffer = needed_buffer(options, table.name)
    point, empty, broken, problems = _coordinates(table, [x, y])
    point[empty | broken] = np.nan
    return _Found(np.hstack([point - buffer, point + buffer]), broken, np.ones(len(table), bool), problems)


def needed_buffer(options: ReadingOptions, name: str) -> float:
    """Half the side of the boxes that points become, which the user must say; 1 for metres: see `point_buffers.py`."""
    buffer = parse_buffer(options.point_buffer)
    if buffer is None:
        what = "the table has points, and boxes need a size"
        remedy = "Pass point_buffer=10, half the side of a box in pixels, or point_buffer=2m in metres"
        raise DataError([Problem(name, None, what, remedy)])
    return 1.0 if buffer.in_metres else buffer.half_side


def _coordinates(
    table: Table, columns: list[str]
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], list[Problem]]:
    """Columns side by side; rows that are wholly empty; rows with something that is no number, and the problems."""
    numbers = [table.numbers(column) for column in columns]
    missing = np.stack([number.missing for number in numbers], axis=1)
    wrong = np.stack([number.wrong for number in numbers], axis=1)
    empty: NDArray[np.bool_] = np.asarray(missing.all(axis=1))
    wrong |= missing & ~empty[:, None]
    problems = [_wrong_number(table, columns[place], int(row)) for row, place in np.argwhere(wrong)]
    return np.stack([number.values for number in numbers], axis=1), empty, np.asarray(wrong.any(axis=1)), problems


def _wrong_number(table: Table, column: str, row: int) -> Problem:
    text = table.text_at(column, row)
    if not text:
        what = f"{column} is empty"
    elif text.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        what = f"{column} is {text}, not a finite number"
    else:
        what = f"{column} {text!r} is not a number"
    remedy = "Write a number in pixels, or leave all coordinates empty for an image without boxes"
    return Problem(table.name, int(table.lines[row]), what, remedy)


def _from_wkt(table: Table, column: str, options: ReadingOptions) -> _Found:
    shapely = require("shapely", "geo", "Reading WKT geometry")
    texts = table.texts(column)
    shapes = shapely.from_wkt(texts, on_invalid="ignore")
    empty = texts == ""
    broken = np.asarray(shapely.is_missing(shapes), bool) & ~empty
    problems = [
        Problem(
            table.name,
            int(table.lines[row]),
            f"{column} {_short(texts[row])} is not WKT",
            "Write it like POLYGON ((0 0, 9 0, 9 5, 0 5, 0 0)), in pixels",
        )
        for row in np.flatnonzero(broken)
    ]
    box, points = shape_boxes(shapes, options, table.name)
    return _Found(box, broken, points, problems)


def shape_boxes(
    shapes: NDArray[Any], options: ReadingOptions, name: str
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The bounds of shapes in pixels, points with their buffer; NaN for none, for empty ones and for 0 0 0 0."""
    shapely = require("shapely", "geo", "Reading geometry")
    box = np.asarray(shapely.bounds(shapes), np.float64).reshape(-1, 4)
    points = np.asarray(shapely.get_type_id(shapes) == _POINT_TYPE, bool) & ~np.isnan(box[:, 0])
    box[(box == 0).all(axis=1) & ~points] = np.nan
    if points.any():
        box[points] += np.array([-1, -1, 1, 1]) * needed_buffer(options, name)
    return box, points


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "…")


def table_images(
    table: Table, column: str | None, options: ReadingOptions
) -> tuple[NDArray[np.int64], list[ImageName], list[Problem]]:
    """The image of every row, −1 where the cell is empty."""
    import pandas as pd

    if column is None:
        return np.zeros(len(table), np.int64), [_image_of_table(table, options)], []
    texts = table.texts(column)
    texts[texts == ""] = None
    codes, names = pd.factorize(texts)
    problems = [
        Problem(table.name, int(table.lines[row]), f"{column} is empty", "Write the name of the image")
        for row in np.flatnonzero(codes < 0)
    ]
    return codes.astype(np.int64), [ImageName(name, table.folder) for name in names], problems


def _image_of_table(table: Table, options: ReadingOptions) -> ImageName:
    """A table without an image column is about the image of its stem, or the only one there is."""
    if options.files is not None and len(options.files) == 1:
        return ImageName(options.files[0].name, options.files[0].parent, file=options.files[0])
    if table.name == "DataFrame" or nearest("image_path", list(table.columns)):
        raise wrong_columns(table, BOX_COLUMNS, "the table does not say which image a row is about")
    return ImageName("", table.folder, stem=table.stem)


def table_labels(table: Table, options: ReadingOptions) -> tuple[NDArray[np.int64] | int, list[str]]:
    """The label of every row, −1 where the cell is empty; a table without such a column has one class."""
    import pandas as pd

    column = table.find("label")
    if column is None:
        if nearest("label", list(table.columns)):
            raise wrong_columns(table, BOX_COLUMNS, "the table does not say what the boxes are")
        return 0, [options.only_class]
    texts = table.texts(column)
    texts[texts == ""] = None
    codes, names = pd.factorize(texts)
    return codes.astype(np.int64), [str(name) for name in names]


def table_scores(table: Table) -> NDArray[np.float64] | float:
    """How sure each row is, NaN where nothing stands; tables of truth have no such column."""
    column = table.find("score")
    return np.nan if column is None else table.numbers(column).values


def _per_image(table: Table, column: str | None, image: NDArray[np.int64]) -> dict[int, str]:
    """What a column says about each image: its first row decides."""
    if column is None:
        return {}
    numbers, first = np.unique(image, return_index=True)
    texts = table.texts(column)
    return {int(number): texts[row] for number, row in zip(numbers, first, strict=True) if number >= 0 and texts[row]}


def _torn_images(table: Table, image: NDArray[np.int64]) -> list[Problem]:
    """Rows that put an image into another split than its first row does."""
    column = table.find("split")
    if column is None:
        return []
    texts = table.texts(column)
    _, first, places = np.unique(image, return_index=True, return_inverse=True)
    torn = (texts != texts[first][places]) & (image >= 0)
    return [
        Problem(
            table.name,
            int(table.lines[row]),
            f"{column} is {texts[row]!r}, and {texts[first[places[row]]]!r} in line {table.lines[first[places[row]]]}",
            "An image belongs to one split: write the same in all its rows",
        )
        for row in np.flatnonzero(torn)
    ]


def _mixed_crs(table: Table) -> list[Problem]:
    column = table.find("crs")
    if column is None:
        return []
    texts = table.texts(column)
    names = sorted({text for text in texts if text})
    if len(names) < 2:
        return []
    row = int(np.flatnonzero((texts != "") & (texts != texts[0]))[0])
    what = f"the rows are in different coordinate systems: {', '.join(names)}"
    return [Problem(table.name, int(table.lines[row]), what, "Bring them into one, or write one table for each")]


def frame_of_boxes(rows: Rows) -> pd.DataFrame:
    """Rows as the six-column table that users see; images without boxes are left out."""
    has_box = ~np.isnan(rows.box[:, 0])
    names = np.array([image.name for image in rows.images], object)
    labels = np.array([*rows.labels, ""], object)
    return box_frame(names[rows.image[has_box]], rows.box[has_box], labels[rows.label[has_box]])
