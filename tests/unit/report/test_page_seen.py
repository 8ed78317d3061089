"""The page as a browser lays it out: what is read, in both schemes, narrow, on paper, with whatever texts there are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.browser import CHROMIUM, MISSING, Browser, browser

from causalab_mini.report.charts import Axis, Chart, Mean, Series
from causalab_mini.report.page import page as page_of
from causalab_mini.report.palette import DARK, LIGHT
from causalab_mini.results.reader import Results

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=MISSING)

WORD = "unbroken" * 30
"""A word that fits on no line."""
ENDS = "\u202e\u05d0\u05d1\u05d2"
"""A name that would turn around what follows it."""
COLUMNS = Axis("position", tuple(map(str, range(20))), tuple(map(float, range(20))))
WIDE = Chart("map", ("p",), "probability", COLUMNS, (Series("0", (Mean(0.5),) * 20),), Axis("layer", ("0",)))
OPEN = "document.querySelectorAll('details').forEach(e => { e.open = true })"
POOR = """
(() => {
  const parts = text => (text.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const over = (top, under) => { const a = top[3] ?? 1; return [0, 1, 2].map(i => top[i] * a + under[i] * (1 - a)); };
  const light = colour => {
    const [r, g, b] = colour.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = e => {
    if (!e) return [255, 255, 255];
    return over(parts(getComputedStyle(e).backgroundColor), behind(e.parentElement));
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; node = walker.nextNode();) {
    const e = node.parentElement, style = getComputedStyle(e);
    if (!node.data.trim() || ['STYLE', 'TITLE'].includes(e.tagName)) continue;
    const paper = behind(e), drawn = e.namespaceURI.endsWith('svg');
    let ink = parts(drawn ? style.fill : style.color);
    if (drawn) ink[3] = (ink[3] ?? 1) * style.fillOpacity;
    if (style.visibility !== 'visible') found.push(`${e.tagName} is not seen`);
    if (drawn && ['0,0,0', '255,255,255'].includes(String(ink.slice(0, 3)))) continue;
    for (let up = e, seen = 1; up; up = up.parentElement) {
      seen = Number(getComputedStyle(up).opacity);
      ink = [...over([...ink.slice(0, 3), seen * (up === e ? (ink[3] ?? 1) : 1)], paper), 1];
    }
    const [high, low] = [light(over(ink, paper)), light(paper)].sort((a, b) => b - a);
    const contrast = (high + 0.05) / (low + 0.05);
    if (contrast < 4.5) found.push(`${e.tagName} ${e.className.baseVal ?? e.className}: ${contrast.toFixed(2)}`);
  }
  return JSON.stringify([...new Set(found)]);
})()
"""
"""Texts with less than 4.5 : 1 against what is behind them; numbers in cells of maps are black or white, as a test of
pictures has them."""


@pytest.fixture(scope="module")
def odd(hostile: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of the same run with words, names and a picture that are awkward to lay out."""
    results = Results(hostile)
    results.document["header"] = {"description": f"Is {WORD} broken? {WORD}"}
    results.run["set"] = {f"interventions.{WORD}": True}
    results.run["warnings"] = [WORD]
    rows = [{**cells, "example_id": name} for cells in list(results.rows("p"))[:1] for name in (WORD, ENDS)]
    results.rows = lambda *_: iter(rows)  # pyright: ignore[reportAttributeAccessIssue]
    path = tmp_path_factory.mktemp("odd") / "report.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("causalab_mini.report.page.charts", lambda *_: (WIDE,))
        path.write_text(page_of(results))
    return path


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


def boxes(chromium: Browser, selector: str) -> list[dict[str, Any]]:
    """Where the elements are."""
    some = f"[...document.querySelectorAll({json.dumps(selector)})]"
    return json.loads(chromium.value(f"JSON.stringify({some}.map(e => e.getBoundingClientRect()))"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_what_is_behind_it(chromium: Browser, page: Path, odd: Path, scheme: str) -> None:
    chromium.size(1200, 900)
    chromium.scheme(scheme)
    for path in (page, odd):
        chromium.open(path)
        chromium.value(OPEN)
        assert json.loads(chromium.value(POOR)) == []


@pytest.mark.parametrize("width", [360, 600, 1200])
def test_no_text_makes_the_page_wider_than_the_window(chromium: Browser, page: Path, odd: Path, width: int) -> None:
    chromium.size(width, 800)
    for path in (page, odd):
        chromium.open(path)
        chromium.value(OPEN)
        assert chromium.value("document.documentElement.scrollWidth") <= width
        assert all(box["width"] > 0.4 * width for box in boxes(chromium, "section > dl > dd"))


def test_narrow_pictures_scroll_before_their_letters_are_too_small(chromium: Browser, odd: Path) -> None:
    chromium.size(360, 800)
    chromium.open(odd)
    assert all(box["height"] > 8 for box in boxes(chromium, "svg text"))
    assert chromium.value("[...document.querySelectorAll('.picture')].every(e => e.tabIndex == 0)")


def test_captions_of_narrow_tables_are_seen_whole(chromium: Browser, page: Path) -> None:
    chromium.size(360, 800)
    chromium.open(page)
    (caption,) = boxes(chromium, "section[aria-labelledby=result] caption span")
    assert 0 <= caption["left"] < caption["right"] <= 360


def test_a_name_turns_around_nothing_but_itself(chromium: Browser, odd: Path) -> None:
    chromium.size(1200, 800)
    chromium.open(odd)
    chromium.value("document.querySelectorAll('.row .faint').forEach(e => { e.innerHTML = '<i>1</i><b>2</b>' })")
    for first, second in zip(boxes(chromium, ".row i"), boxes(chromium, ".row b"), strict=True):
        assert first["left"] < second["left"]


def test_on_paper_nothing_is_cut_off(chromium: Browser, page: Path) -> None:
    chromium.size(700, 900)
    chromium.open(page)
    chromium.value(OPEN)
    chromium.ask("Emulation.setEmulatedMedia", media="print", features=[])
    try:
        scrolling = "[...document.querySelectorAll('.scroll, pre, .picture')]"
        assert chromium.value(f"{scrolling}.every(e => e.scrollHeight <= e.offsetHeight + 2)")
        assert chromium.value("document.documentElement.scrollWidth") <= 700
    finally:
        chromium.ask("Emulation.setEmulatedMedia", media="", features=[])


@pytest.mark.parametrize(("scheme", "colours"), [("light", LIGHT), ("dark", DARK)])
def test_keys_show_where_they_are(chromium: Browser, page: Path, scheme: str, colours: dict[str, str]) -> None:
    chromium.size(1200, 900)
    chromium.scheme(scheme)
    chromium.open(page)
    chromium.press("Tab")
    (skip,) = boxes(chromium, ".skip:focus")
    assert skip["left"] >= 0
    assert skip["top"] >= 0
    outline = "(s => s.outlineStyle + ' ' + s.outlineColor)(getComputedStyle(document.activeElement))"
    assert chromium.value(outline) == f"solid rgb{tuple(bytes.fromhex(colours['focus'][1:]))}"


def test_the_page_has_named_parts(chromium: Browser, page: Path) -> None:
    """The roles and names the browser tells to those who listen."""
    chromium.open(page)
    nodes = chromium.ask("Accessibility.getFullAXTree")["nodes"]
    parts = [(str(node["role"]["value"]), str(node.get("name", {}).get("value", ""))) for node in nodes]
    for part in (("banner", ""), ("navigation", "Sections"), ("main", ""), ("contentinfo", "")):
        assert parts.count(part) == 1, part
    for section in ("Result", "Plan", "Row by row", "Provenance"):
        assert ("region", section) in parts
    assert sum(role == "image" and name.startswith("A map: mean") for role, name in parts) == 2
    assert chromium.value("document.title") == chromium.value("document.querySelector('h1').textContent")
    viewport = chromium.value("document.querySelector('meta[name=viewport]').content")
    assert viewport == "width=device-width, initial-scale=1"


def test_nothing_moves_and_the_console_is_silent(chromium: Browser, page: Path) -> None:
    chromium.open(page)
    chromium.value(OPEN)
    assert chromium.value("document.getAnimations().length") == 0
    assert chromium.said == []
    assert all(url.startswith("file:") for url in chromium.requests)
