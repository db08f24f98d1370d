"""`Parquet`: files with a column of encoded images, and labels, numbers and texts beside it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import DataError, Problem
from penstock.formats.arrow.arrow_columns import ArrowColumn, below
from penstock.formats.arrow.arrow_types import Leaf, leaves
from penstock.formats.columns.column_source import ColumnSource
from penstock.formats.columns.kept import Kept
from penstock.formats.columns.mapped_files import mapped_bytes
from penstock.formats.columns.options import column_options
from penstock.formats.columns.split_names import split_of_file
from penstock.formats.columns.tables import Numbers, Places, Table
from penstock.formats.paths import PathLike, expand, files_below
from penstock.storage.free_memory import SMALL_BYTES, check_unpacked
from penstock.storage.locations import refuses_urls
from penstock.storage.plain_files import refuse_special
from penstock.wording import counted

PARQUET_ENDINGS = (".parquet", ".pq")
# From here on a random read decodes much more than it needs.
LARGE_GROUP_BYTES = 32 << 20
NUMBER_BYTES = 8


class Parquet(ColumnSource):
    """Rows of Parquet files.

    paths    a file, a pattern, a list of them, or a folder
    columns  options of columns (`ColumnOptions`): image, label, boxes, fields, classes, …

    Images are bytes of image files, or Hugging Face's {bytes, path}. Parquet is read by row groups: a sample costs
    the decoding of its group, and the last groups are kept (256 MiB in all). In random order over large groups that is
    slow: use `shuffle(window=…)`, which takes group after group, or pack the files.
    """

    @refuses_urls()
    def __init__(self, paths: PathLike | Sequence[PathLike], **columns: Any) -> None:
        options = column_options("Parquet", columns)
        files = parquet_paths(paths)
        kept: Kept[ArrowColumn] = Kept()
        opened = [ParquetRows(file, kept) for file in files]
        super().__init__(
            [_table(rows, len(files) > 1) for rows in opened],
            options,
            {"paths": files, **columns},
            {"paths": paths, **columns},
        )
        self._largest = max((rows.largest_group for rows in opened), key=lambda found: found[0])

    def problems(self) -> list[Problem]:
        """Columns that are not used, and a warning if random reads will be slow."""
        size, group, file = self._largest
        if size < LARGE_GROUP_BYTES:
            return super().problems()
        what = (
            f"row group {group} has {size / 1e6:,.0f} MB, and a sample in random order costs the decoding of its group"
        )
        remedy = "Use shuffle(window=…), pack the files, or write them with a smaller row_group_size"
        return [*super().problems(), Problem(file, None, what, remedy, warning=True)]


def parquet_paths(paths: PathLike | Sequence[PathLike]) -> list[Path]:
    """The files that are meant; a folder means those below it."""
    found: list[Path] = []
    for path in expand(paths):
        inside = files_below(path, PARQUET_ENDINGS) if path.is_dir() else [path]
        if not inside:
            raise DataError([Problem(str(path), None, "there is no .parquet file in it", "Name the files")])
        found += [file.absolute() for file in inside]
    return found


class ParquetRows:
    """One file: its row groups and columns."""

    def __init__(self, path: Path, kept: Kept[ArrowColumn]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.path, self._kept = path, kept
        try:
            refuse_special(path)
            with pq.ParquetFile(path) as file:
                self._metadata, self.leaves = file.metadata, leaves(file.schema_arrow)
            groups = [self._metadata.row_group(number) for number in range(self._metadata.num_row_groups)]
            rows = [group.num_rows for group in groups]
            if any(count < 0 for count in rows) or sum(rows) != self._metadata.num_rows:
                raise ValueError(
                    f"its {len(rows)} row groups do not have {counted(self._metadata.num_rows, 'row')} together"
                )
            self._file_bytes = path.stat().st_size
            check_unpacked(NUMBER_BYTES * sum(rows), self._file_bytes)
        except (pa.ArrowException, OSError, ValueError) as error:  # ValueError: names that are not UTF-8
            what = f"it cannot be read as Parquet ({error})"
            raise DataError([Problem(str(path), None, what, "Check the path, or copy it again")]) from error
        self.starts = np.cumsum([0, *rows]).astype(np.int64)
        self._sizes = [group.total_byte_size for group in groups]

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def largest_group(self) -> tuple[int, int, str]:
        """Bytes, number and file of the largest row group."""
        group = int(np.argmax(self._sizes)) if self._sizes else 0
        return (self._sizes[group] if self._sizes else 0), group, str(self.path)

    def groups(self, rows: Numbers) -> Numbers:
        return np.searchsorted(self.starts, rows, side="right").astype(np.int64) - 1

    def group(self, number: int, leaf: Leaf) -> ArrowColumn:
        """One column of one row group, decoded and kept for a while."""
        return self._kept.get((str(self.path), number, leaf.path), lambda: self._decoded(number, leaf))

    def _decoded(self, number: int, leaf: Leaf) -> tuple[ArrowColumn, int]:
        chunked = self._read([number], leaf)
        return self._column(chunked, leaf), chunked.nbytes

    def _column(self, chunked: Any, leaf: Leaf) -> ArrowColumn:
        chunks = [below(chunk, leaf.path[1:], leaf.holds) for chunk in chunked.chunks]
        return ArrowColumn(chunks, leaf.holds, str(self.path))

    def _read(self, groups: list[int], leaf: Leaf) -> Any:
        """An open file is not shared between threads, and with its metadata known opening costs little."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            buffer = pa.BufferReader(mapped_bytes(self.path))
            # Pages without a checksum, which most writers leave out, are read as before.
            with pq.ParquetFile(buffer, metadata=self._metadata, page_checksum_verification=True) as file:
                found = self._column_of(file, groups, leaf)
            wanted = sum(self._rows_of(number) for number in groups)
            if len(found) != wanted:
                raise ValueError(f"it has {counted(len(found), 'value')} for {counted(wanted, 'row')}")
            return found
        except (pa.ArrowException, OSError, ValueError) as error:
            what = f"column {leaf.name!r} of row group {groups[0]} cannot be read ({error})"
            raise DataError([Problem(str(self.path), None, what, "It is damaged; copy or write it again")]) from error

    def _column_of(self, file: Any, groups: list[int], leaf: Leaf) -> Any:
        """A column of some groups, read in steps where one value that repeats could fill the memory."""
        import pyarrow as pa

        columns, rows = [".".join(leaf.path)], max((self._rows_of(number) for number in groups), default=0)
        largest = max((self._largest_value(number, leaf) for number in groups), default=0)
        if rows * largest <= SMALL_BYTES:
            return file.read_row_groups(groups, columns=columns, use_threads=False).column(0)
        total, batches = 0, []
        step = max(1, SMALL_BYTES // largest)
        for batch in file.iter_batches(step, row_groups=groups, columns=columns, use_threads=False):
            batches.append(batch)
            total += batch.nbytes
            check_unpacked(total, self._file_bytes)
        return pa.Table.from_batches(batches).column(0)

    def _rows_of(self, number: int) -> int:
        return int(self.starts[number + 1] - self.starts[number])

    def _largest_value(self, number: int, leaf: Leaf) -> int:
        """More bytes than any value has: all that the column has in a group, in which a value may stand once."""
        if leaf.holds.what == "array":
            return NUMBER_BYTES
        group = self._metadata.row_group(number)
        chunks = [group.column(place) for place in range(group.num_columns)]
        return int(
            max((one.total_uncompressed_size for one in chunks if one.path_in_schema.startswith(leaf.name)), default=0)
        )

    def count_nulls(self, leaf: Leaf) -> int:
        """Rows without a value, by what the file notes of its row groups; those without a note are read."""
        total = 0
        for number in range(len(self._sizes)):
            group = self._metadata.row_group(number)
            chunks = [group.column(place) for place in range(group.num_columns)]
            noted = next((one.statistics for one in chunks if one.path_in_schema == leaf.name), None)
            if noted is not None and noted.has_null_count:
                total += int(noted.null_count)
            else:
                total += self._decoded(number, leaf)[0].gaps()
        return total

    def whole(self, leaf: Leaf) -> ArrowColumn:
        return self._column(self._read(list(range(len(self._sizes))), leaf), leaf)


class ParquetColumn:
    """A column that is decoded by row groups; numbers are read all at once."""

    def __init__(self, rows: ParquetRows, leaf: Leaf) -> None:
        self._rows, self._leaf, self.holds = rows, leaf, leaf.holds
        self._is_small = leaf.holds.what == "array" and leaf.holds.shape == ()

    @functools.cached_property
    def _all(self) -> ArrowColumn:
        return self._rows.whole(self._leaf)

    def value(self, row: int) -> Any:
        if self._is_small:
            return self._all.value(row)
        group = int(np.searchsorted(self._rows.starts, row, side="right")) - 1
        return self._rows.group(group, self._leaf).value(row - int(self._rows.starts[group]))

    def values(self, rows: Numbers) -> NDArray[Any] | None:
        return self._all.values(rows) if self._is_small else None

    def whole(self) -> NDArray[Any]:
        return self._all.whole() if self._is_small else self._rows.whole(self._leaf).whole()

    def flat(self) -> NDArray[Any]:
        return self._rows.whole(self._leaf).flat()

    def gaps(self) -> int:
        """How many rows have no value; of arrays of one fixed size and of bytes it is not known."""
        if self._is_small:
            return self._all.gaps()
        if self.holds.what == "text":
            return self._rows.count_nulls(self._leaf)
        is_list = self.holds.what == "array" and None in self.holds.shape
        return self._rows.whole(self._leaf).gaps() if is_list else 0

    def places(self, rows: Numbers) -> Places | None:
        return None


def _table(rows: ParquetRows, is_one_of_several: bool) -> Table:
    path = rows.path
    return Table(
        path.stem if is_one_of_several else "",
        str(path),
        len(rows),
        {leaf.name: ParquetColumn(rows, leaf) for leaf in rows.leaves},
        split_of_file(path.stem) or split_of_file(path.parent.name),
        blocks=rows.groups,
    )
