"""Pages in a real browser: everything is seen, nothing is loaded, nothing complains."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest

import penstock as ps
from reporting.browser import Browser, browser, chromium
from reporting.run_folders import begun_run, finished_run, interrupted_run

WIDTHS = (1280, 400)
HOSTILE = ("<script>document.title='owned'</script>", "<img src=x onerror=\"document.title='owned'\">", "w" * 300)
MANY = tuple(f"{HOSTILE[number % 3]} {number}" for number in range(200))
VISIBLE = """
[...document.querySelectorAll("h1, h2, section, .tile, .chart, .plot svg, .legend, .bar, table, .samples img, .pixels")]
  .filter(one => !one.closest("details:not([open])"))
  .filter(one => { const box = one.getBoundingClientRect(); return box.width < 1 || box.height < 1; })
  .map(one => one.outerHTML.slice(0, 200))
"""
# Overflow that the page hides or that reaches out of its window; tables that scroll inside of themselves are meant to.
TOO_WIDE = """
[...document.querySelectorAll("body *")]
  .filter(one => !one.closest(".scroll, svg, details:not([open]), .skip"))
  .filter(one => one.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map(one => one.outerHTML.slice(0, 200))
"""


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = chromium()
    if program is None:
        pytest.skip("chromium is not installed; on Debian: apt-get install chromium")
    with browser(program, tmp_path_factory.mktemp("profile")) as made:
        yield made


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    pets = finished_run(folder / "pets")
    sgd = finished_run(folder / ("a-name-that-is-long-" * 5), seed=1, epochs=12, train={"optimizer": "sgd"})
    stopped = interrupted_run(folder / "stopped")
    runs = {
        "one": pets,
        "several": [pets, sgd, stopped],
        "hostile": finished_run(folder / "hostile", classes=MANY),
        "compared hostile": [finished_run(folder / name, classes=MANY) for name in ("first", "second")],
        "twenty classes": finished_run(folder / "twenty", classes=[f"a species {number}" for number in range(20)]),
        "stopped": stopped,
        "empty": begun_run(folder / "empty").folder,
    }
    return {name: ps.report(run, folder / f"{name}.html") for name, run in runs.items()}


NAMES = ("one", "several", "hostile", "compared hostile", "twenty classes", "stopped", "empty")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", NAMES)
def test_a_page_fits_its_window_and_needs_nothing(
    window: Browser, pages: dict[str, Path], name: str, width: int
) -> None:
    window.visit(pages[name], width=width)
    assert window.complaints() == []
    assert window.requests() == []
    assert window.value("document.documentElement.scrollWidth") == width
    assert window.value(TOO_WIDE) == []
    assert window.value(VISIBLE) == []
    assert window.value("document.title").endswith("– Penstock")


@pytest.mark.parametrize("name", NAMES)
def test_a_page_fits_with_everything_unfolded(window: Browser, pages: dict[str, Path], name: str) -> None:
    window.visit(pages[name], width=400)
    window.value("for (const one of document.querySelectorAll('details')) one.open = true")
    assert window.value("document.documentElement.scrollWidth") == 400
    assert window.value(VISIBLE) == []


def test_names_run_no_code(window: Browser, pages: dict[str, Path]) -> None:
    for name in ("hostile", "compared hostile"):
        window.visit(pages[name])
        assert "owned" not in window.value("document.title")
        assert window.value("document.scripts.length") == 1
        assert window.value("document.querySelectorAll('img:not([src^=data])').length") == 0


def test_pictures_are_decoded(window: Browser, pages: dict[str, Path]) -> None:
    for name, count in (("one", 12), ("hostile", 13)):
        window.visit(pages[name])
        widths = window.value("[...document.images].map(one => one.complete ? one.naturalWidth : 0)")
        assert len(widths) == count and min(widths) > 0


def test_lines_are_drawn_where_the_numbers_are(window: Browser, pages: dict[str, Path]) -> None:
    window.visit(pages["one"])
    boxes = window.value(
        """[...document.querySelectorAll(".chart svg")].flatMap(svg => [...svg.querySelectorAll(".line")].map(line => {
             const frame = svg.getBoundingClientRect(), box = line.getBoundingClientRect();
             return [box.width / frame.width, box.left - frame.left, box.top - frame.top, frame.bottom - box.bottom];
           }))"""
    )
    assert len(boxes) == 9  # two losses and that of steps, four scores, the learning rate, the rate of the feed
    for width, left, top, bottom in boxes:
        assert width > 0.9 and min(left, top, bottom) > -8  # strokes are a few pixels wide


def test_the_scheme_of_the_reader_is_followed(window: Browser, pages: dict[str, Path]) -> None:
    shades = {}
    for scheme in ("light", "dark"):
        window.visit(pages["one"], scheme=scheme)
        picture = cv2.imdecode(np.frombuffer(window.picture(), np.uint8), cv2.IMREAD_GRAYSCALE)
        assert picture.shape[1] == 1280 and picture.shape[0] > 2000
        shades[scheme] = float(np.median(picture))
    assert shades["light"] > 230 and shades["dark"] < 50


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_their_ground(window: Browser, pages: dict[str, Path], scheme: str) -> None:
    window.visit(pages["one"], scheme=scheme)
    contrasts = window.value(CONTRASTS)
    assert len(contrasts) > 100
    assert [one for one in contrasts if one[0] < 4.5] == []


# By the rule of WCAG; text on bars and in cells of the matrix has a ground of its own and is looked at too.
CONTRASTS = """
(() => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const rgb = colours => {
    context.clearRect(0, 0, 1, 1);
    for (const colour of colours) { context.fillStyle = colour; context.fillRect(0, 0, 1, 1); }
    return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = channels => channels.map(value => value / 255)
    .map(value => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
    .reduce((sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at], 0);
  const grounds = element =>
    element ? [...grounds(element.parentElement), getComputedStyle(element).backgroundColor] : [];
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (!own || element.closest("script, svg, .zero, .skip, #tip, details:not([open])")) continue;
    const below = grounds(element), ground = light(rgb(below));
    const ink = light(rgb([...below, getComputedStyle(element).color]));
    const ratio = (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
    found.push([ratio, element.outerHTML.slice(0, 160)]);
  }
  return found;
})()
"""


def test_the_pointer_tells_the_values_below_it(window: Browser, pages: dict[str, Path]) -> None:
    window.visit(pages["one"])
    assert window.value("document.getElementById('tip').offsetWidth") == 0
    x, y = window.value(
        """(() => { document.querySelector(".chart").scrollIntoView({ behavior: "instant", block: "center" });
             const box = document.querySelectorAll(".spot")[2].getBoundingClientRect();
             return [box.left + box.width / 2, box.top + box.height / 2]; })()"""
    )
    # Scrolling is told with the next frame, and hides what the pointer told.
    window.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    window.move_to(x, y)
    assert window.value("document.getElementById('tip').innerText").startswith("epoch 3\ntrain loss 0.")
    left, top, right, bottom = window.value(
        "(({ left, top, right, bottom }) => [left, top, right, bottom])"
        "(document.getElementById('tip').getBoundingClientRect())"
    )
    assert 0 <= left < right <= 1280 and 0 <= top < bottom <= 900
    window.move_to(1, 1)
    assert window.value("document.getElementById('tip').hidden") is True


def test_a_page_is_read_without_scripts(window: Browser, pages: dict[str, Path]) -> None:
    window.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        window.visit(pages["one"])
        assert window.value(VISIBLE) == []
        assert window.value("document.querySelector('.spot title').textContent").startswith("epoch 1")
    finally:
        window.send("Emulation.setScriptExecutionDisabled", value=False)


def test_on_paper_the_ground_is_white_and_nothing_scrolls(window: Browser, pages: dict[str, Path]) -> None:
    window.visit(pages["one"], scheme="dark", media="print")
    assert window.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert window.value("getComputedStyle(document.querySelector('h2')).color") == "rgb(26, 32, 41)"
    assert window.value("getComputedStyle(document.querySelector('.scroll')).overflowX") == "visible"
    assert window.value("document.querySelector('nav').offsetHeight") == 0
