"""Charts drawn by matplotlib, good enough for a paper.

The same numbers give the same bytes. Refuses to know where the numbers come from.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from causalab_mini.errors import Problem, Refusal, suggest
from causalab_mini.report.charts import Axis, Chart, Mean
from causalab_mini.report.palette import LIGHT, LINES, MARKERS, SERIES, contrast

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

Colour = tuple[float, float, float, float]
FORMATS = ("png", "svg", "pdf")
WITH_INTERVAL = ", with its 95 % interval"
NUMBERED = 240
"""Up to so many cells of a map have their number written in."""
INK, PAPER, RULE, FAINT, EDGE = (LIGHT[name] for name in ("ink", "paper", "rule", "faint", "panel"))
STYLE: Mapping[str, object] = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "hatch.color": FAINT,
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "svg.hashsalt": "causalab-mini",
    "pdf.fonttype": 42,
    "savefig.dpi": 200,
}


@contextmanager
def styled(**more: object) -> Generator[None]:
    """matplotlib as pictures of this package have it; what it says of letters its font lacks is left unsaid."""
    import matplotlib

    with matplotlib.rc_context({**STYLE, **more}), warnings.catch_warnings():  # pyright: ignore[reportArgumentType]
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def draw(chart: Chart) -> Figure:
    """The chart as a figure of matplotlib."""
    with styled():
        figure, axes = _canvas(chart)
        drawers = {"map": _draw_map, "lines": _draw_lines, "dots": _draw_dots}
        drawers[chart.kind](chart, axes)
        if chart.fixed or chart.step:
            axes.set_title(" in ".join(part for part in (chart.fixed, chart.step) if part), loc="left")
    return figure


def image(chart: Chart, kind: str, description: str | None = None) -> bytes:
    """The chart as the bytes of a png, svg or pdf. `description`, or else the chart's own, goes into its metadata."""
    nothing = {"png": ("Software",), "svg": ("Date", "Creator"), "pdf": ("CreationDate", "Creator", "Producer")}
    metadata: dict[str, str | None] = dict.fromkeys(nothing[kind])
    metadata["Subject" if kind == "pdf" else "Description"] = description or chart.description
    drawn = io.BytesIO()
    figure = draw(chart)
    with styled(**{"svg.fonttype": "path"}):
        figure.savefig(drawn, format=kind, facecolor=PAPER, metadata=metadata)
    return drawn.getvalue()


def format_of(path: Path) -> str:
    """The kind of picture a file's name asks for. `Refusal` where it is none that can be drawn."""
    kind = path.suffix.removeprefix(".").lower()
    if kind in FORMATS:
        return kind
    message = f"{path.name} names no kind of picture" if not kind else f"no picture can be drawn as .{kind}"
    raise Refusal(Problem("", message, suggest(kind, FORMATS, "kinds")))


