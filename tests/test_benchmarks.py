"""Benchmarks tell what they found in one form, and the page on performance says that and nothing else."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from benchmarks.__main__ import TABLES
from benchmarks.charts import chart
from benchmarks.rendering import BEGIN, END, PAGE, README, RESULTS, page, pictures, read_tables, with_speed, write
from benchmarks.rounds import Result
from benchmarks.tables import BEST_PEER, OURS, Bar, Row, Table, Value, compare, read_row, within

VALUES = [
    Value(OURS, 300.0, "penstock"),
    Value("slow peer", 50.0),
    Value("fast peer", 100.0, versions={"fast": "1.2"}, note="shuffles in a buffer"),
    Value("bare loop", 400.0, "limit"),
    Value("gone peer", 0.0, absent="not installed"),
]


@pytest.fixture
def row() -> Row:
    return compare("A: images", "images/s", VALUES, [Bar(OURS, BEST_PEER, 2.5), Bar(OURS, "bare loop", 0.8)])


def test_rates_are_judged_by_the_best_peer_and_by_the_limit(row: Row) -> None:
    assert [(bar.figure, bar.must, bar.reached) for bar in row.bars] == [
        ("3.00 × fast peer (300 and 100 images/s)", "≥ 2.5 ×", True),
        ("0.75 × bare loop (300 and 400 images/s)", "≥ 0.8 ×", False),
    ]


def test_times_are_judged_the_other_way_round() -> None:
    values = [Value(OURS, 2.0, "penstock"), Value("cp -r", 3.0, "limit")]
    row = compare("copy", "s", values, [Bar(OURS, "cp -r", 0.5)], smaller_is_better=True)
    assert row.bars[0].figure.startswith("1.50 × cp -r") and row.bars[0].reached
    assert [value.name for value in row.present] == [OURS, "cp -r"]


def test_who_is_absent_reaches_nothing() -> None:
    row = compare("A", "images/s", VALUES, [Bar(OURS, "gone peer", 1.0)])
    assert row.bars == (Result("A: Penstock beside gone peer", "one of them did not take part", "≥ 1 ×", False),)


def test_a_figure_by_itself_must_stay_below_its_limit() -> None:
    assert within("open", 12.0, "ms", 100).bars[0].reached
    assert not within("open", 100.0, "ms", 100).bars[0].reached


def test_a_table_is_written_with_versions_and_read_again(row: Row, tmp_path: Path) -> None:
    table = Table("feed", tmp_path / "new" / "feed.json")
    table.add(row)
    table.add(Result("memory", "3 MB", "flat", True))
    document = json.loads((tmp_path / "new" / "feed.json").read_text(encoding="utf-8"))
    assert read_row(document["rows"][0]) == row
    assert document["versions"]["penstock"] and document["machine"]["cores"]
    assert document["command"].startswith("python -m benchmarks.feed")


def test_the_page_has_every_figure_ratio_and_absentee(row: Row, tmp_path: Path) -> None:
    table = Table("feed", tmp_path / "feed.json")
    for found in (row, within("open", 12.0, "ms", 100), Result("memory", "3 MB", "flat", True)):
        table.add(found)
    text = page(read_tables(tmp_path))
    assert "| **Penstock** | 300 | 3.00 | 0.75 |  |" in text
    assert "| fast peer | 100 | 1.00 | 0.25 | fast 1.2, shuffles in a buffer |" in text
    assert "| gone peer | absent | | | not installed |" in text
    assert "| ≥ 0.8 × bare loop | 0.75 × bare loop (300 and 400 images/s) | missed |" in text
    assert "| open | 12 ms | < 100 ms | reached |" in text and "| memory | 3 MB | flat | reached |" in text


def test_kinds_are_compared_with_their_own(tmp_path: Path) -> None:
    values = [
        Value("Penstock, raw", 80.0, "penstock"),
        Value("loop, raw", 100.0, "limit"),
        Value("loop, JPEG", 10.0, "limit"),
        Value("Penstock, JPEG", 9.0, "penstock"),
    ]
    table = Table("feed", tmp_path / "feed.json")
    table.add(compare("A", "images/s", values))
    assert "| **Penstock, JPEG** | 9 |  | 0.90 |  |" in page(read_tables(tmp_path))


def test_bars_of_a_picture_are_as_long_as_their_figures(row: Row) -> None:
    drawn = ElementTree.fromstring(chart(row))
    widths = [float(bar.attrib["width"]) for bar in drawn.iter("{http://www.w3.org/2000/svg}rect")]
    assert [round(width / widths[0], 3) for width in widths] == [1.0, 0.75, 0.25, 0.125]


def test_pictures_of_rows_that_are_gone_go_too(row: Row, tmp_path: Path) -> None:
    Table("feed", tmp_path / "feed.json").add(row)
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "old-3.svg").write_text("")
    write(tmp_path, tmp_path / "page.md")
    assert [path.name for path in (tmp_path / "page").iterdir()] == ["feed-0.svg"]


def test_the_page_on_performance_is_what_the_results_say() -> None:
    documents = read_tables(RESULTS)
    assert PAGE.read_text(encoding="utf-8") == page(documents), "run `python -m benchmarks.rendering`"
    folder = PAGE.with_suffix("")
    assert {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.svg")} == pictures(documents)


def test_the_readme_has_the_rows_with_peers_and_nothing_else_is_changed(row: Row, tmp_path: Path) -> None:
    table = Table("feed", tmp_path / "feed.json")
    for found in (row, within("open", 12.0, "ms", 100)):
        table.add(found)
    text = with_speed(f"before\n{BEGIN}old\n{END}after\n", read_tables(tmp_path))
    assert text.startswith(f"before\n{BEGIN}") and text.endswith(f"{END}after\n") and "old" not in text
    assert "| A: images | 300 images/s | 100 (fast peer) | **3.0 ×** |" in text and "open" not in text
    assert with_speed(text, read_tables(tmp_path)) == text


def test_the_readme_says_what_the_results_say() -> None:
    text = README.read_text(encoding="utf-8")
    assert BEGIN in text and END in text
    assert with_speed(text, read_tables(RESULTS)) == text, "run `python -m benchmarks.rendering`"


@pytest.mark.parametrize("name", TABLES)
def test_every_table_can_be_run(name: str) -> None:
    assert callable(importlib.import_module(f"benchmarks.{name}").main)
