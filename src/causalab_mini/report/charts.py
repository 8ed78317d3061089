"""What can be drawn of a summary: points, lines over one axis, maps over two. Numbers and words, nothing drawn yet.

Axes that vary count. Over more than two there is a map for every setting of the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from causalab_mini.errors import Problem, Refusal, suggest
from causalab_mini.results.reader import Cells, Results

Tokens = Mapping[str, Mapping[str, str]]
"""For axes of positions, the token at each value."""
BOUNDED = ("fraction", "probability")
"""Units of numbers from 0 to 1."""
LAYER = "layer"


@dataclass(frozen=True)
class Axis:
    """An axis: its values as words, as numbers where they are, and the tokens there where they are positions."""

    name: str
    values: tuple[str, ...]
    numbers: tuple[float, ...] | None = None
    tokens: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Mean:
    """A mean and the interval it has, if any; None where no row was scored."""

    mean: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Series:
    """A metric along the x axis."""

    name: str
    means: tuple[Mean, ...]


@dataclass(frozen=True)
class Chart:
    """One picture. `dots` have the metrics themselves as x axis; a `map` has a series for every value of `y`.

    `fixed` says which setting of further axes it is at; `steps` which step's metrics it shows, where there are several.
    """

    kind: Literal["dots", "lines", "map"]
    metrics: tuple[str, ...]
    unit: str
    x: Axis
    series: tuple[Series, ...]
    y: Axis | None = None
    fixed: str = ""
    step: str = ""

    @property
    def intervals(self) -> bool:
        """Whether any mean has an interval."""
        return any(mean.low is not None for series in self.series for mean in series.means)

    @property
    def holes(self) -> bool:
        """Whether some place has no value."""
        return any(mean.mean is None for series in self.series for mean in series.means)

    @property
    def bounded(self) -> bool:
        """Whether the unit runs from 0 to 1."""
        return self.unit in BOUNDED

    @property
    def title(self) -> str:
        """`flipped over layer and position at scale=2`."""
        axes = [axis.name for axis in (self.y, self.x if self.kind != "dots" else None) if axis is not None]
        over = f" over {' and '.join(axes)}" if axes else ""
        where = f" at {self.fixed}" if self.fixed else ""
        return f"{', '.join(self.metrics)}{over}{where}" + (f" in {self.step}" if self.step else "")

    @property
    def description(self) -> str:
        """The picture in words: what it shows, and where it is lowest and highest."""
        kinds = {"dots": "Points", "lines": "A line plot", "map": "A map"}
        ends = "; ".join(_ends(self, name) for name in self.metrics)
        return f"{kinds[self.kind]}: mean {self.title}, in {self.unit}. {ends}."


def charts(
    results: Results, tokens: Tokens | None = None, metric: str | None = None, at: Mapping[str, str] | None = None
) -> tuple[Chart, ...]:
    """The pictures of a run, of one `metric` or of all that are numbers, `at` some values of axes or at all.

    Raises `Refusal` where there is no such metric, axis or value.
    """
    lines = _chosen(results, metric, at or {})
    steps = list(dict.fromkeys(str(line["observe"]) for line in lines))
    found: list[Chart] = []
    for step in steps:
        own = [line for line in lines if line["observe"] == step and line["mean"] is not None]
        named = dict.fromkeys(str(line["metric"]) for line in own)
        units = {name: results.unit(step, name) for name in named}
        for unit in dict.fromkeys(units.values()):
            of_unit = [line for line in lines if line["observe"] == step and units.get(str(line["metric"])) == unit]
            found += _of_unit(of_unit, unit, results.axes, tokens or {}, step if len(steps) > 1 else "")
    return tuple(found)


def _chosen(results: Results, metric: str | None, at: Mapping[str, str]) -> list[Cells]:
    lines = list(results.lines)
    names = dict.fromkeys(str(line["metric"]) for line in lines)
    if metric is not None and metric not in names:
        raise Refusal(Problem("", f"there is no metric '{metric}'", suggest(metric, names, "metrics")))
    lines = [line for line in lines if metric in (None, line["metric"])]
    for axis, value in at.items():
        if axis not in _axes(lines, results.axes):
            raise Refusal(Problem("", f"there is no axis '{axis}'", suggest(axis, results.axes, "axes")))
        values = dict.fromkeys(word(line.get(axis)) for line in lines)
        if value not in values:
            raise Refusal(Problem("", f"'{axis}' is never {value}", suggest(value, values, "values")))
        lines = [line for line in lines if word(line.get(axis)) == value]
    return lines


def _axes(lines: Sequence[Cells], swept: Sequence[str]) -> list[str]:
    """The axes of some lines: those of the sweep, and the layers of stacked sites."""
    stacked = LAYER not in swept and any(line.get(LAYER) is not None for line in lines)
    return [*swept, *([LAYER] if stacked else [])]


def _of_unit(lines: Sequence[Cells], unit: str, swept: Sequence[str], tokens: Tokens, step: str) -> Iterator[Chart]:
    """Metrics of one unit share a picture, unless it is a map; those of other axes do not."""
    kinds: dict[tuple[str, ...], list[str]] = {}
    for name in dict.fromkeys(str(line["metric"]) for line in lines):
        own = [line for line in lines if line["metric"] == name]
        varying = tuple(axis for axis in _axes(own, swept) if len({word(line.get(axis)) for line in own}) > 1)
        kinds.setdefault(varying, []).append(name)
    for varying, names in kinds.items():
        own = [line for line in lines if line["metric"] in names]
        if not varying:
            yield _dots(own, names, unit, step)
            continue
        for fixed, slice_ in _slices(own, varying[:-2]):
            if len(varying) == 1:
                yield _lines(slice_, names, unit, _axis(slice_, varying[0], tokens), step)
            else:
                yield from (_map(slice_, name, unit, varying[-2:], tokens, fixed, step) for name in names)


def _dots(lines: Sequence[Cells], names: Sequence[str], unit: str, step: str) -> Chart:
    means = tuple(_mean(next(line for line in lines if line["metric"] == name)) for name in names)
    return Chart("dots", tuple(names), unit, Axis("metric", tuple(names)), (Series("", means),), step=step)


def _lines(lines: Sequence[Cells], names: Sequence[str], unit: str, x: Axis, step: str) -> Chart:
    series = tuple(Series(name, _along([line for line in lines if line["metric"] == name], x)) for name in names)
    return Chart("lines", tuple(names), unit, x, series, step=step)


def _map(
    lines: Sequence[Cells], name: str, unit: str, axes: Sequence[str], tokens: Tokens, fixed: str, step: str
) -> Chart:
    """Positions go to the right, whichever axis comes first."""
    down, right = reversed(axes) if axes[0] in tokens and axes[1] not in tokens else axes
    own = [line for line in lines if line["metric"] == name]
    x, y = _axis(own, right, tokens), _axis(own, down, tokens)
    rows = (Series(value, _along([line for line in own if word(line.get(down)) == value], x)) for value in y.values)
    return Chart("map", (name,), unit, x, tuple(rows), y, fixed, step)


def _slices(lines: Sequence[Cells], axes: Sequence[str]) -> Iterator[tuple[str, list[Cells]]]:
    """The lines at every setting of `axes`."""

    def setting(line: Cells) -> tuple[str, ...]:
        return tuple(f"{axis}={word(line.get(axis))}" for axis in axes)

    order = {key: i for i, key in enumerate(dict.fromkeys(map(setting, lines)))}
    for key, found in groupby(sorted(lines, key=lambda line: order[setting(line)]), key=setting):
        yield ", ".join(key), list(found)


def _axis(lines: Sequence[Cells], name: str, tokens: Tokens) -> Axis:
    found = {word(line.get(name)): line.get(name) for line in lines}
    numbers = [value for value in found.values() if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) < len(found):
        return Axis(name, tuple(found))
    values = tuple(sorted(found, key=lambda value: float(str(found[value]))))
    seen = tokens.get(name)
    said = None if seen is None else tuple(seen.get(value, "") for value in values)
    return Axis(name, values, tuple(sorted(float(number) for number in numbers)), said)


def _along(lines: Sequence[Cells], x: Axis) -> tuple[Mean, ...]:
    at = {word(line.get(x.name)): line for line in lines}
    return tuple(_mean(at[value]) if value in at else Mean(None) for value in x.values)


def _mean(line: Cells) -> Mean:
    return Mean(*(_number(line.get(name)) for name in ("mean", "low", "high")))


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def word(value: object) -> str:
    """An axis's value as it is said: text as it stands, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _ends(chart: Chart, name: str) -> str:
    """Where a metric is lowest and highest."""
    found = [
        (mean.mean, _place(chart, series, i))
        for series in chart.series
        for i, mean in enumerate(series.means)
        if mean.mean is not None
        and name == {"dots": chart.x.values[i], "lines": series.name, "map": chart.metrics[0]}[chart.kind]
    ]
    if not found:
        return f"{name} has no value"
    (low, there), (high, here) = min(found), max(found)
    if chart.kind == "dots" or low == high:
        return f"{name} is {low:.3g}" + ("" if chart.kind == "dots" else " everywhere")
    return f"{name} is lowest, {low:.3g}, at {there} and highest, {high:.3g}, at {here}"


def _place(chart: Chart, series: Series, i: int) -> str:
    x = f"{chart.x.name} {chart.x.values[i]}" + (f" ({chart.x.tokens[i]})" if chart.x.tokens else "")
    return x if chart.y is None else f"{chart.y.name} {series.name}, {x}"
