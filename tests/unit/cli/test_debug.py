"""debug: what a look shows, whatever chooses the tokens, and that it leaves nothing behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests import plain
from tests.unit.cli.conftest import DOCUMENT, ROWS, Said

PROMPTS = ("If today is Monday, then tomorrow is", "The capital of")
Say = Callable[..., Said]


def generate(say: Say, model: Path, *more: object, prompts: tuple[str, ...] = PROMPTS) -> dict:
    told = say("debug", "generate", "--model", model, *(w for p in prompts for w in ("--prompt", p)), *more, "--json")
    assert told.code == 0, told.out
    return told.json


def reloaded(model: Path) -> torch.nn.Module:
    from causalab_mini.engine.modules import load

    return load(model, "fp32", None, "cpu").model


@pytest.mark.usefixtures("project")
def test_a_look_at_a_model_shows_every_choice(say: Say, model: Path) -> None:
    """Against the plain loop: ids, argmax and the likeliest tokens of each step."""
    answer = generate(say, model, "--steps", 4, "--eos", "hold", "--top", 3)
    network = reloaded(model)
    assert [row["example_id"] for row in answer["rows"]] == ["0", "1"]
    width = max(len(row["ids"]) for row in answer["rows"])
    for row, prompt in zip(answer["rows"], PROMPTS, strict=True):
        assert row["prompt"] == row["rendered"] == prompt
        assert row["mask"] == [0] * (width - len(row["ids"])) + [1] * len(row["ids"])
        assert len(row["tokens"]) == len(row["ids"])
        rolled = plain.run(network, row["ids"], steps=4, held=[1])
        assert row["generated"] == rolled.ids
        assert row["stop"] == "length"
        for step, logits in zip(row["steps"], rolled.logits, strict=True):
            assert step["argmax"] == int(logits.argmax())
            assert step["differs"] == (step["emitted"] != step["argmax"])
            likely = logits.softmax(-1).topk(3)
            assert [one["id"] for one in step["top"]] == likely.indices.tolist()
            assert [one["probability"] for one in step["top"]] == pytest.approx(likely.values.tolist(), rel=1e-3)
    settings = answer["settings"]["original on prompt"]
    assert settings["text"] == "greedy N=4 (lock); eos held off"


@pytest.mark.usefixtures("project")
def test_one_row_at_a_time_says_the_same_without_padding(say: Say, model: Path) -> None:
    together, alone = (generate(say, model, "--steps", 4, *more) for more in ((), ("--serial",)))
    assert [row["generated"] for row in together["rows"]] == [row["generated"] for row in alone["rows"]]
    assert all(set(row["mask"]) == {1} for row in alone["rows"])


@pytest.mark.usefixtures("project")
def test_settings_and_samples_are_told_with_their_source(say: Say, model: Path) -> None:
    asked = ("--gen", "suppress_tokens=" + json.dumps(list(range(3, 200))), "--sample", "seed=3", "--sample", "top_k=4")
    answer = generate(say, model, "--steps", 3, "--eos", "hold", *asked)
    record = answer["settings"]["original on prompt"]
    assert record["settings"]["suppress_tokens"]["source"] == "--gen"
    assert record["selection"]["value"] == "a sample of the processed logits"
    assert record["selection"]["seed"] == 3
    said = [token for row in answer["rows"] for token in row["generated"]]
    assert min(said) >= 200
    assert any(step["differs"] for row in answer["rows"] for step in row["steps"])
    # A row is drawn from nothing but itself: with another row beside it, and alone.
    first = generate(say, model, "--steps", 3, "--eos", "hold", *asked, prompts=PROMPTS[:1])
    assert first["rows"][0]["generated"] == answer["rows"][0]["generated"]


def test_a_look_at_a_document_writes_what_an_intervention_writes(say: Say, project: Path, model: Path) -> None:
    """The ids that a run saves, and no file: rows of the step, the operand read from another role."""
    from safetensors.torch import load_file

    before = {path.relative_to(project) for path in project.rglob("*")}
    told = say("debug", "generate", "swap.json", "--intervention", "swap", "--weights", model, "--json")
    assert {path.relative_to(project) for path in project.rglob("*")} == before
    assert say("run", "swap.json", "--weights", model, "--out", "out").code == 0
    (bundle,) = project.glob("out/layer=0/said.safetensors")
    saved = load_file(bundle)["patched.generated"].tolist()
    assert [row["generated"] for row in told.json["rows"]] == saved
    assert {row["forward"] for row in told.json["rows"]} == {"patched on base"}
    unwritten = say("debug", "generate", "swap.json", "--weights", model, "--json").json
    assert {row["forward"] for row in unwritten["rows"]} == {"original on base"}
    assert [row["prompt"] for row in unwritten["rows"]] == [row["input"] for row in ROWS]


def test_a_look_goes_on_as_the_document_does_but_for_what_is_said(say: Say, project: Path, model: Path) -> None:
    rewritten = json.loads(json.dumps(DOCUMENT))
    rewritten["interventions"]["swap"]["generation"] = {"repetition_penalty": 1.5}
    (project / "swap.json").write_text(json.dumps(rewritten))
    for more, steps, eos in (((), 2, "hold"), (("--steps", 3), 3, "hold"), (("--eos", "stop"), 2, "stop")):
        answer = say("debug", "generate", "swap.json", "--weights", model, *more, "--json").json
        record = answer["settings"]["original on base"]
        assert (record["steps"]["value"], record["eos"]["value"]) == (steps, eos)
        assert record["settings"]["repetition_penalty"]["value"] == 1.5


@pytest.mark.usefixtures("project")
def test_ids_become_text_as_they_are_told_to(say: Say) -> None:
    key = "causalab-mini/weekdays-llama"
    asked = ("debug", "generate", "--model", key, "--prompt", "If today is Thursday, tomorrow is", "--json")
    (row,) = say(*asked).json["rows"]
    assert (row["text"], row["stop"]) == (" Friday.</s>", "eos")
    (row,) = say(*asked, "--decode-text", "skip_special_tokens=true").json["rows"]
    assert row["text"] == " Friday."


def test_prompts_need_no_weights(say: Say, project: Path, model: Path) -> None:
    (project / "light").mkdir()
    for path in model.iterdir():
        if path.suffix != ".safetensors":
            (project / "light" / path.name).write_bytes(path.read_bytes())
    told = say("debug", "prompts", "swap.json", "--weights", project / "light", "--json").json
    assert [(row["role"], row["prompt"]) for row in told["rows"]] == [
        *(("base", row["input"]) for row in ROWS),
        *(("other", row["counterfactual_inputs"][0]) for row in ROWS),
    ]
    for row in told["rows"]:
        assert sum(row["mask"]) == len(row["ids"]) == len(row["tokens"])
    page = say("debug", "prompts", "--model", project / "light", "--prompt", "The capital of").out
    assert "'The capital of'" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name a DOC, or say --model KEY"),
        (("swap.json", "--model", "m"), "a look is at a document or at a model"),
        (("--model", "m"), "nothing is said to be read"),
        (("--model", "m", "--prompt", "a", "--rows", "days/train"), "keep one"),
        (("--model", "m", "--prompt", "a", "--intervention", "swap"), "one of a document's"),
        (("swap.json", "--intervention", "swop"), "did you mean 'swap'?"),
        (
            ("swap.json", "--intervention", "swap", "--prompt", "a"),
            "--prompt is one text, and 'swap' reads base, other",
        ),
        (("--model", "M", "--prompt", "a", "--gen", "temperature=0.7"), "it is greedy"),
        (("--model", "M", "--prompt", "a", "--gen", "max_new_tokens=7"), "the steps of decode"),
        (("--model", "M", "--prompt", "a", "--gen", "penalty=2"), "'penalty' is not a generation setting"),
        (("--model", "M", "--prompt", "a", "--gen", "repetition_penalty"), "--gen takes KEY=VALUE"),
        (
            ("--model", "M", "--prompt", "a", "--gen", "min_length=1", "--gen", "min_length=2"),
            "says 'min_length' twice",
        ),
        (("--model", "M", "--prompt", "a", "--sample", "temp=1"), "--sample: there is no 'temp'"),
        (("--model", "M", "--prompt", "a", "--sample", "top_k=3"), "the key 'seed' is missing"),
        (("--model", "M", "--prompt", "a", "--decode-text", "raw=1"), "--decode-text: there is no 'raw'"),
        (("--model", "M", "--rows", "days/train", "--field", "text"), "no row of 'days/train' has a column 'text'"),
        (("--model", "no/such", "--prompt", "a"), "no/such"),
    ],
)
@pytest.mark.usefixtures("project")
def test_refusals(say: Say, model: Path, arguments: tuple[str, ...], message: str) -> None:
    told = say("debug", "generate", *(str(model) if word == "M" else word for word in arguments))
    assert told.code in (1, 2)
    assert message in told.err, told.err
    assert told.out == ""


def test_the_command_lines_settings_are_part_of_a_run(say: Say, project: Path, model: Path) -> None:
    asked = ("run", "swap.json", "--weights", model, "--out", "out")
    assert say(*asked).code == 0
    plainly = json.loads((project / "out/run.json").read_text())
    # Another experiment: it neither keeps what is there nor overwrites it.
    other = say(*asked, "--gen", "repetition_penalty=1.9")
    assert other.code == 2
    assert "holds another experiment" in other.err
    told = say("run", "swap.json", "--weights", model, "--out", "pen", "--gen", "repetition_penalty=1.9")
    assert told.code == 0
    run = json.loads((project / "pen/run.json").read_text())
    assert run["digest"] != plainly["digest"]
    (record, *_) = run["generation"]
    assert record["settings"] == {"repetition_penalty": {"value": 1.9, "source": "--gen"}}
    assert "kept" in say("run", "swap.json", "--weights", model, "--out", "pen", "--gen", "repetition_penalty=1.9").err
    table = json.loads((project / "pen/layer=0/spread.json").read_text())
    assert all(len(row["emitted"]) == len(row["argmax"]) == 2 for row in table)
    assert "emitted" not in json.loads((project / "out/layer=0/spread.json").read_text())[0]


def test_explain_tells_the_settings_that_hold(say: Say, project: Path, model: Path) -> None:
    told = say("explain", "swap.json", "--weights", model).out
    assert told.rstrip().splitlines()[-1] == "generation: greedy N=2 (lock); eos held off"
    told = say("explain", "swap.json", "--weights", model, "--gen", "min_new_tokens=1").out
    assert told.rstrip().endswith("generation: greedy N=2 (lock); eos held off; min_new_tokens=1 (--gen)")
    rewritten = json.loads(json.dumps(DOCUMENT))
    rewritten["interventions"]["swap"] |= {"decode": 0}
    rewritten["interventions"]["swap"]["reads"]["logits"]["pos"] = -1
    rewritten["steps"]["score"]["saves"].pop()
    (project / "swap.json").write_text(json.dumps(rewritten))
    assert "generation" not in say("explain", "swap.json", "--weights", model).out
