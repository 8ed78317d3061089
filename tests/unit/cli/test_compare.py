"""compare: what it prints, what it answers, what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def runs(say: Callable, project: Path, model: Path) -> tuple[str, str]:
    """The same document run twice, the second time as what its writes do less."""
    assert say("run", "swap.json", "--out", "a", "--weights", model, "--engine", "hooks").code == 0
    document = json.loads((project / "swap.json").read_text())
    push = document["interventions"]["swap"]["writes"]["push"]
    push["mechanism"], push["params"] = "lerp", {"t": 0.5}
    (project / "swap.json").write_text(json.dumps(document))
    assert say("run", "swap.json", "--out", "b", "--weights", model, "--engine", "hooks").code == 0
    return "a", "b"


def test_two_runs_are_told_apart(say: Callable, runs: tuple[str, str]) -> None:
    told = say("compare", *runs)
    assert told.code == 0
    lines = told.out.splitlines()
    assert lines[0] == "the documents differ:"
    assert '  interventions.swap.writes.push.mechanism: "swap" -> "lerp"' in lines
    assert "the runs do not differ" in lines
    assert lines[-1] == "the results differ"
    header = next(line for line in lines if line.startswith("point"))
    assert header.split("  ")[-1] == "changed / rows"
    found = say("compare", *runs, "--json").json
    assert (found["ok"], found["same"]) == (True, False)
    for pair in found["pairs"]:
        first, second = (
            {row["example_id"]: row["value"] for row in json.loads(Path(out, pair["point"], "spread.json").read_text())}
            for out in runs
        )
        gaps = [second[row] - first[row] for row in first]
        assert pair["difference"] == pytest.approx(sum(gaps) / len(gaps))
        assert pair["changed"] == pair["n"] == 2
    assert [said["n"] for said in found["said"]] == [2, 2]


def test_a_run_is_like_itself(say: Callable, runs: tuple[str, str]) -> None:
    told = say("compare", runs[0], runs[0])
    assert told.code == 0
    assert told.out.splitlines()[-1] == "no number and no token differs"


@pytest.mark.usefixtures("project")
def test_what_no_run_left_is_refused(say: Callable) -> None:
    told = say("compare", "nowhere", "nowhere")
    assert told.code == 2
    assert "there is no directory nowhere" in told.err
    assert say("compare", "datasets", "datasets", "--json").json["ok"] is False
