"""The summary of a run: one line per point, observe step and metric (and layer, of a stacked site).

`mean`, `sd` and the interval `low` to `high` are over the rows that were scored; a metric of lists has none of them.
"""

from __future__ import annotations

import csv
import io
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from pydantic import BaseModel, ConfigDict

from causalab_mini.plan.nodes import Point
from causalab_mini.results.bootstrap import interval
from causalab_mini.results.records import MetricTable, Observed, TableRow
from causalab_mini.results.strict import compact, pretty
from causalab_mini.results.tables import settled
from causalab_mini.vocabulary.reasons import Reason

OWN = ("point", "observe", "metric", "mean", "sd", "low", "high", "n_scored", "n_rows")
"""The columns that are not axes. An axis of the same name is written as `axis.<name>`."""
STACKED = (*OWN[:3], "layer", *OWN[3:])
"""The same in a run that scores some stacked site."""


class SummaryLine(BaseModel):
    """One metric of one observe step of one point; of a stacked site, at one layer.

    `observe` is the step's name, or `step/intervention` where a step ran several. `sd` is the sample standard
    deviation, `low` and `high` the 95 % interval of the mean by a bootstrap over rows; None under two scored rows.
    `reasons` counts why rows have no value.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    point: str
    axes: dict[str, object]
    observe: str
    metric: str
    mean: float | None
    sd: float | None
    n_scored: int
    n_rows: int
    layer: int | None = None
    n_non_finite: int = 0
    low: float | None = None
    high: float | None = None
    reasons: dict[str, int] = {}

    def cells(self, own: Sequence[str] = OWN) -> dict[str, object]:
        """The line with its axes as columns: the point, the axes, then the rest."""
        axes = {f"axis.{name}" if name in own else name: value for name, value in self.axes.items()}
        rest = {name: getattr(self, name) for name in own[1:]}
        return {"point": self.point, **axes, **rest}


def summarize(point: Point, observed: Iterable[Observed]) -> tuple[SummaryLine, ...]:
    """The lines of one point, in the order its steps ran, a step's by the names of its metrics."""
    named = ((step, table) for step in observed for table in sorted(step.tables, key=lambda table: table.name))
    return tuple(line for step, table in named for line in _lines(point, step, table))


def summary_cells(lines: Sequence[SummaryLine]) -> list[dict[str, object]]:
    """All lines as objects with the same columns, but for the axes."""
    own = OWN if all(line.layer is None for line in lines) else STACKED
    return [line.cells(own) for line in lines]


def summary_json(lines: Sequence[SummaryLine]) -> bytes:
    """All lines as a JSON array of objects."""
    return pretty(summary_cells(lines))


def summary_csv(lines: Sequence[SummaryLine]) -> bytes:
    """All lines as CSV: composite axis values as compact JSON, an empty cell where there is no number."""
    rows = summary_cells(lines)
    columns = list(dict.fromkeys(name for row in rows for name in row)) or list(OWN)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(row.get(name)) for name in columns] for row in rows)
    return text.getvalue().encode()


def _cell(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else compact(value)


def _lines(point: Point, step: Observed, table: MetricTable) -> Iterator[SummaryLine]:
    rows_of: dict[int | None, list[TableRow]] = {} if table.rows else {None: []}
    for row in table.rows:
        rows_of.setdefault(row.layer, []).append(row)
    for layer, rows in rows_of.items():
        yield _line(point, step, table, rows, layer)


def _line(point: Point, step: Observed, table: MetricTable, rows: list[TableRow], layer: int | None) -> SummaryLine:
    found = [settled(row) for row in rows]
    scored = [value for value, reason in found if reason is None]
    numbers = [float(value) for value in scored if isinstance(value, int | float)]
    reasons = Counter(reason.value for _, reason in found if reason is not None)
    sure = interval(numbers)
    return SummaryLine(
        point=point.label,
        axes=dict(point.axes),
        observe="/".join(step.path),
        metric=table.name,
        mean=statistics.fmean(numbers) if numbers else None,
        sd=statistics.stdev(numbers) if len(numbers) > 1 else None,
        n_scored=len(scored),
        n_rows=len(rows),
        layer=layer,
        n_non_finite=reasons[Reason.NON_FINITE.value],
        low=None if sure is None else sure.low,
        high=None if sure is None else sure.high,
        reasons=dict(sorted(reasons.items())),
    )
