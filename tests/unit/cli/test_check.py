"""check: what it holds against what, what it says writes do, and that it finds what is broken."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from causalab_mini.cli import session
from causalab_mini.cli.checking import Checked, Comparison, Written
from causalab_mini.cli.selection import selected, spread
from causalab_mini.cli.verdict import page
from causalab_mini.engine.contract import Engine, Inputs, Visit
from causalab_mini.errors import Refusal
from causalab_mini.plan.nodes import Experiment, Plan, Point
from causalab_mini.run import calls
from causalab_mini.run.agreement import Apart, Gap
from causalab_mini.run.score import Scorer
from causalab_mini.vocabulary.mechanisms import Swap

ALONE, SCHEDULE, ENGINES, BACK = range(4)


def with_writes(project: Path, writes: dict, layer: object = 1) -> None:
    path = project / "swap.json"
    document = json.loads(path.read_text())
    document["sites"]["mid"]["layers"] = layer
    document["interventions"]["swap"]["writes"] = writes
    document["interventions"]["swap"]["models"]["patched"]["writes"] = list(writes)
    path.write_text(json.dumps(document))


@pytest.mark.usefixtures("project")
def test_a_sound_document_is_within_bounds(say: Callable, model: Path) -> None:
    told = say("check", "swap.json", "--weights", model)
    assert told.code == 0
    lines = told.out.splitlines()
    assert lines[0] == "swap.json: 2 of 2 points, fp32 on cpu"
    assert lines[-1] == "all within bounds"
    assert len(lines) < 25
    assert sum(line.startswith("ok ") for line in lines) == 4
    assert not Path("out").exists()


@pytest.mark.usefixtures("project")
def test_sizes_are_those_of_the_model_itself(say: Callable, model: Path) -> None:
    """The largest change at the site is between the two prompts' own activations there."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    found = say("check", "swap.json", "--weights", model, "--json").json
    assert found["ok"] is True
    assert [one["ok"] for one in found["comparisons"]] == [True] * 4
    assert [one["bound"] for one in found["comparisons"]] == [1e-4, 1e-4, 1e-4, None]
    assert found["points"] == {"checked": ["layer=0", "layer=1"], "all": 2}
    net, tokenizer = AutoModelForCausalLM.from_pretrained(model), AutoTokenizer.from_pretrained(model)
    table = json.loads(Path("datasets/days/train.json").read_text())
    for written in found["writes"]:
        layer = int(written["point"].removeprefix("layer="))
        assert (written["write"], written["model"], written["role"]) == ("push", "patched", "base")
        for row, cells in zip(written["rows"], table, strict=True):
            values = []
            for text in (cells["input"], cells["counterfactual_inputs"][0]):
                with torch.inference_mode():
                    out = net(**tokenizer(text, return_tensors="pt"), output_hidden_states=True)
                values.append(out.hidden_states[layer + 1][0, -1])
            assert row["firings"] == 1
            assert row["at_site"] == pytest.approx(float((values[0] - values[1]).abs().max()), rel=1e-4)
            assert row["at_reads"]["logits"] > 0


@pytest.mark.usefixtures("project")
def test_each_of_several_writes_is_left_out_in_turn(say: Callable, project: Path, model: Path) -> None:
    push = {"site": "mid", "pos": -1, "mechanism": "add_scaled", "operand": 1.0}
    idle = {"site": "mid", "pos": -2, "mechanism": "add_scaled", "operand": 1.0, "params": {"scale": 0.0}}
    with_writes(project, {"push": push, "idle": idle})
    told = say("check", "swap.json", "--weights", model, "--json")
    by_name = {written["write"]: written["rows"] for written in told.json["writes"]}
    assert [row["at_site"] for row in by_name["push"]] == pytest.approx([1.0, 1.0])
    assert all(row["at_reads"]["logits"] > 0 for row in by_name["push"])
    assert [(row["at_site"], row["at_reads"]["logits"]) for row in by_name["idle"]] == [(0.0, 0.0), (0.0, 0.0)]
    assert "it changes nothing on 2 of 2 rows" in say("check", "swap.json", "--weights", model).out


