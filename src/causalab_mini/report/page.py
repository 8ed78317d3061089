"""A finished run as one page of HTML that needs nothing else: no network, no script.

Gathers what the template shows, bounded so that a large run makes a page that opens; everything shown is escaped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import cast

from markupsafe import Markup

from causalab_mini.report.charts import Chart, Tokens, charts, word
from causalab_mini.report.inline import inline
from causalab_mini.report.palette import DARK, LIGHT
from causalab_mini.report.strips import Rows, Touched
from causalab_mini.results.reader import Cells, Results

PICTURES, LINES, ROWS, VALUES, TOUCHED, PLAN = 24, 2000, 60, 200, 12, 600
"""At most so many pictures, lines of the table, rows, values and groups of strips of a row, lines of the plan."""
COUNTS = ("n_scored", "n_rows")
MEASURED = ("mean", "low", "high", "sd", *COUNTS)


@dataclass(frozen=True)
class Told:
    """What a run's directory does not hold and its document says again: the plan, tokens of axes, strips of rows.

    `missing` says why there is none of it.
    """

    plan: str = ""
    tokens: Tokens | None = None
    rows: Rows | None = None
    missing: str = ""


@dataclass(frozen=True)
class Picture:
    """A chart as it is shown, and the words under it."""

    image: Markup
    title: str
    caption: str


@dataclass(frozen=True)
class Table:
    """Columns, whether each is of numbers, and the cells as text; `left` lines are not shown."""

    columns: tuple[tuple[str, bool], ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 0


@dataclass(frozen=True)
class Row:
    """One row of the data: its strips, and its values at all points, of which `scored` are there."""

    step: str
    example_id: str
    touched: tuple[Touched, ...]
    groups_left: int
    values: Table
    scored: int
    total: int


def page(results: Results, told: Told | None = None) -> str:
    """The page. `told`: what the document and its tokenizer add, if they are at hand."""
    from jinja2 import Environment, StrictUndefined

    told = told or Told(missing="the document was not looked at")
    source = files("causalab_mini.report").joinpath("page.html.j2").read_text("utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    found = charts(results, told.tokens)
    rows, rows_left = _rows(results, told.rows or {})
    description = _description(results)
    title = _title(results, description)
    return environment.from_string(source).render(
        title=title,
        description=description.removeprefix(title).strip(),
        light=LIGHT,
        dark=DARK,
        facts=list(_facts(results)),
        warnings=results.warnings,
        pictures=[
            Picture(inline(chart, f"picture-{i}"), chart.title, _caption(chart))
            for i, chart in enumerate(found[:PICTURES])
        ],
        pictures_left=max(0, len(found) - PICTURES),
        summary=_summary(results),
        intervals=any(line.get("low") is not None for line in results.lines),
        plan=_plan(told),
        missing=told.missing,
        rows=rows,
        rows_left=rows_left,
        several_steps=len({row.step for row in rows}) > 1,
        provenance=list(_provenance(results)),
        writes=_writes(results),
        ties=_ties(results),
        document=json.dumps(results.document, indent=2, ensure_ascii=False),
        record=json.dumps(results.run, indent=2, ensure_ascii=False),
    )


def number(value: object) -> str:
    """A number to four digits, a list as JSON, nothing as a dash."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return word(value)
    return (str(value) if isinstance(value, int) else f"{value:.4g}").replace("-", "−")


def _description(results: Results) -> str:
    header = results.document.get("header")
    return str(cast(Cells, header).get("description", "")) if isinstance(header, dict) else ""


def _title(results: Results, description: str) -> str:
    """The question, where the description begins with one that is short."""
    first, mark, _ = description.partition("?")
    return first + mark if mark and len(first) < 160 and "." not in first else f"Experiment {results.digest[:12]}"


def _facts(results: Results) -> Iterator[tuple[str, str]]:
    model = cast(Cells, results.run.get("model", {}))
    yield "model", str(model.get("key", ""))
    over = f" over {', '.join(results.axes)}" if results.axes else ""
    yield "points", f"{len(results.points)}{over}"
    if isinstance(partial := results.run.get("partial"), dict):
        yield "partial", _partial(cast(Cells, partial))
    most = max((int(cast(int, line["n_rows"])) for line in results.lines), default=0)
    if most:
        yield "rows", str(most)
    yield "metrics", ", ".join(dict.fromkeys(str(line["metric"]) for line in results.lines)) or "none"
    ties = cast(list[object], results.run.get("near_ties", []))
    if ties:
        yield "near ties", f"{len(ties)} greedy choices with a margin under 0.001"


def _partial(partial: Cells) -> str:
    """What the run left out of its document."""
    points = cast(dict[str, int], partial["points"])
    parts = [f"{points['complete']} of {points['all']} points"] if points["complete"] < points["all"] else []
    parts += [] if partial["rows"] is None else [f"the first {partial['rows']} rows of every table"]
    return ", ".join(parts)


