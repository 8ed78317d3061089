"""Two directories held against each other: rows joined by id and point, numbers by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from causalab_mini.errors import Refusal
from causalab_mini.results.comparing import Difference, Said, compare, differences
from causalab_mini.results.reader import Results

DOCUMENT = {
    "model": {"key": "some/model", "dtype": "fp32"},
    "roles": {"base": {"field": "input"}},
    "sites": {"head": {"component": "lm_head"}},
    "interventions": {
        "one": {
            "reads": {"v": {"site": "head", "pos": -1, "input": "base"}},
            "metrics": {"p": {"kind": "entropy", "of": "v"}},
            "decode": 3,
        }
    },
    "steps": {
        "score": {
            "kind": "observe",
            "rows": {"base": "a/b"},
            "saves": [
                {"value": "p", "file_path": "p.json"},
                {"value": "original.generated", "file_path": "said.safetensors"},
            ],
        }
    },
}


def write(
    out: Path,
    points: dict[str, dict[str, object]],
    said: list[list[int]] | None = None,
    decode: int = 3,
    **run: object,
) -> Results:
    """A finished run: the value of every row at every point, and what rows 0, 1, … generated."""
    document = json.loads(json.dumps(DOCUMENT))
    document["interventions"]["one"]["decode"] = decode
    out.mkdir()
    (out / "document.json").write_text(json.dumps(document))
    (out / "run.json").write_text(json.dumps({"digest": "d", "dtype": "fp32", "schedule": {"mode": "fast"}, **run}))
    axes = {label: dict(part.split("=") for part in label.split(",") if part) for label in points}
    lines = [{"point": label, **axes[label], "observe": "score", "metric": "p", "mean": 0} for label in points]
    (out / "summary.json").write_text(json.dumps(lines))
    for label, values in points.items():
        (out / label).mkdir(exist_ok=True)
        (out / label / "document.json").write_text(json.dumps(document))
        rows = [
            {"example_id": row, "metric": "p", "value": value, "eligible": value is not None}
            for row, value in values.items()
        ]
        (out / label / "p.json").write_text(json.dumps(rows))
        if said is not None:
            ids = json.dumps([f"row-{index}" for index in range(len(said))])
            tensors = {"original.generated": torch.tensor(said)}
            save_file(tensors, out / label / "said.safetensors", metadata={"example_ids": ids, "dims": "[]"})
    return Results(out)


def test_rows_are_joined_by_id(tmp_path: Path) -> None:
    first = write(tmp_path / "a", {"": {"x": 1.0, "y": 2.0, "z": None, "w": 4.0}})
    second = write(tmp_path / "b", {"": {"w": 3.0, "y": 2.0, "x": 1.5, "z": 9.0}})
    found = compare(first, second)
    (pair,) = found.pairs
    assert (pair.n, pair.changed, pair.only_first, pair.only_second) == (3, 2, 0, 1)
    assert (pair.first, pair.second) == (pytest.approx(7 / 3), pytest.approx(6.5 / 3))
    assert pair.difference == pytest.approx(-0.5 / 3)
    assert (pair.largest, pair.row) == (-1.0, "w")
    assert pair.low is not None
    assert pair.high is not None
    assert -1.0 <= pair.low <= pair.difference <= pair.high <= 0.5
    assert not found.same


def test_points_are_joined_by_label_and_lone_ones_with_each_other(tmp_path: Path) -> None:
    first = write(tmp_path / "a", {"k=1": {"x": 1.0}, "k=2": {"x": 5.0}})
    second = write(tmp_path / "b", {"k=2": {"x": 7.0}, "k=3": {"x": 0.0}})
    found = compare(first, second)
    assert [(pair.point, pair.difference, pair.low) for pair in found.pairs] == [("k=2", 2.0, None)]
    assert (found.only_first, found.only_second) == (("k=1",), ("k=3",))
    lone = write(tmp_path / "c", {"k=9": {"x": 6.0}}), write(tmp_path / "d", {"": {"x": 8.0}})
    assert [pair.difference for pair in compare(*lone).pairs] == [2.0]
    with pytest.raises(Refusal, match="no point in common"):
        compare(first, lone[0])


def test_lists_only_change(tmp_path: Path) -> None:
    first = write(tmp_path / "a", {"": {"x": [[1, "a", 0.5]], "y": [[2, "b", 0.5]]}})
    second = write(tmp_path / "b", {"": {"x": [[1, "a", 0.5]], "y": [[3, "c", 0.5]]}})
    (pair,) = compare(first, second).pairs
    assert (pair.n, pair.changed, pair.difference, pair.low, pair.largest) == (2, 1, None, None, None)


def test_continuations_are_compared_by_row(tmp_path: Path) -> None:
    first = write(tmp_path / "a", {"": {"x": 1.0}}, [[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    second = write(tmp_path / "b", {"": {"x": 1.0}}, [[1, 2, 3], [4, 5, 0], [7, 0, 9]])
    found = compare(first, second)
    assert found.said == (Said("", "score", "original.generated", 3, 2, 1, 0, 0),)
    assert compare(first, first).same


def test_a_run_that_has_more_is_not_the_same(tmp_path: Path) -> None:
    """More rows of a continuation, a continuation, or a metric: no number differs, and yet the runs do."""
    first = write(tmp_path / "a", {"": {"x": 1.0, "y": None}}, [[1, 2, 3], [4, 5, 6]])
    rows = compare(first, write(tmp_path / "b", {"": {"x": 1.0, "y": None}}, [[1, 2, 3]]))
    assert rows.said == (Said("", "score", "original.generated", 1, 0, None, 1, 0),)
    silent = write(tmp_path / "c", {"": {"x": 1.0, "y": None}})
    assert compare(silent, first).said == (Said("", "score", "original.generated", 0, 0, None, 0, 2),)
    mute = write(tmp_path / "d", {"": {}}, [[1, 2, 3], [4, 5, 6]])
    (pair,) = compare(first, mute).pairs
    assert (pair.metric, pair.n, pair.difference, pair.only_first, pair.only_second) == ("p", 0, None, 1, 0)
    assert not any(found.same for found in (rows, compare(silent, first), compare(first, mute)))
    with pytest.raises(Refusal, match="no metric or continuation in common"):
        compare(silent, mute)


def test_a_run_alone_is_the_same(tmp_path: Path) -> None:
    first = write(tmp_path / "a", {"": {"x": 1.0, "y": 2.0}})
    found = compare(first, first)
    assert found.same
    assert found.document == found.run == ()
    assert (found.pairs[0].difference, found.pairs[0].low, found.pairs[0].high) == (0.0, 0.0, 0.0)


def test_what_the_runs_differ_in_is_told(tmp_path: Path) -> None:
    first = write(tmp_path / "a", {"": {"x": 1.0}}, code="old")
    second = write(tmp_path / "b", {"": {"x": 1.0}}, decode=5, code="new", schedule={"mode": "exact"}, seconds=9)
    found = compare(first, second)
    assert found.document == (Difference("interventions.one.decode", 3, 5),)
    assert found.run == (Difference("code", "old", "new"), Difference("schedule.mode", "fast", "exact"))


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"b": 1}, [("a", 1, None), ("b", None, 1)]),
        ({"a": [1, 2]}, {"a": [1, 3]}, [("a", [1, 2], [1, 3])]),
        ({"a": [{"b": 1}, 2]}, {"a": [{"b": 3}, 2]}, [("a[0].b", 1, 3)]),
        ({"a": [{"b": 1}]}, {"a": []}, [("a", [{"b": 1}], [])]),
        ({"a": True}, {"a": 1}, [("a", True, 1)]),
    ],
)
def test_differences_have_places(first: object, second: object, found: list[tuple]) -> None:
    assert list(differences(first, second)) == [Difference(*each) for each in found]


def test_an_axis_called_layer_is_no_layer_of_a_table(tmp_path: Path) -> None:
    first = write(tmp_path / "a", {"layer=1": {"x": 1.0}})
    second = write(tmp_path / "b", {"layer=1": {"x": 2.0}})
    assert [(pair.point, pair.layer) for pair in compare(first, second).pairs] == [("layer=1", None)]
