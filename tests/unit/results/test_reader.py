"""A directory read back: written here by hand, in the layout that docs/results.md promises."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.finished import finished, line, point, written

from causalab_mini.errors import Refusal
from causalab_mini.results.layout import record_path
from causalab_mini.results.reader import Results


@pytest.fixture
def swept(tmp_path: Path) -> Results:
    """Two layers; the values of their rows are the layers' numbers and a half."""
    labels = {"layer=10": 10, "layer=2": 2}
    out = finished(tmp_path / "out", [line(label, {"layer": layer}) for label, layer in labels.items()])
    for label, layer in labels.items():
        point(out / label, layer + 0.5)
    return Results(out)


def test_points_and_axes_are_those_of_the_summary_in_its_order(swept: Results) -> None:
    assert swept.points == ("layer=10", "layer=2")
    assert swept.axes == ("layer",)
    assert swept.digest == "d" * 64
    assert swept.warnings == ("odd",)
    assert repr(swept) == f"Results({str(swept.directory)!r}: 2 points over layer, spread)"


def test_the_summary_is_a_frame(swept: Results) -> None:
    frame = swept.summary()
    assert list(frame.columns) == ["point", "layer", "observe", "metric", "mean", "sd", "n_scored", "n_rows"]
    assert list(frame["layer"]) == [10, 2]


def test_a_table_has_a_line_for_every_row_metric_and_point(swept: Results) -> None:
    frame = swept.table()
    assert list(frame.columns[:3]) == ["point", "layer", "observe"]
    found = frame[["layer", "example_id", "value"]].values.tolist()
    assert found[0] == [10, "a", 10.5]
    assert found[2] == [2, "a", 2.5]
    assert frame["value"].isna().tolist() == [False, True, False, True]
    assert frame["reason"][3] == "empty_cell"
    assert list(swept.table("spread", {"layer": 2})["layer"]) == [2, 2]
    assert list(swept.table(point="layer=10")["layer"]) == [10, 10]


def test_an_axis_called_as_a_column_is_set_apart(tmp_path: Path) -> None:
    out = finished(tmp_path, [line("row=3", {"row": 3})])
    point(out / "row=3", 1.0)
    frame = Results(out).table()
    assert list(frame["axis.row"]) == [3, 3]
    assert list(frame["row"]) == [0, 1]


def test_tensors_are_numpy(swept: Results) -> None:
    assert swept.tensors("layer=2") == ("seen", "seen.lengths")
    found = swept.tensor("seen", {"layer": 2})
    assert found.dtype == np.float32
    assert found.tolist() == [[2.5] * 3] * 2
    assert swept.tensor("seen.lengths", "layer=10").tolist() == [1, 2]
    assert swept.metadata("seen", "layer=2") == {"dims": "[]"}


def test_a_list_of_interventions_has_a_directory_for_each(tmp_path: Path) -> None:
    lines = [line("", {}, observe=f"score/{name}") for name in ("look", "again")]
    out = finished(tmp_path, lines)
    for value, name in enumerate(("look", "again")):
        point(out, value, ["look", "again"], f"score/{name}")
    results = Results(out)
    assert results.points == ("",)
    frame = results.table()
    assert frame[["observe", "value"]].dropna().values.tolist() == [["score/look", 0.0], ["score/again", 1.0]]
    with pytest.raises(Refusal, match="several steps keep a tensor 'seen'"):
        results.tensor("seen")
    assert results.tensor("seen", observe="score/again").tolist() == [[1.0] * 3] * 2


def test_a_run_without_metrics_has_points_and_tensors(tmp_path: Path) -> None:
    out = finished(tmp_path, [])
    point(out / "layer=2", 2.0)
    (out / "layer=2" / "tables" / "spread.json").unlink()
    results = Results(out)
    assert results.points == ("layer=2",)
    assert results.summary().empty
    assert "mean" in results.summary()
    assert results.table().empty
    assert results.tensor("seen").tolist() == [[2.0] * 3] * 2


def test_a_point_that_was_not_finished_is_none(tmp_path: Path) -> None:
    out = finished(tmp_path, [])
    for label in ("layer=2", "layer=3"):
        point(out / label, 2.0)
    written(out / record_path("layer=3"), {})
    assert Results(out).points == ("layer=3",)


def test_what_is_not_there_is_refused(swept: Results, tmp_path: Path) -> None:
    for ask, message in (
        (lambda: swept.tensor("seen"), "there are 2 points"),
        (lambda: swept.tensor("sen", "layer=2"), "no tensor 'sen' was saved there"),
        (lambda: swept.tensor("seen", "layer=3"), "there is no point 'layer=3'"),
        (lambda: swept.tensor("seen", {"layer": 3}), "no points are at"),
        (lambda: swept.table("sprad"), "there is no table of 'sprad'"),
        (lambda: Results(tmp_path / "nowhere"), "there is no directory"),
    ):
        with pytest.raises(Refusal, match=message) as refused:
            ask()
        assert refused.value.problems[0].hint


@pytest.mark.parametrize("name", ["document.json", "run.json", "summary.json"])
def test_a_run_that_has_not_finished_is_refused(swept: Results, name: str) -> None:
    (swept.directory / name).unlink()
    with pytest.raises(Refusal, match="no run has finished"):
        Results(swept.directory)


def test_a_broken_file_is_refused(swept: Results) -> None:
    (swept.directory / "summary.json").write_text("[")
    with pytest.raises(Refusal, match="cannot be read"):
        Results(swept.directory)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("layer=2/tables/spread.json", "[{", "cannot be read"),
        ("layer=2/tables/spread.json", "7", "is no list of lines with example_id, metric"),
        ("layer=2/tables/spread.json", '[{"value": 1}]', "is no list of lines with example_id, metric"),
        ("layer=2/seen.safetensors", "junk", "cannot be read"),
        ("layer=2/document.json", "{}", "cannot be read"),
        ("layer=2/document.json", None, "cannot be read"),
        ("summary.json", '[{"mean": 1}]', "is no list of lines with point"),
    ],
)
def test_a_file_that_is_not_what_a_run_leaves_is_refused(
    swept: Results, name: str, text: str | None, message: str
) -> None:
    """A copy that is not whole, or edited: the file is named."""
    path = swept.directory / name
    path.unlink()
    if text is not None:
        path.write_text(text)

    def read() -> None:
        again = Results(swept.directory)
        again.table()
        again.tensor("seen", point="layer=2")

    with pytest.raises(Refusal, match=f"{name}.*{message}"):
        read()
