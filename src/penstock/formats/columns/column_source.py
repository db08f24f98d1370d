"""ColumnSource: any tables of columns as a Source. The formats add how their columns are read."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from penstock.errors import DataError, OptionError, Problem
from penstock.formats.columns.agreeing import agreed, null_warnings
from penstock.formats.columns.choosing import Taken, choose
from penstock.formats.columns.labelling import class_numbers, listed_classes, vector_classes
from penstock.formats.columns.options import ColumnOptions
from penstock.formats.columns.pixel_shapes import pixel_order, size_of
from penstock.formats.columns.tables import ArrayColumn, Numbers, Table
from penstock.formats.columns.values import field_of, image_of
from penstock.formats.paths import origin_of
from penstock.formats.provenance import provenance
from penstock.samples import Origin, Raw, Sample, Schema, Store
from penstock.samples.store import ImageStorage, Places, objects
from penstock.wording import counted


class ColumnSource(Store):
    """Samples from tables of columns. Abstract: a format makes the tables, and is made anew when it is unpickled."""

    def __init__(
        self, tables: Sequence[Table], options: ColumnOptions, given: Mapping[str, Any], told: Mapping[str, Any]
    ) -> None:
        """`given` makes the same source again from any folder, `told` is what the user wrote, for a pack to keep."""
        self._tables = tuple(table for table in tables if table.length)
        if not self._tables:
            files = [table.where for table in tables] or ["the files"]
            raise DataError([Problem(files[0], None, "it holds no sample", "Check that it is the right file")])
        self._options = options
        self._given, self._told = dict(given), dict(told)
        self._choice = agreed(self._tables, choose(self._tables[0], options), options.given_columns.values())
        self._starts = [0, *np.cumsum([table.length for table in self._tables]).tolist()]
        self._labels, classes = self._labelled()
        self._texts = {name: self._text_column(name) for name in ("key", "group", "split")}
        self._schema = Schema(tuple(taken.field for taken in self._choice.taken), classes)
        self._offer()

    # What it is

    def __getstate__(self) -> dict[str, Any]:
        return dict(self._given)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    @property
    def taken(self) -> dict[str, str]:
        """Which column each field was taken from."""
        return {taken.field.name: taken.column for taken in self._choice.taken}

    @property
    def left_out(self) -> dict[str, str]:
        """Columns that became no field, and why."""
        return dict(self._choice.left_out)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __repr__(self) -> str:
        taken = ", ".join(f"{one.field.name} from {one.column!r} ({one.holds.words})" for one in self._choice.taken)
        return f"{type(self).__name__}({counted(len(self), 'sample')}, {counted(len(self.classes), 'class')}; {taken})"

    # A sample

    def _locate(self, index: int) -> tuple[int, int]:
        if len(self._tables) == 1:
            return 0, index
        which = bisect.bisect_right(self._starts, index) - 1
        return which, index - self._starts[which]

    def read(self, index: int) -> Raw:
        """The image of a sample as it is stored: bytes of an image file, or pixels."""
        if self._image is None:
            return Raw(index, None)
        which, row = self._locate(index)
        return Raw(index, self._image_columns[which].value(row))

    def decode(self, raw: Raw) -> Sample:
        sample = self.annotations(raw.index)
        which, row = self._locate(raw.index)
        for taken in self._choice.taken:
            if taken.field.kind in ("image", "mask"):
                is_first = taken is self._image
                value = raw.data if is_first else self._tables[which].columns[taken.column].value(row)
                sample[taken.field.name] = image_of(taken, value, self._options)
        return sample

    def annotations(self, index: int) -> Sample:
        """Every field but the images."""
        which, row = self._locate(index)
        columns = self._tables[which].columns
        sample: Sample = {"key": self._key(index), "group": self._group(index)}
        split = self._split(index)
        if split is not None:
            sample["split"] = split
        for taken in self._choice.taken:
            if taken.field.name in self._labels:
                sample[taken.field.name] = int(self._labels[taken.field.name][index])
            elif taken.field.kind not in ("image", "mask"):
                sample[taken.field.name] = field_of(taken, columns[taken.column].value(row), self._options)
        return sample

    # Where it comes from

    def _key(self, index: int) -> str:
        texts = self._texts["key"]
        if texts is not None and texts[index] is not None:
            return str(texts[index])
        which, row = self._locate(index)
        return f"{self._tables[which].name}/{row}" if self._tables[which].name else str(row)

    def _group(self, index: int) -> str:
        texts = self._texts["group"]
        if texts is not None and texts[index] not in (None, ""):
            return str(texts[index])
        return self._tables[self._locate(index)[0]].group or self._key(index)

    def _split(self, index: int) -> str | None:
        texts = self._texts["split"]
        if texts is not None:
            return str(texts[index]) if texts[index] not in (None, "") else None
        return self._tables[self._locate(index)[0]].split

    def _text_column(self, name: str) -> NDArray[Any] | None:
        column = getattr(self._choice, name)
        if column is None:
            return None
        return np.concatenate([np.asarray(table.columns[column].whole(), object) for table in self._tables])

    @property
    def tells_origins(self) -> bool:
        return all(table.file is not None for table in self._tables)

    def origin(self, index: int) -> Origin:
        file = self._tables[self._locate(index)[0]].file
        return super().origin(index) if file is None else origin_of(file)

    def describe(self, index: int) -> str:
        """A sample by its number and key, its file and its row there, the first of which is row 0."""
        which, row = self._locate(index)
        file = self._tables[which].file
        said = super().describe(index)
        return said if file is None else f"{said} in {file}, row {row}"

    def problems(self) -> list[Problem]:
        """What the format has to warn of; whatever is wrong was said when it was opened."""
        file = self._tables[0].where
        unused = [
            Problem(
                file, None, f"column {name!r} is not used: {why}", "Name it by fields=… if it is needed", warning=True
            )
            for name, why in self.left_out.items()
        ]
        return [*unused, *null_warnings(self._tables, self._choice)]

    def made_from(self) -> dict[str, Any]:
        return {**provenance(**self._told), "columns": self.taken}

    # Many samples

    def column(self, name: str) -> NDArray[Any]:
        """One stored value for every sample: key, group, split, the label, or a field of one size."""
        if name in ("key", "group"):
            tell = self._key if name == "key" else self._group
            return np.array([tell(index) for index in range(len(self))], object)
        if name == "split" and self._tells_splits:
            return np.array([self._split(index) or "" for index in range(len(self))], object)
        if name not in self.schema:
            there = ", ".join(["key", "group", *self.taken])
            raise KeyError(f"no column {name!r}; there are {there}.")
        if self.schema[name].kind in ("image", "boxes"):
            raise OptionError(f"field {name!r} has another length in every sample; read it sample by sample.")
        return self.gather(name, np.arange(len(self), dtype=np.int64))

    @property
    def _tells_splits(self) -> bool:
        return self._texts["split"] is not None or any(table.split is not None for table in self._tables)

    def gather(self, name: str, indices: Numbers) -> NDArray[Any]:
        """A field of these samples as one array; fields without a fixed size come as an array of objects."""
        if name in self._labels:
            return self._labels[name][indices]
        taken = self._choice[name]
        if taken.how in ("number", "array", "labels"):
            values = self._values(taken, indices)
            if values is not None:
                return values
        return objects([self.annotations(index)[name] for index in indices.tolist()])

    def _values(self, taken: Taken, indices: Numbers) -> NDArray[Any] | None:
        found: NDArray[Any] | None = None
        for which, places in self._by_table(indices):
            values = self._tables[which].columns[taken.column].values(indices[places] - self._starts[which])
            if values is None or (found is not None and values.shape[1:] != found.shape[1:]):
                return None
            if found is None:
                values = values.reshape(len(values)) if taken.how == "number" else values
                found = np.empty((len(indices), *values.shape[1:]), taken.field.dtype)
            found[places] = values.reshape(len(values), *found.shape[1:])
        return found

    def _by_table(self, indices: Numbers) -> list[tuple[int, Any]]:
        if len(self._tables) == 1 or not len(indices):
            return [(0, slice(None))] if len(indices) else []
        tables = self._table_numbers(indices)
        return [(int(which), np.flatnonzero(tables == which)) for which in np.unique(tables)]

    def _table_numbers(self, indices: Numbers) -> Numbers:
        return np.searchsorted(np.asarray(self._starts), indices, side="right").astype(np.int64) - 1

    def shard_numbers(self, indices: Numbers) -> Numbers:
        """A number for each sample that is the same where samples are read together: a file, a row group."""
        numbers = np.empty(len(indices), np.int64)
        for which, places in self._by_table(indices):
            blocks = self._tables[which].blocks
            rows = indices[places] - self._starts[which]
            # the table above, the block within it below
            numbers[places] = (which << 32) + (blocks(rows) if blocks is not None else 0)
        return numbers

    def fingerprint(self) -> str:
        """Changes with the files, with arrays in memory, and with what is taken from them."""
        digest = xxhash.xxh3_128(repr((self._options, self._choice, self.schema)).encode("utf-8", "backslashreplace"))
        for table in self._tables:
            digest.update(f"{table.name} {table.length} {table.split}".encode("utf-8", "backslashreplace"))
            if table.file is not None:
                digest.update(repr(origin_of(table.file)).encode("utf-8", "backslashreplace"))
                continue
            for column in table.columns.values():
                if isinstance(column, ArrayColumn):
                    array = np.ascontiguousarray(column.array)
                    digest.update(repr(array.tolist()).encode() if array.dtype.kind == "O" else array.tobytes())
        return digest.hexdigest()

    # Images

    @property
    def _image(self) -> Taken | None:
        return self._choice.image

    def _offer(self) -> None:
        """Work out once what flows may ask for."""
        images = [taken for taken in self._choice.taken if taken.field.kind == "image"]
        first = images[0] if len(images) == 1 else None
        plain = self._options.channels != "bgr"
        self._image_columns = (
            [] if self._image is None else [table.columns[self._image.column] for table in self._tables]
        )
        self._sizes = self._known_sizes()
        self._image_storage: ImageStorage | None = None
        if first is not None and plain and first.how == "encoded":
            self._image_storage = "encoded"
        elif first is not None and plain and self._sizes is not None and self._lie_as_rgb():
            self._image_storage = "raw"

    @property
    def image_storage(self) -> ImageStorage | None:
        return self._image_storage

    def _known_sizes(self) -> NDArray[np.int64] | None:
        """Width and height of the images of each table, where they are stored as pixels of one size."""
        if self._image is None or self._image.how != "pixels":
            return None
        sizes = []
        for column in self._image_columns:
            order = pixel_order(column.holds, self._options.layout)
            size = None if order is None else size_of(column.holds, order)
            if size is None:
                return None
            sizes.append(size)
        return np.array(sizes, np.int64)

    def _lie_as_rgb(self) -> bool:
        """Whether all pixels lie in mapped memory as the kernel takes them."""
        first = np.zeros(1, np.int64)
        return all(
            pixel_order(column.holds, self._options.layout) == "hwc"
            and column.holds.shape[2] == 3
            and column.places(first) is not None
            for column in self._image_columns
        )

    def image_sizes(self, indices: Numbers) -> Numbers | None:
        return None if self._sizes is None else self._sizes[self._table_numbers(indices)]

    def uniform_image_size(self) -> tuple[int, int] | None:
        """Width and height, where all images are known to have the same."""
        if self._sizes is None or (self._sizes != self._sizes[0]).any():
            return None
        return int(self._sizes[0, 0]), int(self._sizes[0, 1])

    def pixel_places(self, indices: Numbers) -> Places:
        """Where raw pixels lie: buffers, and for each image which one, where in it, width and height."""
        places = np.zeros((len(indices), 4), np.int64)
        buffers: list[Any] = []
        for which, rows in self._by_table(indices):
            found = self._image_columns[which].places(indices[rows] - self._starts[which])
            assert found is not None and self._sizes is not None
            places[rows, 0] = len(buffers)
            places[rows, 1] = found.offsets
            places[rows, 2:] = self._sizes[which]
            buffers.append(found.buffer)
        return tuple(buffers), places

    # Classes

    def _labelled(self) -> tuple[dict[str, NDArray[np.int64]], tuple[str, ...]]:
        """Class numbers by field, and the names of the classes."""
        names = self._options.class_names or listed_classes(self._tables)
        label = self._choice.label
        boxed = next((taken for taken in self._choice.taken if taken.field.name == "box_label"), None)
        if label is None:
            return {}, vector_classes(self._tables, boxed or self._vector(), names)
        numbers, classes = class_numbers(self._tables, label.column, names or label.holds.classes or None)
        if boxed is not None and vector_classes(self._tables, boxed, names) != classes:
            raise OptionError(
                f"{label.column!r} and {boxed.column!r} have different classes, and a source has one list of them. "
                'Leave one out (label="" or boxes=""), or pass classes that hold for both.'
            )
        return {label.field.name: np.concatenate(numbers)}, classes

    def _vector(self) -> Taken | None:
        return next((taken for taken in self._choice.taken if taken.how == "labels"), None)