@pytest.mark.usefixtures("project")
def test_a_write_that_no_read_comes_by_is_named(say: Callable, project: Path, model: Path) -> None:
    path = project / "swap.json"
    document = json.loads(path.read_text())
    named = "none of its model's reads comes by what it changes"
    assert named not in say("check", "swap.json", "--weights", model).out
    for read in document["interventions"]["swap"]["reads"].values():
        if read.get("model") == "patched":
            read["pos"] = 0
    path.write_text(json.dumps(document))
    told = say("check", "swap.json", "--weights", model)
    assert told.code == 0
    assert named in told.out


class Off:
    """An engine that is a little off in some calls."""

    def __init__(self, engine: Engine, when: Callable[[Inputs], bool]) -> None:
        self._engine, self._when, self.device = engine, when, engine.device

    def forward(self, inputs: Inputs, visits: Sequence[Visit]) -> dict[str, Tensor]:
        kept = self._engine.forward(inputs, visits)
        return {name: value + 0.01 for name, value in kept.items()} if self._when(inputs) else kept


def verdicts(told) -> list[bool]:
    assert told.code == 1
    assert told.json["ok"] is False
    return [one["ok"] for one in told.json["comparisons"]]


@pytest.mark.parametrize(
    ("when", "broken"),
    [
        (lambda inputs: bool((inputs.mask == 0).any()), {ALONE, BACK}),
        (lambda inputs: inputs.ids.shape[0] > 2, {SCHEDULE}),
        (lambda inputs: inputs.ids.shape[0] == 1, {ALONE}),
    ],
    ids=["padding", "stacked points", "single rows"],
)
@pytest.mark.usefixtures("project")
def test_an_engine_that_is_off_is_found(
    say: Callable, model: Path, monkeypatch: pytest.MonkeyPatch, when: Callable, broken: set[int]
) -> None:
    sound = session.engine_of
    monkeypatch.setattr(session, "engine_of", lambda network, name: Off(sound(network, name), when))
    told = say("check", "swap.json", "--weights", model, "--json")
    assert {index for index, ok in enumerate(verdicts(told)) if not ok} == broken


