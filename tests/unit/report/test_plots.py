"""Pictures: kinds of files, the same bytes for the same numbers, what is written in them, SVG that fits a page."""

from __future__ import annotations

import io
import re
import warnings
from xml.etree import ElementTree

import pytest
from PIL import Image

from causalab_mini.report.charts import Axis, Chart, Mean, Series
from causalab_mini.report.inline import inline
from causalab_mini.report.palette import LIGHT
from causalab_mini.report.plots import FORMATS, draw, image

LAYERS = Axis("layer", ("0", "1", "2"), (0, 1, 2))
LINE = Chart(
    "lines",
    ("flipped", "kept"),
    "fraction",
    LAYERS,
    (
        Series("flipped", (Mean(0.0, 0.0, 0.1), Mean(0.5, 0.3, 0.7), Mean(1.0, 0.9, 1.0))),
        Series("kept", (Mean(1.0), Mean(None), Mean(0.25))),
    ),
)
MAP = Chart(
    "map",
    ("toward",),
    "logit",
    Axis("position", ("-2", "-1"), (-2, -1), ("<b>$5$</b>", "明日")),
    tuple(Series(layer, (Mean(float(layer) - 1), Mean(None))) for layer in LAYERS.values),
    LAYERS,
    "scale=2",
)
DOTS = Chart("dots", ("one", "two"), "nat", Axis("metric", ("one", "two")), (Series("", (Mean(-1, -2, 0), Mean(2))),))
CHARTS = pytest.mark.parametrize("chart", [LINE, MAP, DOTS], ids=lambda chart: chart.kind)


def texts(chart: Chart) -> list[str]:
    """Everything written in a picture."""
    found = re.findall(r"<text[^>]*>([^<]*)</text>", str(inline(chart, "p")))
    return [text.replace("&lt;", "<").replace("&gt;", ">") for text in found]


@CHARTS
@pytest.mark.parametrize("kind", FORMATS)
def test_the_same_numbers_are_the_same_bytes(chart: Chart, kind: str) -> None:
    first = image(chart, kind)
    assert first == image(chart, kind)
    begins = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    assert first.startswith(begins[kind])
    assert b"matplotlib v" not in first.lower()


@CHARTS
def test_a_file_says_what_it_shows(chart: Chart) -> None:
    with Image.open(io.BytesIO(image(chart, "png"))) as picture:
        assert picture.info["Description"] == chart.description
    svg = ElementTree.fromstring(image(chart, "svg"))
    assert chart.description in [element.text for element in svg.iter("{http://purl.org/dc/elements/1.1/}description")]
    assert b"/Subject" in image(chart, "pdf")


def test_a_png_can_say_something_else() -> None:
    with Image.open(io.BytesIO(image(LINE, "png", "the numbers"))) as picture:
        assert picture.info["Description"] == "the numbers"


def test_axes_are_labelled_with_units() -> None:
    lines = texts(LINE)
    assert "layer" in lines
    assert {"flipped", "kept"} <= set(lines)
    assert [text for text in lines if "(fraction)" in text] == ["mean (fraction),"]
    assert "with its 95 % interval" in lines
    drawn = texts(MAP)
    assert {"layer", "position, and the token there", "mean toward (logit)", "scale=2"} <= set(drawn)
    assert {"one", "two", "mean (nat), with its 95 % interval"} <= set(texts(DOTS))


def test_tokens_are_letters_and_never_formulas() -> None:
    assert {"<b>$5$</b>", "明日"} <= set(texts(MAP))
    assert "<b>" not in str(inline(MAP, "p"))


def test_cells_have_their_numbers_and_holes_have_none() -> None:
    assert {"−1.00", "0.00", "1.00"} <= set(texts(MAP))
    assert "nan" not in "".join(texts(MAP))


def test_values_with_signs_are_centred_on_nothing() -> None:
    (mesh,) = (part for part in draw(MAP).axes[0].collections if part.get_array() is not None)
    assert mesh.get_clim() == (-1, 1)
    half = Chart(
        "map", ("hit",), "fraction", LAYERS, (Series("0", (Mean(0.1), Mean(0.2), Mean(0.5))),), Axis("a", ("0",))
    )
    (mesh,) = (part for part in draw(half).axes[0].collections if part.get_array() is not None)
    assert mesh.get_clim() == (0, 1)


@CHARTS
def test_an_inline_picture_is_whole_and_needs_nothing(chart: Chart) -> None:
    svg = str(inline(chart, "here"))
    root = ElementTree.fromstring(svg)
    assert root.tag == "svg"
    assert (root.get("role"), root.get("aria-label")) == ("img", chart.description)
    assert all(element.get("id", "here-").startswith("here-") for element in root.iter())
    assert not re.search(r"https?:|data:|<image|xmlns|<!--", svg)
    assert LIGHT["ink"] not in svg
    assert "var(--ink)" in svg
    ids = {element.get("id") for element in root.iter()}
    assert set(re.findall(r'(?:url\(|href=")#([^)"]+)', svg)) <= ids


def test_many_values_have_few_ticks() -> None:
    many = Axis("layer", tuple(map(str, range(100))), tuple(map(float, range(100))))
    chart = Chart("lines", ("p",), "probability", many, (Series("p", tuple(Mean(i / 100) for i in range(100))),))
    assert len(draw(chart).axes[0].get_xticks()) <= 24


def test_many_long_names_leave_room_for_lines_that_all_differ() -> None:
    names = [f"metric_{letter}_has_a_name_that_tells_what_it_is" for letter in "abcdefghi"]
    chart = Chart("lines", tuple(names), "nat", LAYERS, tuple(Series(name, (Mean(1.0),) * 3) for name in names))
    figure = draw(chart)
    with warnings.catch_warnings(action="error"):
        figure.draw_without_rendering()
    (axes,) = figure.axes
    legend = axes.get_legend()
    assert legend is not None
    names_at, lines_at, whole = (part.get_window_extent() for part in (legend, axes.patch, figure.patch))
    assert whole.x0 <= names_at.x0 < names_at.x1 <= whole.x1
    assert names_at.y1 <= whole.y1
    assert lines_at.width > 0.6 * whole.width
    assert lines_at.height > 150
    styles = {
        (line.get_color(), line.get_marker()) for line in axes.lines if str(line.get_label()).startswith("metric")
    }
    assert len(styles) == len(names)
