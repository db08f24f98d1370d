"""CSV: records, and the line of each as an editor counts it."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.formats.text_tables import TextTable, read_text_table


def read(folder: Path, data: bytes) -> TextTable:
    path = folder / "table.csv"
    path.write_bytes(data)
    table = read_text_table(path, "table.csv")
    assert table is not None
    return table


def rows(table: TextTable) -> list[tuple[str, ...]]:
    return list(zip(*(column.tolist() for column in table.columns), strict=True))


def test_lines_count_blank_lines_and_line_breaks_inside_quotes(tmp_path: Path) -> None:
    table = read(tmp_path, b'a,b\n\n"x\ny",1\n   \r\nz,2\r\n\n\nw,3')
    assert rows(table) == [("x\ny", "1"), ("z", "2"), ("w", "3")]
    assert table.lines.tolist() == [3, 6, 9]
    assert table.header_line == 1


def test_a_header_below_blank_lines_is_found(tmp_path: Path) -> None:
    table = read(tmp_path, b"\n\na,b\n1,2\n")
    assert (table.header, table.header_line, table.lines.tolist()) == (("a", "b"), 3, [4])


def test_records_of_another_length_are_reported_and_the_others_kept(tmp_path: Path) -> None:
    table = read(tmp_path, b"a,b\n1\n2,3\n4,5,6\n")
    assert rows(table) == [("2", "3")]
    assert table.lines.tolist() == [3]
    assert [(problem.row, problem.what) for problem in table.problems] == [
        (2, "the line has 1 fields, the first line has 2"),
        (4, "the line has 3 fields, the first line has 2"),
    ]


def test_separators_inside_quotes_do_not_count(tmp_path: Path) -> None:
    assert rows(read(tmp_path, b'a,b\n"x,y","he said ""so"""\n')) == [("x,y", 'he said "so"')]


def test_a_quote_that_is_never_closed_is_named_by_its_line(tmp_path: Path) -> None:
    with pytest.raises(ps.DataError, match=r"table.csv line 3: a quote is opened here and never closed"):
        read(tmp_path, b'a,b\n1,2\n"x,3\n4,5\n')


def test_a_text_that_is_not_utf8_is_read_with_a_warning(tmp_path: Path) -> None:
    table = read(tmp_path, "a,b\nBäume,2\n".encode("latin-1"))
    assert rows(table) == [("Bäume", "2")]
    assert [problem.warning for problem in table.problems] == [True]


def test_a_file_of_blanks_holds_no_table(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    for data in (b"", b"\n \n", b"\xef\xbb\xbf"):
        path.write_bytes(data)
        assert read_text_table(path, "table.csv") is None


def test_lone_carriage_returns_end_lines_too(tmp_path: Path) -> None:
    table = read(tmp_path, b"a,b\rx,1\ny,2\r\n")
    assert table.header == ("a", "b")
    assert rows(table) == [("x", "1"), ("y", "2")]
    assert table.lines.tolist() == [2, 3]


def test_a_file_that_is_no_text_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(ps.DataError, match="table.csv: not a text file.* Expected a table as CSV or Parquet"):
        read(tmp_path, b"\0\0\0\x20ftypisom\r\0\n")


_CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\r\0", exclude_categories=["Cs", "Cc"]), max_size=6)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(_CELLS, _CELLS, st.booleans()), min_size=1, max_size=8))
def test_what_python_writes_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, cells: list[tuple[str, str, bool]]
) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(["a", "b"])
    expected, line = [], 2
    for first, second, broken_line in cells:
        first = first + "\n." if broken_line else first
        expected.append((line, first.strip(), second.strip()))
        writer.writerow([first, second])
        line += 1 + broken_line
    table = read(tmp_path_factory.mktemp("table"), text.getvalue().encode())
    assert [(int(number), *row) for number, row in zip(table.lines, rows(table), strict=True)] == expected