@pytest.mark.usefixtures("project")
def test_an_engine_unlike_the_other_is_found(say: Callable, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = session.engine_of
    monkeypatch.setattr(
        session,
        "engine_of",
        lambda network, name: Off(sound(network, name), lambda inputs: name == "hooks"),
    )
    assert verdicts(say("check", "swap.json", "--weights", model, "--json")) == [True, True, False, True]
    told = say("check", "swap.json", "--weights", model)
    assert told.code == 1
    assert told.out.splitlines()[-1] == "out of bounds: the engines traced and hooks"


@pytest.mark.usefixtures("project")
def test_a_write_that_moves_what_it_puts_back_is_found(
    say: Callable, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By one part in ten million, which no bound would see."""
    sound = Swap.apply
    monkeypatch.setattr(Swap, "apply", lambda self, f, argument: sound(self, f, argument) * (1 + 1e-7))
    found = say("check", "swap.json", "--weights", model, "--json")
    assert verdicts(found) == [True, True, True, False]
    assert found.json["comparisons"][BACK]["largest"][0]["difference"] < 1e-5


@pytest.mark.usefixtures("project")
def test_a_write_that_no_execution_does_is_found(say: Callable, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all executions leave it out alike, none differs from another."""
    sound = calls.visit
    monkeypatch.setattr(calls, "visit", lambda *arguments: replace(sound(*arguments), edit=None))
    found = say("check", "swap.json", "--weights", model, "--schedule", "naive", "--json")
    assert verdicts(found) == [True, True, True, False]
    assert found.json["comparisons"][BACK]["largest"][0]["what"] == "the times 'push' was to act and did not"


@pytest.mark.usefixtures("project")
def test_a_score_that_depends_on_other_rows_is_found(
    say: Callable, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = Scorer._rows
    monkeypatch.setattr(Scorer, "_rows", lambda *arguments: sound(*arguments).roll(1, 0))
    found = say("check", "swap.json", "--weights", model, "--json")
    assert verdicts(found) == [False, True, True, True]
    assert found.json["comparisons"][ALONE]["largest"][0]["what"] == "'spread'"


@pytest.mark.usefixtures("project")
def test_part_of_a_document_may_be_checked(say: Callable, model: Path) -> None:
    told = say("check", "swap.json", "--weights", model, "--points", "layer=1", "--limit", "1", "--json")
    assert told.json["points"] == {"checked": ["layer=1"], "all": 2}
    assert [len(written["rows"]) for written in told.json["writes"]] == [1]
    wrong = say("check", "swap.json", "--weights", model, "--points", "layr=1")
    assert wrong.code == 2
    assert "--points: no point fits 'layr=1'" in wrong.err
    assert "did you mean 'layer=1'?" in wrong.err


def labelled(*labels: str) -> Experiment:
    return Experiment("e", tuple(Point(label, (), label, "{}", Plan("", ())) for label in labels))


def test_points_are_named_by_labels_and_parts_of_them() -> None:
    grid = labelled(*(f"layer={layer},pos={pos}" for layer in range(12) for pos in (-1, -2)))
    assert selected(grid, ["layer=1"]) == ("layer=1,pos=-1", "layer=1,pos=-2")
    assert selected(grid, ["layer=3,pos=-2", "pos=-1,layer=2"]) == ("layer=2,pos=-1", "layer=3,pos=-2")
    assert len(selected(grid, ["*"])) == len(selected(grid, [])) == 24
    assert len(selected(grid, ["layer=1?"])) == 4
    with pytest.raises(Refusal, match="has no sweep"):
        selected(labelled(""), ["layer=1"])
    assert spread(labelled("a", "b", "c", "d", "e"), 3) == ("a", "c", "e")
    assert spread(labelled("a", "b"), 3) == ("a", "b")


def test_a_write_to_a_state_is_held_to_the_bound(
    say: Callable, project: Path, family_folder: Callable[[str, int], Path]
) -> None:
    """The prompt is cut behind its third token, and what follows is another product."""
    path = project / "swap.json"
    document = json.loads(path.read_text())
    document["sites"]["mid"] = {"component": "linear_attention_state", "layers": 1}
    for tap in (document["interventions"]["swap"]["reads"]["v"], document["interventions"]["swap"]["writes"]["push"]):
        tap["pos"] = 2
    path.write_text(json.dumps(document))
    told = say("check", "swap.json", "--weights", family_folder("mamba2", 16), "--json")
    assert told.code == 0
    *_, back, states = told.json["comparisons"]
    assert (back["values"], back["bound"]) == (0, None)
    assert (states["ok"], states["bound"]) == (True, 1e-4)
    assert states["values"] > 0
    assert all(row["at_site"] > 0 for written in told.json["writes"] for row in written["rows"])


@pytest.mark.parametrize("bad", [0, 2])
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_the_page_fits_into_its_terminal(bad: int, size: tuple[int, int]) -> None:
    """With the verdict below it, and one write where there is no room for more."""
    gap = Gap("layer=10,position=-7", "score", "read 'logits'", "wednesday-saturday", 1.234e-5, 17.25)
    names = ("each row alone, and in the batch", "the fast schedule, and the naive one", "the engines traced and hooks")
    comparisons = [Comparison(name, 1e-4, 1344, [gap] * 3) for name in (*names, "every write put back")]
    for comparison in comparisons[:bad]:
        comparison.apart = [Apart("layer=10,position=-7", "score", "patched.generated", "wednesday-saturday")] * 12
    rows = tuple(f"row-{row}" for row in range(16))
    written = [
        Written(
            f"layer={n},position=-7",
            "score",
            "patch",
            "patched",
            "base",
            rows,
            (1,) * 16,
            (n / 7,) * 16,
            (n < 5,) * 16,
            {"logits": (n / 3,) * 16},
        )
        for n in range(11, 0, -1)
    ]
    checked = Checked(tuple(comparisons), tuple(written), "fp32", "cpu", tuple(one.point for one in written), 11)
    columns, height = size
    lines = page(checked, "grid.json", os.terminal_size(size)).splitlines()
    assert lines[-1].startswith("out of bounds: each row alone" if bad else "all within bounds")
    assert sum(max(1, math.ceil(len(line) / columns)) for line in lines) < height
    shown = [line for line in lines if line.startswith("write ")]
    assert shown[0] == "write 'patch' of 'patched' on 'base' at layer=1,position=-7"
    assert f"and {11 - len(shown)} writes more; --json has every row of every one" in lines
    assert len([line for line in page(checked, "grid.json").splitlines() if line.startswith("write ")]) == 8
