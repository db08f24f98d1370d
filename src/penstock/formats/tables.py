"""Tables of any kind (CSV, Parquet, DataFrame) with columns found by the names that people give them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.errors import DataError, Problem, nearest
from penstock.formats.text_tables import read_text_table
from penstock.storage.free_memory import check_unpacked
from penstock.storage.plain_files import refuse_special

if TYPE_CHECKING:
    import pandas as pd

# Names as people write them, without case, blanks and underscores; the first that is there is taken.
COLUMN_NAMES: Mapping[str, tuple[str, ...]] = {
    "image": ("imagepath", "image", "filename", "file", "path", "filepath", "imagefile", "imagename", "imgpath", "img"),
    "label": ("label", "labels", "labelname", "class", "classname", "category", "categoryname"),
    "x1": ("xmin", "x1", "minx", "left"),
    "y1": ("ymin", "y1", "miny", "top"),
    "x2": ("xmax", "x2", "maxx", "right"),
    "y2": ("ymax", "y2", "maxy", "bottom"),
    "x": ("x",),
    "y": ("y",),
    "w": ("w", "width", "boxwidth", "bboxwidth"),
    "h": ("h", "height", "boxheight", "bboxheight"),
    "cx": ("cx", "xcenter", "xcentre", "centerx", "centrex", "xc"),
    "cy": ("cy", "ycenter", "ycentre", "centery", "centrey", "yc"),
    "geometry": ("geometry", "wkt", "polygon", "geom"),
    "split": ("split",),
    "group": ("group",),
    "crs": ("crs",),
    "score": ("score", "scores", "confidence", "conf", "probability"),
}
# What a cell takes in memory at least.
CELL_BYTES = 8
TABLE_ENDINGS = frozenset({".csv", ".tsv", ".txt", ".parquet", ".pq"})


class Numbers(NamedTuple):
    """A column as float64, where it was empty, and where something stood that is no finite number."""

    values: NDArray[np.float64]
    missing: NDArray[np.bool_]
    wrong: NDArray[np.bool_]


@dataclass(frozen=True)
class Table:
    """Columns as written, and for each record its line (text), number from 1 (Parquet) or index (DataFrame)."""

    name: str
    folder: Path
    columns: dict[str, NDArray[Any]]
    lines: NDArray[np.int64]
    problems: tuple[Problem, ...] = ()
    decimal_comma: bool = False

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def stem(self) -> str:
        return Path(self.name).stem

    def find(self, role: str) -> str | None:
        """The column that plays a role, by its name."""
        by_plain_name: dict[str, str] = {}
        for name in self.columns:
            by_plain_name.setdefault(plain(name), name)
        return next((by_plain_name[name] for name in COLUMN_NAMES[role] if name in by_plain_name), None)

    def texts(self, column: str) -> NDArray[Any]:
        """A column as texts, empty where nothing stands; 3.0 is written 3."""
        values = self.columns[column]
        if values.dtype != object:
            distinct, places = np.unique(values, return_inverse=True)
            written: NDArray[Any] = np.array([_text(value) for value in distinct.tolist()], object)[places]
            return written
        return np.array([value if isinstance(value, str) else _text(value) for value in values], object)

    def text_at(self, column: str, row: int) -> str:
        """One cell as text."""
        return _text(self.columns[column][row])

    def numbers(self, column: str) -> Numbers:
        """A column as numbers."""
        import pandas as pd

        values = self.columns[column]
        if values.dtype != object:
            parsed = values.astype(np.float64)
            missing = np.isnan(parsed)
            return Numbers(parsed, missing, ~missing & ~np.isfinite(parsed))
        missing = np.asarray(pd.isna(values) | (values == ""), bool)
        if self.decimal_comma:
            values = np.array(
                [value.replace(",", ".") if isinstance(value, str) else value for value in values], object
            )
        parsed = np.asarray(pd.to_numeric(pd.Series(values, dtype=object), errors="coerce"), np.float64)
        return Numbers(parsed, missing, ~missing & ~np.isfinite(parsed))


def plain(name: str) -> str:
    """A column name without what people vary."""
    return re.sub(r"[\W_]+", "", name.lower())


def _text(value: Any) -> str:
    if isinstance(value, (np.ndarray, list, dict)):
        return str(list(value) if isinstance(value, np.ndarray) else value)
    if value is None or value != value:  # NaN and NaT are not equal to themselves
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def read_table(path: Path, *, headerless: tuple[str, ...] = (), first_line: int = 1) -> Table:
    """A CSV or Parquet file; `headerless` names the columns of a file whose first line is already data.

    `first_line` is where the table begins in a file that says something else before it.
    """
    if path.suffix.lower() in (".parquet", ".pq"):
        return _read_parquet(path)
    text = read_text_table(path, str(path), first_line=first_line)
    if text is None:
        raise DataError([Problem(str(path), None, "the file is empty", "Write a header and one line per sample")])
    header, columns, lines = text.header, text.columns, text.lines
    if _is_data(header, headerless, text.separator):
        first = [np.array([value], object) for value in header]
        columns = tuple(np.concatenate([value, column]) for value, column in zip(first, columns, strict=True))
        header, lines = headerless, np.concatenate([[text.header_line], lines])
    named = dict(zip(_distinct(header), columns, strict=True))
    return Table(str(path), path.parent, named, lines, text.problems, decimal_comma=text.separator == ";")


def _is_data(first: tuple[str, ...], headerless: tuple[str, ...], separator: str) -> bool:
    """Whether the first line is a record of the known columns: of as many fields, and those between are numbers."""
    if not headerless or len(first) != len(headerless):
        return False
    middle = [field.replace(",", ".") if separator == ";" else field for field in first[1:-1]]
    return all(field == "" for field in middle) or all(_is_number(field) for field in middle)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _distinct(header: tuple[str, ...]) -> list[str]:
    """Header names, with a number behind a repeated one so that no column is lost."""
    seen: dict[str, int] = {}
    names = []
    for name in header:
        seen[name] = seen.get(name, 0) + 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return names


def _read_parquet(path: Path) -> Table:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        refuse_special(path)
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            cells = file.metadata.num_rows * file.metadata.num_columns  # repeated values take no room in the file
            check_unpacked(CELL_BYTES * cells, path.stat().st_size)
            table = file.read()
        columns = {name: table.column(name).to_pandas().to_numpy() for name in table.column_names}
    # ValueError: names that are not UTF-8, or too much; KeyError: two columns of one name
    except (OSError, pa.ArrowException, ValueError, KeyError, OverflowError) as error:
        raise DataError(
            [Problem(str(path), None, f"is no readable Parquet file: {error}", "Write it again")]
        ) from error
    return Table(str(path), path.parent, _plain_types(columns), np.arange(1, table.num_rows + 1))


def table_of_frame(frame: pd.DataFrame) -> Table:
    """A DataFrame of the user; images are looked for in the current folder unless told otherwise."""
    index = frame.index
    lines = np.asarray(index, np.int64) if index.dtype.kind in "iu" else np.arange(len(frame))
    columns = {str(name): frame[name].to_numpy() for name in frame.columns}
    return Table("DataFrame", Path(), _plain_types(columns), lines)


def _plain_types(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Whole numbers and floats as they are, everything else as objects; lists in cells as texts."""
    plain = {name: values if values.dtype.kind in "iuf" else values.astype(object) for name, values in columns.items()}
    for name, values in plain.items():
        if values.dtype == object and any(isinstance(value, (np.ndarray, list, dict)) for value in values):
            plain[name] = np.array([_text(value) for value in values], object)
    return plain


