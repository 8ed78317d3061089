"""Values set by path: what they replace, what they make, what is refused."""

from __future__ import annotations

import pytest

from causalab_mini.errors import Refusal
from causalab_mini.spec.overrides import NAMED, overridden

DOCUMENT = {
    "model": {"key": "a/b", "dtype": "fp32"},
    "sites": {"mid": {"component": "block_output", "layers": {"sweep": [0, 1], "as": "layer"}}},
    "interventions": {"swap": {"reads": {"v": {"site": "mid", "pos": -1}}, "writes": {}, "decode": 2}},
    "steps": {"score": {"saves": [{"value": "p", "file_path": "p.json"}]}},
}


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        ("model.dtype", "bf16", ("model", "dtype")),
        ("model.revision", "x", ("model", "revision")),
        ("sites.mid.layers", 3, ("sites", "mid", "layers")),
        ("sites.mid.layers.sweep", [4], ("sites", "mid", "layers", "sweep")),
        ("interventions.swap.reads.v.pos", {"index": 2}, ("interventions", "swap", "reads", "v", "pos")),
        ("steps.score.saves[0].file_path", "q.json", ("steps", "score", "saves", 0, "file_path")),
        ("header.description", "mine", ("header", "description")),
        ("interventions.swap.generation.temperature", 2, ("interventions", "swap", "generation", "temperature")),
    ],
)
def test_a_value_is_at_its_path(path: str, value: object, where: tuple) -> None:
    found: object = overridden(DOCUMENT, {path: value})  # type: ignore[arg-type, dict-item]
    for part in where:
        found = found[part]  # type: ignore[index]
    assert found == value
    assert DOCUMENT["model"] == {"key": "a/b", "dtype": "fp32"}
    assert "header" not in DOCUMENT


def test_later_ones_go_on_earlier_ones() -> None:
    found = overridden(DOCUMENT, {"sites.mid.layers": {"sweep": [1, 2]}, "sites.mid.layers.as": "depth"})
    assert found["sites"] == {"mid": {"component": "block_output", "layers": {"sweep": [1, 2], "as": "depth"}}}


@pytest.mark.parametrize(
    ("path", "at", "message", "hint"),
    [
        ("sites.mdi.layers", "sites", "there is no 'mdi'", "did you mean 'mid'?"),
        ("sites.new", "sites", "there is no 'new'", "the names are: mid"),
        ("interventions.swap.reads.w.pos", "interventions.swap.reads", "there is no 'w'", "the names are: v"),
        ("interventions.swap.writes.push.pos", "interventions.swap.writes", "there is no 'push'", "no names here"),
        ("interventions.swap.reads.v.pos.index", "interventions.swap.reads.v.pos", "is not an object", "pos=…"),
        ("model[0]", "model", "is not a list", "model=…"),
        ("steps.score.saves[1].value", "steps.score.saves", "there are 1 entries", "count from [0]"),
        ("", "", "is no path", "--set interventions"),
        (".model", "", "is no path", "--set interventions"),
        ("model..key", "", "is no path", "--set interventions"),
        ("steps.score.saves[x]", "", "is no path", "--set interventions"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused(path: str, at: str, message: str, hint: str) -> None:
    with pytest.raises(Refusal) as refused:
        overridden(DOCUMENT, {path: 1})  # type: ignore[arg-type]
    (problem,) = refused.value.problems
    assert problem.path == at
    assert message in problem.message
    assert hint in str(problem.hint)


def test_names_are_the_documents_own() -> None:
    assert {"roles", "sites", "interventions", "steps", "reads", "writes", "models", "metrics", "outputs"} <= NAMED
    assert not NAMED & {"params", "generation", "model", "header"}
