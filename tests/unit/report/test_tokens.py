"""Tokens at position axes and strips of rows, compiled from documents; expectations are written by hand."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path

import pytest
from tests.building import generated, intervention, observing, read, rows, write, write_table

import causalab_mini as cm
from causalab_mini.checkpoint.resolve import resolve
from causalab_mini.plan.compile import compile_experiment
from causalab_mini.plan.nodes import Experiment
from causalab_mini.report.strips import touched_rows
from causalab_mini.report.tokens import axis_tokens
from causalab_mini.spec.load import load

KEY = "causalab-mini/weekdays-llama"
PROMPTS = ("If today is Monday, tomorrow is", "If today is Friday, tomorrow is")


def swept(*values: object, name: str = "position") -> dict:
    return {"sweep": list(values), "as": name}


def patched(pos: object, read_pos: object = -1) -> dict:
    reads = {"v": read("out1", pos, role="other"), "x": read("head", read_pos, model="patched")}
    metrics = {"spread": {"kind": "entropy", "of": "x"}}
    whole = observing(
        intervention(
            reads,
            {"w": write("out1", pos, "swap", "v")},
            {"patched": {"input": "base", "writes": ["w"]}},
            metrics=metrics,
        )
    )
    whole["model"] = {"key": KEY, "dtype": "fp32"}
    return deepcopy(whole)


def compiled(document: dict, root: Path) -> Experiment:
    write_table(root, rows(PROMPTS))
    return compile_experiment(load(json.dumps(document).encode(), "d.json"), resolve(KEY), root)


@pytest.mark.parametrize(
    ("pos", "tokens"),
    [
        ({"index": swept(-4, -2, -1)}, {"-4": "‹Monday …›", "-2": "tomorrow", "-1": "is"}),
        ({"index": swept(0, 3)}, {"0": "If", "3": "‹Monday …›"}),
    ],
)
def test_a_position_axis_has_the_tokens_it_stands_on(pos: object, tokens: dict[str, str], tmp_path: Path) -> None:
    assert axis_tokens(compiled(patched(pos), tmp_path), resolve(KEY)) == {"position": tokens}


@pytest.mark.parametrize("pos", [{"last": swept(1, 2)}, {"span": swept([0, 2], [2, 4])}])
def test_windows_of_several_tokens_have_none(pos: object, tmp_path: Path) -> None:
    assert axis_tokens(compiled(patched(pos), tmp_path), resolve(KEY)) == {}


def test_other_axes_have_none_and_do_not_hide_a_position(tmp_path: Path) -> None:
    document = patched({"index": swept(-2, -1)})
    document["sites"]["out1"]["layers"] = swept(0, 1, name="layer")
    found = axis_tokens(compiled(document, tmp_path), resolve(KEY))
    assert found == {"position": {"-2": "tomorrow", "-1": "is"}}


def test_a_row_has_its_strips_with_what_touches_it_and_what_was_said(tmp_path: Path) -> None:
    document = patched(3, generated(index=1))
    body = next(iter(document["interventions"].values()))
    body["decode"] = 2
    document["steps"]["only"]["saves"] = [{"value": "patched.generated", "file_path": "said.safetensors"}]
    experiment = compiled(document, tmp_path)
    results = cm.run(document, tmp_path / "out", data_root=tmp_path, engine="hooks")
    found = touched_rows(experiment, resolve(KEY), results, 1)
    ((key, groups),) = found.items()
    assert key == ("only", "row-0")
    (group,) = groups
    assert group.nowhere == ()
    assert [mark for mark, _ in group.legend] == ["W1", "R1", "R2"]
    named = {strip.name: strip for strip in group.strips}
    touched = named["patched on base"]
    assert [token.text for token in touched.prompt][1:] == ["If", "·today", "·is", "·Monday", ",", "·tomorrow", "·is"]
    assert [token.place for token in touched.prompt][:3] == ["prefix", "0", "1"]
    assert {token.place: token.marks for token in touched.prompt if token.marks} == {"3": ("W1",)}
    assert [(token.place, token.marks, token.kind) for token in touched.generated] == [
        ("+0", (), ""),
        ("+1", ("R2",), "read"),
    ]
    checkpoint = resolve(KEY)
    ids = results.tensor("patched.generated")[0].tolist()
    assert [token.text for token in touched.generated] == [checkpoint.token_text(i).replace(" ", "·") for i in ids]
    other = named["original on other"]
    assert {token.place: token.kind for token in other.prompt if token.marks} == {"3": "read"}
    assert other.generated == ()


def test_a_position_that_is_nowhere_has_its_reason(tmp_path: Path) -> None:
    write_table(tmp_path, rows(PROMPTS, day=("Monday", "Sunday")))
    document = patched(-1)
    body = next(iter(document["interventions"].values()))
    body.update(writes={}, models={}, reads={"x": read("head", {"index": 0, "scope": {"variable": "day"}})})
    experiment = compile_experiment(load(json.dumps(document).encode(), "d.json"), resolve(KEY), tmp_path)
    results = cm.run(document, tmp_path / "out", data_root=tmp_path, engine="hooks")
    found = touched_rows(experiment, resolve(KEY), results, 3)
    assert found["only", "row-0"][0].nowhere == ()
    assert found["only", "row-1"][0].nowhere == (("R1", "alignment_missing"),)
