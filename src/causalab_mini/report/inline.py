"""A chart inside a page: an SVG element with the page's colours, told in words to those who listen."""

from __future__ import annotations

import io
import re

from markupsafe import Markup, escape

from causalab_mini.report.charts import Chart
from causalab_mini.report.palette import LIGHT, SERIES
from causalab_mini.report.plots import draw, styled

CHANGING = ("ink", "faint", "rule", "panel", *SERIES)
"""The colours of the palette that change with the page's."""
SMALLEST = 0.75
"""A picture is not made smaller than this, or its letters could not be read; it scrolls where there is less room."""


def inline(chart: Chart, name: str) -> Markup:
    """The chart as an SVG element whose ids begin with `name`; its text is text, its label the chart's description."""
    image = io.StringIO()
    figure = draw(chart)
    with styled(**{"svg.fonttype": "none"}):
        figure.savefig(image, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = image.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>\s*|<!--.*?-->\s*", "", svg[svg.index("<svg") :], flags=re.S)
    svg = re.sub(r'\s(xmlns(:\w+)?|version)="[^"]*"', "", svg).replace("xlink:href", "href")
    svg = re.sub(r'\b(id="|href="#)|(url\(#)', lambda found: f"{found[0]}{name}-", svg)
    for key in CHANGING:
        svg = svg.replace(LIGHT[key], f"var(--{key})")
    least = SMALLEST * float(figure.get_figwidth()) * 72
    label = f'role="img" aria-label="{escape(chart.description)}" style="min-width: {least:.0f}pt"'
    return Markup(re.sub(r"^<svg", lambda _: f"<svg {label}", svg, count=1))