def _caption(chart: Chart) -> str:
    interval = " Bars and bands are 95 % intervals." if chart.intervals and chart.kind != "map" else ""
    hatched = " Hatched cells have no value." if chart.kind == "map" and chart.holes else ""
    return f"{chart.title} ({chart.unit}).{interval}{hatched}"


def _summary(results: Results) -> Table:
    lines = list(results.lines)
    steps = len({line["observe"] for line in lines}) > 1
    names = [*results.axes, *(["observe"] if steps else []), "metric"]
    names += [name for name in ("layer",) if name not in names and any(line.get(name) is not None for line in lines)]
    names += [name for name in MEASURED if any(line.get(name) is not None for line in lines)]
    return _table([_placed(line, results.axes) for line in lines], names, LINES)


def _placed(line: Cells, axes: Sequence[str]) -> Cells:
    """A line whose axes are said: null is a value of an axis, and no dash."""
    return {**line, **{name: word(None) for name in axes if name in line and line[name] is None}}


def _table(lines: Sequence[Cells], names: Sequence[str], most: int) -> Table:
    numeric = {
        name: all(isinstance(line.get(name), int | float | None) for line in lines) and name != "reason"
        for name in names
    }
    rows = tuple(tuple(number(line.get(name)) for name in names) for line in lines[:most])
    columns = tuple((name.replace("_", " ") if name in COUNTS else name, numeric[name]) for name in names)
    return Table(columns, rows, max(0, len(lines) - most))


def _plan(told: Told) -> str:
    lines = told.plan.splitlines()
    left = len(lines) - PLAN
    return "\n".join([*lines[:PLAN], *([f"… {left} more lines, which explain shows"] if left > 0 else [])])


def _rows(results: Results, touched: Rows) -> tuple[list[Row], int]:
    """The rows of the saved tables and of the strips, in their order."""
    values: dict[tuple[str, str], list[Cells]] = {key: [] for key in touched}
    for cells in results.rows():
        values.setdefault((str(cells["observe"]), str(cells["example_id"])), []).append(cells)
    rows = [_row(results, key, values[key], touched.get(key, ())) for key in list(values)[:ROWS]]
    return rows, max(0, len(values) - ROWS)


def _row(results: Results, key: tuple[str, str], values: Sequence[Cells], touched: Sequence[Touched]) -> Row:
    axes = [
        name for name in (*results.axes, *(f"axis.{name}" for name in results.axes)) if any(name in c for c in values)
    ]
    more = [
        name for name in ("layer", "stopped_at") if name not in axes and any(c.get(name) is not None for c in values)
    ]
    names = [*axes, "metric", *more, "value", "reason", "where"]
    said = [{**_placed(cells, axes), "where": _where(cells), "value": _value(cells.get("value"))} for cells in values]
    scored = sum(bool(cells.get("eligible")) for cells in values)
    step, example_id = key
    groups = tuple(touched[:TOUCHED])
    table = _table(said, names, VALUES)
    return Row(step, example_id, groups, max(0, len(touched) - TOUCHED), table, scored, len(values))


def _where(cells: Cells) -> str:
    """The tokens a value was measured at, with their positions."""
    positions, tokens = (cast(list[object], cells.get(name) or []) for name in ("positions", "tokens"))
    return ", ".join(f"{token!r} at {position}" for token, position in zip(tokens, positions, strict=False))


def _value(value: object) -> object:
    if not isinstance(value, list):
        return value
    text = word(cast(list[object], value))
    return text if len(text) <= 200 else f"{text[:200]}…"


def _provenance(results: Results) -> Iterator[tuple[str, str]]:
    """Where the numbers come from, in the words of run.json; what is large is in the record below."""
    for name, value in results.run.items():
        if name in ("near_ties", "writes", "warnings", "generation"):
            continue
        if isinstance(value, Mapping):
            own = cast(Mapping[str, object], value)
            for key, part in own.items():
                yield f"{name}: {key}", word(part)
        else:
            yield name, word(value)


def _writes(results: Results) -> Table:
    """What every write did: on how many rows it acted, and its smallest and largest change."""
    lines: list[Cells] = []
    for write in cast(list[Cells], results.run.get("writes", [])):
        firings = cast(list[int], write.get("firings", []))
        changes = [change for change in cast(list[float | None], write.get("largest_change", [])) if change is not None]
        acted: Cells = {"rows acted on": sum(map(bool, firings)), "rows": len(firings)}
        size: Cells = {"smallest change": min(changes, default=None), "largest change": max(changes, default=None)}
        lines.append({**{name: write.get(name) for name in ("point", "observe", "model", "write")}, **acted, **size})
    names = list(lines[0]) if lines else []
    return _table(lines, [name for name in names if name != "point" or results.axes], VALUES)


def _ties(results: Results) -> Table:
    lines = cast(list[Cells], results.run.get("near_ties", []))
    return _table(lines, list(lines[0]) if lines else [], VALUES)
