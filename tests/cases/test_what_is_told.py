"""What is wrong is told in one pass, a number that is none by the exit code, a capped head as the model has it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tests import families, plain
from tests.building import intervention, observing, read, rows, write_table
from tests.desk import desk
from tests.worlds import DATASETS, VOCABULARY, document, words

from causalab_mini.cli import execute


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict]:
    capsys.readouterr()
    code = execute([*map(str, arguments), "--json"])
    return code, json.loads(capsys.readouterr().out)


def refused(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


def test_four_misspellings_come_in_one_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = document("v2/patching")
    one = asked["interventions"]["interchange"]
    one["writes"]["patch"]["paramz"] = {}
    one["writes"]["patch"]["mechanism"] = "swop"
    one["reads"]["logits"]["site"] = "haed"
    one["metrics"]["flipped"]["expected"] = "cf_anser"
    asked["roles"]["counterfactual"]["field"] = "counterfactul_inputs[0]"
    (tmp_path / "wrong.json").write_text(json.dumps(asked, indent=1))
    for verb in (["explain"], ["run", "--out", tmp_path / "out"]):
        code, answer = told(capsys, *verb, tmp_path / "wrong.json", "--data-root", DATASETS)
        assert code == 2
        hints = {problem["path"]: problem["hint"] for problem in answer["problems"]}
        assert all(problem["line"] for problem in answer["problems"])
        inside = "interventions.interchange"
        for path, meant in (
            (f"{inside}.writes.patch.paramz", "params"),
            (f"{inside}.writes.patch.mechanism", "swap"),
            (f"{inside}.reads.logits.site", "head"),
            (f"{inside}.metrics.flipped.expected", "cf_answer"),
            ("roles.counterfactual.field", "counterfactual_inputs"),
        ):
            assert f"did you mean '{meant}" in hints[path], path
    assert not (tmp_path / "out").exists()


def test_a_number_that_is_none_is_told_by_the_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = document("v2/steer_renormalize")
    asked["interventions"]["steer"]["writes"]["push"]["params"]["scale"] = {"sweep": [1, 1e38], "as": "scale"}
    (tmp_path / "far.json").write_text(json.dumps(asked))
    for _ in range(2):
        code, answer = told(capsys, "run", tmp_path / "far.json", "--out", tmp_path / "out", "--data-root", DATASETS)
        assert code == 1
        assert answer["ok"] is False
        assert "scale=1e+38: 'toward' is not finite on 42 of 42 rows" in answer["non_finite"]
        assert not [line for line in answer["non_finite"] if line.startswith("scale=1:")]
    text = (tmp_path / "out/scale=1e+38/toward.json").read_text()
    assert {(row["value"], row["reason"]) for row in json.loads(text, parse_constant=refused)} == {(None, "non_finite")}
    json.loads((tmp_path / "out/run.json").read_text(), parse_constant=refused)


def test_a_capped_head_is_scored_on_the_logits_the_model_returns(tmp_path: Path) -> None:
    """With weights so large that the cap bends every logit, what the head alone would give is another number."""
    at = desk(families.write_folder(tmp_path / "gemma2", "gemma2", 16, words(), VOCABULARY))
    model = at.network.model
    cap = model.config.final_logit_softcapping
    with torch.no_grad():
        model.get_output_embeddings().weight.mul_(40)
    prompts = ("If today is Thursday, tomorrow is", "The day after Friday is")
    there = at.over(write_table(tmp_path, rows(prompts, answer=[" Friday", " Saturday"])))
    metrics = {"p": {"kind": "token_prob", "of": "x", "token": "answer"}}
    found = there.one(observing(intervention({"x": read("head")}, metrics=metrics))).values("p")
    for prompt, answer, value in zip(prompts, (" Friday", " Saturday"), found, strict=True):
        ids = at.world.tokenizer(prompt)["input_ids"]
        (token,) = at.world.tokenizer(answer, add_special_tokens=False)["input_ids"]
        logits = plain.run(model, ids).logits[0].double()
        assert logits.abs().max() > 0.9 * cap
        assert value == pytest.approx(logits.softmax(-1)[token].item(), rel=1e-4)
        bare = cap * torch.atanh((logits / cap).clamp(-1 + 1e-7, 1 - 1e-7))
        assert value != pytest.approx(bare.softmax(-1)[token].item(), rel=0.1)
