"""Writes that undo each other on some row, and rows that do not fit the model, are refused with the row."""

from __future__ import annotations

import pytest
from tests.desk import Desk

from causalab_mini.checkpoint.resolve import resolve
from causalab_mini.engine.modules import load
from causalab_mini.errors import Refusal

KEY = "causalab-mini/weekdays-gpt2"


@pytest.fixture(scope="module")
def desk() -> Desk:
    folder = resolve(KEY).folder
    return Desk(folder, load(folder, "fp32", None, "cpu"))


def document(first: object, second: object, decode: int = 0, features: object = None) -> dict:
    writes = {
        "a": {"site": "out", "pos": first, "mechanism": "swap", "operand": 0.0},
        "b": {"site": "next", "pos": second, "mechanism": "clamp", "params": {"lo": 0.0}},
    }
    if features is not None:
        writes["a"]["features"], writes["b"]["features"] = features
    return {
        "model": {"key": KEY, "dtype": "fp32"},
        "roles": {"base": {"field": "input"}},
        "sites": {
            "out": {"component": "block_output", "layers": 1},
            "next": {"component": "block_input", "layers": 2},
            "head": {"component": "lm_head"},
        },
        "interventions": {
            "both": {
                "reads": {"x": {"site": "head", "pos": -1, "model": "m", "input": "base"}},
                "writes": writes,
                "models": {"m": {"input": "base", "writes": ["a", "b"]}},
                "metrics": {"e": {"kind": "entropy", "of": "x"}},
                "decode": decode,
            }
        },
        "steps": {"s": {"kind": "observe", "rows": {"base": "weekdays/train"}}},
    }


def test_two_cuts_that_meet_on_a_row_are_refused(desk: Desk) -> None:
    # "If today is Thursday, tomorrow is" has 7 tokens here: index 6 is index -1.
    with pytest.raises(Refusal) as caught:
        desk.compile(document(6, -1))
    (problem,) = caught.value.problems
    assert problem.path == "interventions.both.models.m.writes"
    assert "'a' and 'b' both set block_input[2]" in problem.message
    desk.compile(document(5, -1))
    desk.compile(document(6, -1, features=[[0, 1], [2]]))


def test_a_scope_that_meets_a_cut_is_refused(desk: Desk) -> None:
    scoped = {"all": True, "scope": {"variable": "entity"}}
    with pytest.raises(Refusal, match="both set"):
        desk.compile(document(scoped, 3))
    desk.compile(document(scoped, 4))


def test_rows_that_do_not_fit_the_positions_are_refused(desk: Desk) -> None:
    # 7 tokens and 121 more generated but the last are 128, all the positions there are.
    desk.compile(document(0, 1, decode=122))
    with pytest.raises(Refusal, match="do not fit the 128 positions"):
        desk.compile(document(0, 1, decode=123))
