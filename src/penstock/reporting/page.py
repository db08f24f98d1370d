"""The shell of a page: everything is inside of it, and the browser is told to load nothing else."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from penstock import __version__
from penstock.reporting.markup import Markup, shortened, tag
from penstock.reporting.page_style import STYLE

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
