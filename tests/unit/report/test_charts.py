"""Which pictures a summary makes, and what they say of themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.finished import document, finished, point, written

from causalab_mini.errors import Refusal
from causalab_mini.report.charts import Chart, Mean, charts
from causalab_mini.results.reader import Results


def line(axes: dict[str, Any], mean: float | None, metric: str = "spread", **more: Any) -> dict[str, Any]:
    label = ",".join(f"{name}={value}" for name, value in axes.items())
    own = {"observe": "score", "metric": metric, "mean": mean, "sd": 0.0, "n_scored": 1, "n_rows": 2, **more}
    return {"point": label, **axes, **own}


def run(folder: Path, lines: list[dict[str, Any]], metrics: dict[str, Any] | None = None) -> Results:
    """A finished run with these lines."""
    out = finished(folder, lines)
    point(out / lines[0]["point"], 1.0)
    if metrics is not None:
        whole = document()
        whole["interventions"]["look"]["metrics"] = metrics
        written(out / lines[0]["point"] / "document.json", whole)
    return Results(out)


def only(found: tuple[Chart, ...]) -> Chart:
    (chart,) = found
    return chart


def test_one_axis_makes_lines_in_the_order_of_its_numbers(tmp_path: Path) -> None:
    lines = [
        line({"layer": layer}, mean, low=mean - 1, high=mean + 1) for layer, mean in ((10, 3.0), (2, 1.0), (4, 2.0))
    ]
    chart = only(charts(run(tmp_path, lines)))
    assert (chart.kind, chart.unit, chart.x.values, chart.x.numbers) == ("lines", "nat", ("2", "4", "10"), (2, 4, 10))
    assert chart.series[0].means == (Mean(1, 0, 2), Mean(2, 1, 3), Mean(3, 2, 4))
    assert chart.intervals
    assert chart.description == (
        "A line plot: mean spread over layer, in nat. spread is lowest, 1, at layer 2 and highest, 3, at layer 10."
    )


def test_two_axes_make_a_map_with_positions_to_the_right(tmp_path: Path) -> None:
    lines = [line({"position": p, "layer": q}, 10.0 * p + q) for p in (-2, -1) for q in (0, 1, 2)]
    results = run(tmp_path, lines)
    plain = only(charts(results))
    assert (plain.kind, plain.x.name, plain.x.values) == ("map", "layer", ("0", "1", "2"))
    assert plain.y is not None
    assert plain.y.values == ("-2", "-1")
    chart = only(charts(results, {"position": {"-2": "If", "-1": "is"}}))
    assert (chart.x.name, chart.x.values, chart.x.tokens) == ("position", ("-2", "-1"), ("If", "is"))
    assert [series.name for series in chart.series] == ["0", "1", "2"]
    assert [mean.mean for mean in chart.series[2].means] == [-18, -8]
    assert (
        "lowest, -20, at layer 0, position -2 (If) and highest, -8, at layer 2, position -1 (is)" in chart.description
    )


def test_more_axes_make_a_map_for_every_setting(tmp_path: Path) -> None:
    lines = [line({"how": how, "a": a, "b": b}, 1.0 * a + b) for how in ("add", "swap") for a in (0, 1) for b in (0, 1)]
    found = charts(run(tmp_path, lines))
    assert [chart.fixed for chart in found] == ["how=add", "how=swap"]
    assert [chart.title for chart in found] == [f"spread over a and b at how={how}" for how in ("add", "swap")]
    chart = only(charts(Results(tmp_path), at={"how": "swap", "a": "1"}))
    assert (chart.kind, [mean.mean for mean in chart.series[0].means]) == ("lines", [1, 2])


def test_an_axis_of_one_value_is_none(tmp_path: Path) -> None:
    chart = only(charts(run(tmp_path, [line({"layer": 3}, 0.25)])))
    assert (chart.kind, chart.x.values, chart.series[0].means) == ("dots", ("spread",), (Mean(0.25),))
    assert chart.description == "Points: mean spread, in nat. spread is 0.25."


def test_metrics_of_one_unit_share_a_picture_but_not_a_map(tmp_path: Path) -> None:
    metrics = {
        "spread": {"kind": "entropy", "of": "logits"},
        "rest": {"kind": "entropy", "of": "logits"},
        "hit": {"kind": "match", "of": "logits", "expected": "answer"},
    }
    lines = [line({"layer": layer}, 1.0 * layer, metric) for layer in (0, 1) for metric in metrics]
    found = charts(run(tmp_path / "lines", lines, metrics))
    assert [(chart.metrics, chart.unit) for chart in found] == [(("spread", "rest"), "nat"), (("hit",), "fraction")]
    crossed = [line({"a": a, "b": b}, 1.0, metric) for a in (0, 1) for b in (0, 1) for metric in ("spread", "rest")]
    found = charts(run(tmp_path / "map", crossed, metrics))
    assert [(chart.kind, chart.metrics) for chart in found] == [("map", ("spread",)), ("map", ("rest",))]


def test_layers_of_a_stacked_site_are_an_axis(tmp_path: Path) -> None:
    lines = [line({}, float(layer), layer=layer) for layer in (0, 1, 2)]
    chart = only(charts(run(tmp_path, lines)))
    assert (chart.kind, chart.x.name, chart.x.values) == ("lines", "layer", ("0", "1", "2"))


def test_points_without_a_value_are_holes(tmp_path: Path) -> None:
    chart = only(charts(run(tmp_path, [line({"layer": 0}, None), line({"layer": 1}, 2.0)])))
    assert chart.series[0].means == (Mean(None), Mean(2))
    assert charts(run(tmp_path / "none", [line({"layer": 0}, None)])) == ()


def test_composite_values_are_words(tmp_path: Path) -> None:
    lines = [line({"window": window}, mean) for window, mean in (([-4, -3], 1.0), ([-3, -1], 2.0))]
    chart = only(charts(run(tmp_path, lines)))
    assert (chart.x.values, chart.x.numbers) == (("[-4, -3]", "[-3, -1]"), None)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"metric": "spraed"}, "there is no metric 'spraed'"),
        ({"at": {"laier": "1"}}, "there is no axis 'laier'"),
        ({"at": {"layer": "7"}}, "'layer' is never 7"),
    ],
)
def test_what_is_not_there_is_refused(tmp_path: Path, asked: dict[str, Any], message: str) -> None:
    results = run(tmp_path, [line({"layer": layer}, 1.0) for layer in (0, 1)])
    with pytest.raises(Refusal, match=message) as refused:
        charts(results, **asked)
    assert refused.value.problems[0].hint
