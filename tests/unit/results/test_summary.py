"""The summary: numbers by hand."""

from __future__ import annotations

import csv
import io
import json
import math

import pytest
from tests.unit.results.build import observe, point, row, stacked, table

from causalab_mini.results.completion import WriteEntry
from causalab_mini.results.records import MetricTable, Observed
from causalab_mini.results.remarks import idle, unscored
from causalab_mini.results.summary import SummaryLine, summarize, summary_csv, summary_json
from causalab_mini.vocabulary.reasons import Reason


def lines(label: str, *rows: object, path: tuple[str, ...] = ("score",)) -> tuple[SummaryLine, ...]:
    table = MetricTable("p", "token_prob", "probability", False, rows)  # type: ignore[arg-type]
    return summarize(point(label, observe(path)), [Observed(label, path, (table,), ())])


def test_mean_and_sample_deviation_are_over_the_scored_rows() -> None:
    (line,) = lines("index=0", row(1.0), row(2.0), row(4.0), row(None, Reason.EMPTY_CELL), row(math.nan))
    assert line.mean == pytest.approx(7 / 3)
    assert line.sd == pytest.approx(math.sqrt(((4 / 3) ** 2 + (1 / 3) ** 2 + (5 / 3) ** 2) / 2))
    assert (line.n_scored, line.n_rows) == (3, 5)


def test_one_row_has_no_deviation_and_none_no_mean() -> None:
    assert (lines("", row(3.0))[0].mean, lines("", row(3.0))[0].sd) == (3.0, None)
    empty = lines("", row(None, Reason.OUT_OF_RANGE))[0]
    assert (empty.mean, empty.sd, empty.n_scored, empty.n_rows) == (None, None, 0, 1)


def test_the_interval_is_of_the_scored_rows() -> None:
    (line,) = lines("", row(0.0), row(1.0), row(None, Reason.EMPTY_CELL), row(math.inf))
    assert (line.mean, line.low, line.high) == (0.5, 0.0, 1.0)
    assert lines("", row(3.0), row(None, Reason.EMPTY_CELL))[0].low is None
    assert line.reasons == {"empty_cell": 1, "non_finite": 1}


def test_a_metric_without_a_value_says_so() -> None:
    empty = [row(None, Reason.OUT_OF_RANGE), row(None, Reason.EMPTY_CELL), row(None, Reason.OUT_OF_RANGE)]
    found = [*lines("index=0", *empty), *lines("index=1", row(1.0)), *lines("index=2", *empty)]
    assert unscored(found, 3) == [
        "'p' has a value on none of 3 rows: empty_cell on 1, out_of_range on 2, at 2 of 3 points, first index=0"
    ]
    assert unscored(lines("", *empty), 1) == [
        "'p' has a value on none of 3 rows: empty_cell on 1, out_of_range on 2",
    ]


def test_where_there_are_several_steps_they_are_named() -> None:
    empty = row(None, Reason.EMPTY_CELL)
    found = [*lines("", row(1.0)), *lines("", empty, path=("later", "probe"))]
    assert unscored(found, 1) == ["'p' in 'later/probe' has a value on none of 1 rows: empty_cell on 1"]
    writes = [write("", (1,), (0.5,)), write("", (1,), (0.0,), 1).model_copy(update={"observe": "later"})]
    assert idle(iter(writes), 1) == ["write 'w' of 'm' in 'later' changed nothing on 1 of 1 rows"]


def write(point: str, firings: tuple[int, ...], changes: tuple[float | None, ...], still: int = 0) -> WriteEntry:
    return WriteEntry(
        point=point, observe="score", write="w", model="m", firings=firings, largest_change=changes, still=still
    )


def test_idle_writes_are_named() -> None:
    assert idle([write("", (1, 1), (0.5, 1e-9)), write("", (0, 2), (None, 0.1))], 1) == []
    assert idle([write("", (1, 1), (0.5, 0.0), 1)], 1) == ["write 'w' of 'm' changed nothing on 1 of 2 rows"]
    assert idle([write("k=1", (0, 0), (None, None))], 2) == ["write 'w' of 'm' acted on no row, at k=1"]


def test_lists_are_counted_and_have_no_mean() -> None:
    line = lines("", row([[1, "a", 0.5]]))[0]
    assert (line.mean, line.sd, line.n_scored) == (None, None, 1)


def test_axes_are_columns() -> None:
    found = [*lines("layer=0,index=1", row(1.0)), *lines("layer=1,index=1", row(0.5), path=("score", "probe"))]
    assert json.loads(summary_json(found)) == [
        {"point": "layer=0,index=1", "layer": 0, "index": 1, "observe": "score", "metric": "p"}
        | {"mean": 1.0, "sd": None, "low": None, "high": None, "n_scored": 1, "n_rows": 1},
        {"point": "layer=1,index=1", "layer": 1, "index": 1, "observe": "score/probe", "metric": "p"}
        | {"mean": 0.5, "sd": None, "low": None, "high": None, "n_scored": 1, "n_rows": 1},
    ]
    rows = list(csv.DictReader(io.StringIO(summary_csv(found).decode())))
    assert rows[1]["layer"] == "1"
    assert rows[1]["sd"] == ""
    assert rows[0]["point"] == "layer=0,index=1"


def test_an_axis_named_like_a_column_keeps_both() -> None:
    line = SummaryLine(
        point="mean=1", axes={"mean": 1}, observe="s", metric="m", mean=0.5, sd=None, n_scored=1, n_rows=1
    )
    assert line.cells()["axis.mean"] == 1
    assert line.cells()["mean"] == 0.5


def test_composite_axis_values_are_compact_json() -> None:
    line = SummaryLine(
        point="pos", axes={"pos": {"span": [0, 1]}}, observe="s", metric="m", mean=0.5, sd=0.0, n_scored=2, n_rows=2
    )
    (cells,) = csv.DictReader(io.StringIO(summary_csv([line]).decode()))
    assert cells["pos"] == '{"span":[0,1]}'


def test_every_layer_of_a_stacked_site_has_a_line() -> None:
    tables = (stacked({2: (0.5, 0.25), 0: (1.0, math.nan)}), table(3.0, name="q"))
    found = summarize(point("layer=5"), [Observed("layer=5", ("score",), tables, ())])
    rows = json.loads(summary_json(found))
    assert [(cells["metric"], cells["layer"], cells["mean"]) for cells in rows] == [
        ("p", 2, 0.375),
        ("p", 0, 1.0),
        ("q", None, 3.0),
    ]
    assert [(cells["n_scored"], cells["n_rows"]) for cells in rows] == [(2, 2), (1, 2), (1, 1)]
    assert list(rows[0]) == [
        "point",
        "axis.layer",
        "observe",
        "metric",
        "layer",
        "mean",
        "sd",
        "low",
        "high",
        "n_scored",
        "n_rows",
    ]
    assert [cells["axis.layer"] for cells in rows] == [5, 5, 5]
    assert summary_csv(found).decode().splitlines()[3] == "layer=5,5,score,q,,3.0,,,,1,1"


def test_no_lines_are_a_header() -> None:
    assert summary_csv([]) == b"point,observe,metric,mean,sd,low,high,n_scored,n_rows\n"
    assert json.loads(summary_json([])) == []