def role_column(table: Table, role: str, wanted: str | None) -> str | None:
    """The column that the user named for a role, such as group, or the one that is called so."""
    if wanted is None:
        return table.find(role)
    if wanted not in table.columns:
        raise wrong_columns(table, (wanted,), f"there is no column {wanted!r} to take the {role} from")
    return wanted


def wrong_columns(table: Table, expected: tuple[str, ...], what: str) -> DataError:
    """The error for a table of another kind: which columns it has, which were expected, and what was probably meant."""
    found = [name for name in table.columns if name]
    missing = [name for name in expected if plain(name) not in {plain(column) for column in found}]
    hints = [f"{name} is missing.{guess}" for name in missing if (guess := nearest(name, found))]
    has = f"the columns are {', '.join(found)}" if found else "there are no named columns"
    return DataError(
        [Problem(table.name, None, f"{what}: {has}", f"Expected {', '.join(expected)}. {' '.join(hints)}".strip())]
    )


def kind_of_table(path: Path) -> str:
    """Which class reads a text table, by the names in its first line; empty where that is none."""
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            first = file.readline(10_000)
    except OSError:
        return ""
    for separator in (",", "\t", ";"):
        if separator in first:
            return kind_of_columns([name.strip().strip('"') for name in first.split(separator)])
    return ""


def kind_of_columns(names: list[str]) -> str:
    """Which class reads a table of these columns; empty where that is none."""
    there = {plain(name) for name in names}

    def has(role: str) -> bool:
        return any(name in there for name in COLUMN_NAMES[role])

    layouts = (("x1", "y1", "x2", "y2"), ("x", "y", "w", "h"), ("cx", "cy", "w", "h"), ("geometry",))
    if any(all(has(role) for role in layout) for layout in layouts):
        return "Boxes"
    return "Images" if has("image") else ""
