"""The shell of a page, and HTML from Python values, escaped by construction."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock import __version__
from penstock.reporting.page_style import STYLE
from penstock.reporting.wording import without_folders

# HTML from Python values, escaped by construction: only what is Markup already goes in as it is.


# A page cannot hold these: halves of surrogate pairs, which names of files may have, and control characters.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_WITHOUT_END = ("img", "meta")
LONGEST_TEXT = 160  # characters that are shown of a name or value; the rest is in its title
LONGEST_TITLE = 2000


class Markup(str):
    """Text that is HTML."""

    __slots__ = ()


Child = object  # Markup, a text, a number, None for nothing, or any number of these
NOTHING = Markup("")


def escaped(value: object) -> Markup:
    """A value as text of a page."""
    if isinstance(value, Markup):
        return value
    return Markup(html.escape(_UNPRINTABLE.sub("\ufffd", str(value)), quote=True))


def joined(children: Iterable[Child]) -> Markup:
    """Children one after another; None is left out."""
    return Markup("".join(_inside(child) for child in children))


def _inside(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Iterable) and not isinstance(child, str):
        return joined(child)
    return escaped(child)


def tag(name: str, /, *children: Child, **attributes: object) -> Markup:
    """An element; `class_` is its class, `data_x` is data-x, and attributes that are None are left out."""
    opening = f"<{name}{''.join(_attribute(key, value) for key, value in attributes.items() if value is not None)}>"
    return Markup(opening if name in _WITHOUT_END else f"{opening}{joined(children)}</{name}>")


def _attribute(key: str, value: object) -> str:
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escaped(value)}"'


def shortened(value: object, longest: int = LONGEST_TEXT) -> Markup:
    """A name or value that may be of any length: its begin and end are shown, and all of it is its title.

    Of absolute paths the end is shown.
    """
    text = without_folders(str(value))
    if len(text) <= longest:
        return tag("bdi", text)
    half = (longest - 1) // 2
    return tag("bdi", f"{text[:half]}…{text[-half:]}", title=text[:LONGEST_TITLE])


def table(
    head: Sequence[Child], rows: Iterable[Sequence[Child]], *, class_: str = "", numbers: bool = True, label: str
) -> Markup:
    """A table whose first column names its rows; wide ones scroll inside of themselves."""
    kind = f"{class_} numbers" if numbers else class_
    columns = tag("tr", [tag("th", cell, scope="col") for cell in head]) if head else None
    body = [tag("tr", tag("th", first, scope="row"), [_cell(cell) for cell in rest]) for first, *rest in rows]
    style = f"--columns:{len(head)}" if head else None
    content = tag(
        "table", tag("thead", columns) if columns else None, tag("tbody", body), class_=kind.strip(), style=style
    )
    # Reachable by keyboard, as it may have to be scrolled.
    return tag("div", content, class_="scroll", tabindex="0", role="region", aria_label=label)


def _cell(value: Child) -> Markup:
    is_cell = isinstance(value, Markup) and value.startswith("<td")
    return Markup(value) if is_cell else tag("td", value)


def folded(summary: Child, *content: Child) -> Markup:
    """What is there for those who ask."""
    return tag("details", tag("summary", summary), *content)


def note(*words: Child) -> Markup:
    """A sentence about what is not there, or how to read what is."""
    return tag("p", *words, class_="note")


# Values at the place of the pointer, beside it. Without it the browser shows them as plain titles.
SCRIPT = """
const tip = document.getElementById("tip");
for (const spot of document.querySelectorAll(".spot")) {
  const title = spot.querySelector("title"), text = title.textContent;
  title.remove();
  spot.addEventListener("pointermove", event => {
    tip.textContent = text;
    tip.hidden = false;
    const left = Math.min(event.clientX + 14, document.documentElement.clientWidth - tip.offsetWidth - 8);
    const below = event.clientY + 18, above = event.clientY - tip.offsetHeight - 10;
    tip.style.left = Math.max(8, left) + "px";
    tip.style.top = (below + tip.offsetHeight > innerHeight ? above : below) + "px";
  });
  spot.addEventListener("pointerleave", () => { tip.hidden = true; });
}
addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
"""


@dataclass(frozen=True)
class Part:
    """A section of a page."""

    title: str
    content: Markup

    @property
    def anchor(self) -> str:
        return re.sub(r"[^a-z]+", "-", self.title.lower())


def page(title: str, kind: str, parts: Sequence[Part], badge: Markup | None = None) -> str:
    """A whole page as text."""
    body = tag(
        "body",
        tag("a", "Skip to the content", href="#content", class_="skip"),
        _head_line(title, kind, parts, badge),
        tag("main", [_section(part) for part in parts], id="content"),
        tag("footer", f"Written by Penstock {__version__}."),
        tag("div", id="tip", hidden=True, aria_hidden="true"),
        tag("script", Markup(SCRIPT)),
    )
    return f"<!DOCTYPE html>\n{tag('html', _head(title), body, lang='en')}\n"


def _head(title: str) -> Markup:
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy()),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"{title[:120]} – Penstock"),
        tag("style", Markup(STYLE)),
    )


def _policy() -> str:
    """Nothing is loaded, and no script runs but ours, whatever a name in the data looks like."""
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode("utf-8")).digest()).decode()
    allowed = ("default-src 'none'", "style-src 'unsafe-inline'", "img-src data:", f"script-src 'sha256-{digest}'")
    return "; ".join((*allowed, "base-uri 'none'", "form-action 'none'"))


def _head_line(title: str, kind: str, parts: Sequence[Part], badge: Markup | None) -> Markup:
    links = [tag("a", part.title, href=f"#{part.anchor}") for part in parts]
    return tag(
        "header",
        tag("p", tag("b", "Penstock"), " ", shortened(kind, 60), class_="kicker"),
        tag("h1", shortened(title, 120), " ", badge),
        tag("nav", links, aria_label="Sections"),
    )


def _section(part: Part) -> Markup:
    return tag("section", tag("h2", part.title), part.content, id=part.anchor)