def _canvas(chart: Chart) -> tuple[Figure, Axes]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    across = len(chart.x.values)
    if chart.kind == "map":
        size = (min(max(2.4 + _cell(chart.x) * across, 3.6), 12.0), min(max(1.5 + 0.36 * len(chart.series), 2.4), 10.0))
    elif chart.kind == "dots":
        size = (5.2, min(0.8 + 0.32 * across, 9.0))
    else:
        size = (_line_width(chart), 3.0 + 0.17 * (-(-len(chart.series) // _abreast(chart)) - 1))
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()


def _draw_dots(chart: Chart, axes: Axes) -> None:
    """Metrics from the top down, their means to the right."""
    names, means = list(chart.x.values), chart.series[0].means
    rows = [float(len(names) - i) for i in range(len(names))]
    known = [(mean.mean, row) for mean, row in zip(means, rows, strict=True) if mean.mean is not None]
    axes.plot(
        [mean for mean, _ in known], [row for _, row in known], color=LIGHT[SERIES[0]], marker="o", linestyle="none"
    )
    for row, mean in zip(rows, means, strict=True):
        if mean.mean is not None and mean.low is not None and mean.high is not None:
            axes.plot([mean.low, mean.high], [row, row], color=LIGHT[SERIES[0]], linewidth=1.2, marker="|")
    axes.set_yticks(rows, [_short(name, 40) for name in names])
    axes.set_ylim(0.4, len(names) + 0.6)
    axes.tick_params(axis="y", length=0)
    if chart.bounded and _reaches(chart):
        axes.set_xlim(-0.03, 1.03)
    elif (ends := axes.get_xlim())[0] < 0 < ends[1]:
        axes.axvline(0, color=FAINT, linewidth=0.8)
    axes.set_xlabel(f"mean ({chart.unit})" + (WITH_INTERVAL if chart.intervals else ""))
    axes.grid(axis="x", color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)


def _draw_lines(chart: Chart, axes: Axes) -> None:
    numbers = chart.x.numbers
    xs = list(numbers) if numbers is not None and not chart.x.tokens else [float(i) for i in range(len(chart.x.values))]
    for i, series in enumerate(chart.series):
        style, again = i % len(SERIES), i // len(SERIES)
        colour, marker = LIGHT[SERIES[style]], MARKERS[(style + again) % len(MARKERS)]
        ys = [float("nan") if mean.mean is None else mean.mean for mean in series.means]
        line = LINES[style] if numbers is not None else "none"
        axes.plot(xs, ys, color=colour, marker=marker, linestyle=line, label=_short(series.name, 40))
        _interval(axes, xs, series.means, colour, joined=numbers is not None)
    if chart.bounded and _reaches(chart):
        axes.set_ylim(-0.03, 1.03)
    elif (ends := axes.get_ylim())[0] < 0 < ends[1]:
        axes.axhline(0, color=FAINT, linewidth=0.8)
    _x_ticks(chart.x, axes, xs, 0.5)
    axes.set_xlabel(f"{chart.x.name}, and the token there" if chart.x.tokens else chart.x.name)
    named = chart.metrics[0] if len(chart.metrics) == 1 else "mean"
    axes.set_ylabel(f"{named} ({chart.unit})" + (WITH_INTERVAL.replace(", ", ",\n") if chart.intervals else ""))
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    if len(chart.series) > 1:
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=_abreast(chart), fontsize=8)


def _line_width(chart: Chart) -> float:
    """How wide a picture of lines is, in inches."""
    return min(max(3.0 + 0.22 * len(chart.x.values), 4.6), 9.0)


def _abreast(chart: Chart) -> int:
    """How many names of lines fit beside one another."""
    longest = max(len(_short(series.name, 40)) for series in chart.series)
    return max(1, min(len(chart.series), 3, int((_line_width(chart) - 0.7) / (0.075 * longest + 0.5))))


def _reaches(chart: Chart) -> bool:
    """Whether some number of a bounded chart is large enough for the whole range to be shown."""
    return any(mean.mean is not None and mean.mean > 0.2 for series in chart.series for mean in series.means)


def _interval(axes: Axes, xs: Sequence[float], means: Sequence[Mean], colour: str, *, joined: bool) -> None:
    known = [
        (x, mean.mean, mean.low, mean.high)
        for x, mean in zip(xs, means, strict=True)
        if mean.mean is not None and mean.low is not None and mean.high is not None
    ]
    if not known:
        return
    at, middles, lows, highs = zip(*known, strict=True)
    if joined and len(known) > 1:
        axes.fill_between(at, lows, highs, color=colour, alpha=0.18, linewidth=0)
        return
    below = [middle - low for middle, low in zip(middles, lows, strict=True)]
    above = [high - middle for middle, high in zip(middles, highs, strict=True)]
    axes.errorbar(at, middles, [below, above], fmt="none", ecolor=colour, elinewidth=1.2, capsize=3)


def _draw_map(chart: Chart, axes: Axes) -> None:
    import matplotlib
    import numpy
    from matplotlib.colors import to_rgb

    assert chart.y is not None
    grid = numpy.array([[numpy.nan if mean.mean is None else mean.mean for mean in row.means] for row in chart.series])
    low, high, signed = _range(chart, float(numpy.nanmin(grid)), float(numpy.nanmax(grid)))
    colours = matplotlib.colormaps["PuOr" if signed else "cividis"]
    shown = numpy.ma.masked_invalid(grid)
    image = axes.pcolormesh(shown, cmap=colours, vmin=low, vmax=high, edgecolors=EDGE, linewidth=1.0)
    for row, series in enumerate(chart.series):
        for column, mean in enumerate(series.means):
            if mean.mean is None:
                axes.add_patch(_hole(column, row))
    if grid.size <= NUMBERED and len(chart.x.values) <= 24:
        form = _written(grid[~numpy.isnan(grid)].tolist())
        for (row, column), value in numpy.ndenumerate(grid):
            if not numpy.isnan(value):
                said, colour = (
                    f"{value:{form}}".replace("-", "−"),
                    _ink_on(to_rgb(cast(Colour, colours(image.norm(value))))),
                )
                axes.text(column + 0.5, row + 0.5, said, ha="center", va="center", color=colour, fontsize=7.5)
    _x_ticks(chart.x, axes, [i + 0.5 for i in range(len(chart.x.values))], _cell(chart.x))
    every = -(-len(chart.y.values) // 24)
    axes.set_yticks(
        [i + 0.5 for i in range(0, len(chart.y.values), every)], [_short(value) for value in chart.y.values[::every]]
    )
    axes.set_xlabel(f"{chart.x.name}, and the token there" if chart.x.tokens else chart.x.name)
    axes.set_ylabel(chart.y.name)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    bar = axes.figure.colorbar(image, ax=axes, pad=0.02)
    bar.set_label(f"mean {chart.metrics[0]} ({chart.unit})")
    if bar.solids is not None:
        bar.solids.set(rasterized=False, edgecolor="face")
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    bar.ax.tick_params(length=0)


def _range(chart: Chart, low: float, high: float) -> tuple[float, float, bool]:
    """Where colours begin and end, and whether the middle means nothing at all: values with signs are centred on 0."""
    if low < 0 < high:
        most = max(-low, high)
        return -most, most, True
    if chart.bounded and high > 0.2:
        return 0.0, 1.0, False
    return (low, high, False) if low < high else (low - 0.5, high + 0.5, False)


def _hole(column: int, row: int) -> Rectangle:
    """A cell without a value."""
    from matplotlib.patches import Rectangle

    return Rectangle((column, row), 1, 1, facecolor="none", edgecolor=FAINT, hatch="///", linewidth=0)


def _written(values: Sequence[float]) -> str:
    """How the numbers of one map are written: all with as many places."""
    largest = max((abs(value) for value in values), default=0.0)
    if largest and (largest < 0.01 or largest >= 10_000):
        return ".0e"
    return f".{2 if largest < 10 else 1 if largest < 100 else 0}f"


def _ink_on(colour: Sequence[float]) -> str:
    """Black or white, whichever is easier to read on a colour."""
    paper = "#" + "".join(f"{round(part * 255):02x}" for part in colour[:3])
    return max(("#000000", "#ffffff"), key=lambda ink: contrast(ink, paper))


def _cell(x: Axis) -> float:
    """How wide a column of a map is, in inches: as its labels are, within bounds."""
    return min(max(0.52, 0.085 * max(len(_short(word)) for word in (*x.values, *(x.tokens or ())))), 0.95)


def _x_ticks(x: Axis, axes: Axes, xs: Sequence[float], room: float) -> None:
    """A tick for every value, or for every so many, with `room` inches for each; tokens over their positions."""
    every = -(-len(xs) // 24)
    pairs = [
        (_short(value), _short(token)) for value, token in zip(x.values, x.tokens or [""] * len(x.values), strict=True)
    ][::every]
    turned = max(len(word) for pair in pairs for word in pair) * 0.085 > room * every
    words = [(f"{token} {value}" if turned else f"{token}\n{value}") if token else value for value, token in pairs]
    axes.set_xticks(list(xs)[::every], words, rotation=40 if turned else 0, ha="right" if turned else "center")
    for label in axes.get_xticklabels() if turned else ():
        label.set_rotation_mode("anchor")


def _short(text: str, most: int = 18) -> str:
    text = "".join(char if char.isprintable() else "·" for char in text)
    return text if len(text) <= most else f"{text[: most - 1]}…"
