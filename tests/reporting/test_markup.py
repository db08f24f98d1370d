"""Whatever users name their things, a page shows it as text."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.reporting.page import LONGEST_TEXT, Markup, escaped, joined, shortened, table, tag

HOSTILE = ['<script>alert("1")</script>', "a & b", '" onload="x', "'", "]]>", "</style><b>", "<!--"]


class Read(HTMLParser):
    """The texts, attributes and elements of a page."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text, self.elements, self.attributes = "", [], {}
        self.feed(page)
        self.close()

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes |= dict(attrs)


@pytest.mark.parametrize("name", HOSTILE)
def test_text_stays_text_inside_and_in_attributes(name: str) -> None:
    read = Read(tag("p", name, title=name, class_=name))
    assert (read.text, read.elements) == (name, ["p"])
    assert read.attributes == {"title": name, "class": name}


@given(st.text())
def test_any_text_is_read_back_and_can_be_written(name: str) -> None:
    made = tag("p", name, title=name)
    made.encode("utf-8")
    read = Read(made)
    assert read.elements == ["p"]
    assert len(read.text) == len(name.replace("\r\n", "\n")) or "\r" in name


def test_what_a_page_cannot_hold_is_shown_as_such() -> None:
    assert escaped("a\udc80b\x00c\x1bd") == "a�b�c�d"


def test_markup_is_not_escaped_twice_and_other_values_are_text() -> None:
    assert tag("p", tag("b", "x<"), 3, None, ["y", None]) == "<p><b>x&lt;</b>3y</p>"
    assert joined([Markup("<i>"), "<i>"]) == "<i>&lt;i&gt;"
    assert tag("img", alt="a", hidden=True, title=None) == '<img alt="a" hidden>'


def test_elements_of_drawings_are_closed() -> None:
    assert tag("path", d="M0 0") == '<path d="M0 0"></path>'


def test_long_names_are_shortened_and_whole_in_the_title() -> None:
    name = "x" * 500 + "<end>"
    made = shortened(name)
    read = Read(made)
    assert len(read.text) <= LONGEST_TEXT and read.text.endswith("<end>")
    assert read.attributes["title"] == name
    assert shortened("short") == "<bdi>short</bdi>"


def test_tables_name_their_rows_and_columns() -> None:
    made = table(["", "a"], [["<row>", tag("td", "1", class_="best")], ["second", "2"]], label="Numbers")
    assert '<th scope="col">a</th>' in made and '<th scope="row">&lt;row&gt;</th>' in made
    assert '<td class="best">1</td>' in made and "<td>2</td>" in made


def test_text_that_looks_like_a_cell_is_not_one() -> None:
    assert "<td>&lt;td&gt;" in table(["a", "b"], [["row", "<td>"]], label="Numbers")
