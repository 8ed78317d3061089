"""The page of a run: everything is there, everything is escaped, nothing is fetched, all can be read without eyes."""

from __future__ import annotations

import itertools
import json
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from tests.browser import CHROMIUM, MISSING, browser
from tests.hostile import IMAGE, SCRIPT, document

from causalab_mini.report.page import ROWS, Told, number
from causalab_mini.report.page import page as page_of
from causalab_mini.report.palette import DARK, LIGHT
from causalab_mini.results.reader import Results

VOID = ("meta", "br", "img", "link", "input")


class Elements(HTMLParser):
    """The elements of a page in order, with their attributes; `open` must be empty at the end."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def all(self, *tags: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.found if tag in tags]


@pytest.fixture(scope="session")
def elements(page: Path) -> Elements:
    return Elements(page.read_text())


def test_the_page_is_well_formed(elements: Elements) -> None:
    assert elements.open == []
    ids = [attributes["id"] for _, attributes in elements.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = {str(link["href"]).removeprefix("#") for link in elements.all("a")}
    assert targets <= set(ids)
    for _, attributes in elements.found:
        labelled = attributes.get("aria-labelledby")
        assert labelled is None or labelled in ids


def test_nothing_is_fetched_and_nothing_runs(page: Path, elements: Elements) -> None:
    text = page.read_text()
    assert not re.search(r"https?://", text)
    assert not elements.all("script", "link", "iframe", "object", "img", "image")
    assert not any(name.startswith("on") or name in ("src", "action") for _, a in elements.found for name in a)
    assert "url(" not in re.sub(r"url\(#[^)]+\)", "", text)
    (policy,) = (meta["content"] for meta in elements.all("meta") if "http-equiv" in meta)
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


def test_texts_are_shown_as_they_stand(page: Path) -> None:
    text = page.read_text()
    assert "<script" not in text
    assert "<img" not in text
    assert f"<bdi>{SCRIPT}</bdi>" in unescape(text)
    assert IMAGE in unescape(text)
    assert "Is &lt;script&gt;" in text


def test_pictures_are_told_in_words(elements: Elements) -> None:
    pictures = elements.all("svg")
    assert len(pictures) == 2
    for picture in pictures:
        assert picture["role"] == "img"
        assert re.match(r"A map: mean (p|spread) over layer and position", str(picture["aria-label"]))
    assert len(elements.all("figcaption")) == 2


def test_tables_read_without_pictures(elements: Elements, page: Path) -> None:
    assert len(elements.all("caption")) == len(elements.all("table")) > 0
    assert all(head.get("scope") in ("col", "row") for head in elements.all("th"))
    text = re.sub(r"<svg.*?</svg>", "", page.read_text(), flags=re.S)
    for words in ("layer", "position", "metric", "mean", "n scored", "n rows"):
        assert re.search(rf"<th[^>]*>{words}</th>", text), words
    summary = json.loads((page.parent / "summary.json").read_text())
    for line in summary:
        assert f">{number(line['mean'])}</td>" in text


def test_what_scrolls_and_unfolds_can_be_reached_by_keys(elements: Elements) -> None:
    scrolling = [a for tag, a in elements.found if a.get("class") == "scroll" or tag == "pre"]
    assert scrolling
    for attributes in scrolling:
        assert attributes["tabindex"] == "0"
        assert attributes["aria-label"]
        assert attributes["role"] == "region"
    assert len(elements.all("details")) == len(elements.all("summary")) > 3
    assert elements.all("html")[0]["lang"] == "en"
    headings = [int(tag[1]) for tag, _ in elements.found if re.fullmatch(r"h\d", tag)]
    assert headings[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(headings))


def test_rows_have_their_tokens_values_and_reasons(page: Path) -> None:
    text = unescape(page.read_text())
    assert "empty_cell" in text
    assert "W1" in text
    assert '<li class="write">' in text
    assert "made" in text
    assert "add_scaled" not in text
    assert "swap(v) in 'patched' on 'base'" in text
    assert "<root>: Plan" in text
    results = Results(page.parent)
    for row in results.rows("spread", {"layer": 0, "position": -1}):
        assert f">{number(row['value'])}</td>" in text


def test_marks_and_signs_are_told(page: Path) -> None:
    (told,) = re.findall(r"<p[^>]*>(Each row of the data.*?)</p>", page.read_text(), flags=re.S)
    assert "· is a space" in told
    assert "~ marks" in told


def test_null_is_a_value_of_an_axis_and_holes_are_told(hostile: Path) -> None:
    results = Results(hostile)
    places: list[Any] = [[0, 1], None]
    results.axes = ("units", "layer")
    results.lines = tuple(
        {"point": "", "observe": "only", "metric": "p", "units": units, "layer": layer, "mean": 0.5, "n_rows": 1}
        for units, layer in itertools.product(places, (0, 1))
    )
    results.lines = (*results.lines[:-1], {**results.lines[-1], "mean": None})
    text = page_of(results)
    assert "<td>null</td>" in text
    assert "<td>[0, 1]</td>" in text
    assert "Hatched cells have no value." in text
    assert "Hatched cells" not in page_of(Results(hostile))


def test_tables_of_a_row_in_several_steps_have_names_of_their_own(
    hostile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = next(Results(hostile).rows("p"))
    monkeypatch.setattr(Results, "rows", lambda self: iter([row, {**row, "observe": "again"}]))
    names = [found["aria-label"] for found in Elements(page_of(Results(hostile))).all("div") if "aria-label" in found]
    assert len(names) == len(set(names)) > 3


def test_provenance_is_there(page: Path) -> None:
    text = unescape(page.read_text())
    record = json.loads((page.parent / "run.json").read_text())
    assert record["digest"] in text
    assert record["model"]["resolved"] in text
    assert "What the writes changed" in text


def test_the_same_run_makes_the_same_page(hostile: Path) -> None:
    assert page_of(Results(hostile)) == page_of(Results(hostile))


def test_without_plan_and_tokens_the_page_says_so(hostile: Path) -> None:
    text = page_of(Results(hostile), Told(missing="the data <has> gone"))
    assert "There is no plan here: the data &lt;has&gt; gone." in text
    assert '<ol class="strip"' not in text
    assert "empty_cell" in text
    assert Elements(text).open == []


def test_a_large_run_makes_a_page_that_opens(hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = next(Results(hostile).rows("p"))
    many = [{**row, "example_id": f"row-{i}"} for i in range(ROWS + 7)]
    monkeypatch.setattr(Results, "rows", lambda self: iter(many))
    text = page_of(Results(hostile))
    assert text.count('<details class="row">') == ROWS
    assert "7 more rows are in the files of the run." in text


def test_a_title_is_a_short_question_or_a_digest(hostile: Path) -> None:
    results = Results(hostile)
    for said, title in (
        ("Where is it? There.", "Where is it?"),
        ("It is there. Is it?", f"Experiment {results.digest[:12]}"),
        ("", f"Experiment {results.digest[:12]}"),
    ):
        results.document["header"] = {"description": said}
        assert f"<h1>{title}</h1>" in page_of(results)
    assert document()["header"]["description"].startswith("Is ")


@pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
def test_a_browser_shows_it(page: Path, tmp_path: Path) -> None:
    with browser(tmp_path) as chromium:
        chromium.size(1200, 900)
        chromium.open(page)
        assert chromium.requests == [page.resolve().as_uri()]
        assert chromium.value("document.title").startswith("Experiment ")
        assert chromium.value("document.querySelectorAll('svg').length") == 2
        box = "JSON.stringify([...document.querySelectorAll('svg')].map(e => e.getBoundingClientRect()))"
        for drawn in json.loads(chromium.value(box)):
            assert drawn["width"] > 200
            assert drawn["height"] > 100
        assert chromium.value("document.documentElement.scrollWidth") <= 1200

        for scheme, colours in (("light", LIGHT), ("dark", DARK)):
            chromium.scheme(scheme)
            paper, ink = (tuple(bytes.fromhex(colours[name][1:])) for name in ("paper", "ink"))
            picture = chromium.picture()
            counted = {colour: count for count, colour in picture.getcolors(1 << 24) or []}
            assert max(counted, key=lambda colour: counted[colour]) == paper
            assert ink in counted
            fill = chromium.value("getComputedStyle(document.querySelector('svg text')).fill")
            assert fill == f"rgb{ink}"

        chromium.press("Tab")
        assert chromium.value("document.activeElement.className") == "skip"
        outline = chromium.value("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"
        for _ in range(200):
            chromium.press("Tab")
            if chromium.value("document.activeElement.matches('.row > summary')"):
                break
        assert not chromium.value("document.activeElement.parentElement.open")
        chromium.press("Enter")
        assert chromium.value("document.activeElement.parentElement.open")
        assert chromium.value("document.activeElement.parentElement.querySelector('.strip').offsetHeight") > 20
        chromium.size(360, 800)
        assert chromium.value("document.documentElement.scrollWidth") <= 360
        assert chromium.said == []
