"""The verbs that need no weights."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from causalab_mini.checkpoint.resolve import resolve
from causalab_mini.cli.words import sections
from causalab_mini.vocabulary.components import COMPONENTS


def rewrite(path: Path, change: Callable[[dict], None]) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document, indent=1))


def test_validate_says_what_there_is(say: Callable, project: Path) -> None:
    told = say("validate", "swap.json")
    assert told.code == 0
    assert told.out.startswith("swap.json: nothing wrong\n  2 points over layer\n  digest ")
    answer = say("validate", project / "swap.json", "--json").json
    assert answer["ok"] is True
    assert [point["label"] for point in answer["points"]] == ["layer=0", "layer=1"]
    assert len({point["digest"] for point in answer["points"]}) == 2


def test_validate_tells_every_problem_with_its_line(say: Callable, project: Path) -> None:
    def spoil(document: dict) -> None:
        document["sites"]["head"]["component"] = "lm_heat"
        document["interventions"]["swap"]["reads"]["v"]["pos"] = True

    rewrite(project / "swap.json", spoil)
    found = say("validate", "swap.json", "--json").json["problems"]
    assert {problem["path"] for problem in found} >= {"sites.head.component", "interventions.swap.reads.v.pos"}
    lines = (project / "swap.json").read_text().splitlines()
    for problem in found:
        assert problem["path"].split(".")[-1] in lines[problem["line"] - 1]
    told = say("validate", "swap.json")
    assert told.code == 2
    assert told.err.count("error: ") == len(found)
    assert "   (swap.json:" in told.err


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": 1, "a": 2}', '{"a": NaN}', "\xff"])
def test_validate_refuses_what_is_no_object(say: Callable, project: Path, text: str) -> None:
    (project / "bad.json").write_bytes(text.encode("latin-1"))
    assert say("validate", "bad.json").code == 2
    assert say("--json", "validate", "bad.json").json["problems"]


def test_explain_prints_the_plan(say: Callable, project: Path, model: Path) -> None:
    told = say("explain", "swap.json", "--weights", model)
    assert told.code == 0
    assert told.out.startswith("<root>: Plan\n  layer=0: Plan\n    score: Observe  metrics=['spread/entropy', ")
    assert told.err == ""
    whole = say("explain", "swap.json", "--weights", model, "--rows", "--schedule")
    assert whole.out.startswith(told.out)
    answer = say("explain", "swap.json", "--weights", model, "--json").json
    assert answer["text"] == told.out.rstrip("\n")
    (observe,) = answer["plan"]["children"][0]["children"]
    assert [forward["model"] for forward in observe["forwards"]] == ["original", "patched"]
    assert observe["forwards"][1]["writes"][0]["mechanism"] == "swap(v)"
    assert {path.name for path in project.iterdir()} == {"datasets", "swap.json"}


def test_a_problem_of_the_plan_has_a_line(say: Callable, project: Path, model: Path) -> None:
    rewrite(project / "swap.json", lambda document: document["sites"]["mid"].update(layers=99))
    (problem,) = say("explain", "swap.json", "--weights", model, "--json").json["problems"]
    assert problem["path"] == "sites.mid.layers"
    assert "99" in (project / "swap.json").read_text().splitlines()[problem["line"] - 1]


@pytest.mark.usefixtures("project")
def test_a_model_that_is_not_there_is_a_failure(say: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    told = say("explain", "swap.json")
    assert told.code == 1
    assert "some/model" in told.err


@pytest.mark.usefixtures("project")
def test_data_says_exactly_this(say: Callable) -> None:
    sample = (
        '{"input": "If today is Monday, then tomorrow is", "counterfactual_inputs": ["The capital of"], "answer": " x"}'
    )
    assert say("data", "days/train").out == (
        "days/train: 2 rows\n"
        "  columns: answer, counterfactual_inputs, input\n"
        "  empty:   answer (1 rows)\n"
        "  splits:  none\n"
        f"  sample:  {sample}\n"
    )


def answering(project: Path) -> None:
    cells = (" Monday", "is y", "", None, 3, " Monday", [1])
    rows = [{"input": "a", "answer": cell, "other": {"end": "a"}} for cell in cells]
    (project / "datasets/days/asked.json").write_text(json.dumps(rows))


def test_data_shows_how_answers_tokenize(say: Callable, project: Path) -> None:
    answering(project)
    key = "causalab-mini/weekdays-llama"
    found = resolve(key)
    monday, x, y = (found.tokenizer.own(text).ids for text in (" Monday", " is", " y"))
    assert (len(monday), len(x), len(y)) == (1, 1, 1)
    told = say("data", "days/asked", "--model", key).out.splitlines()
    assert told[told.index(f"  answers: {key}, space_prefixed") :] == [
        f"  answers: {key}, space_prefixed",
        "    answer: 2 of 7 rows are one token, 2 empty, 3 would be refused",
        f"      refused: the answer ' is y' is 2 tokens: ' is' ({x[0]}), ' y' ({y[0]}); it must be one  row 1",
        "      refused: the answer 3 is not text  row 4",
        "      refused: [1] is no text and no integer  row 6",
        f"      ' Monday': ' Monday' ({monday[0]})  rows 0 and 5",
    ]
    answer = say("data", "days/asked", "--model", key, "--json").json
    assert answer["refused"] == {"answer": [1, 4, 6]}
    assert [found["row"] for found in answer["answers"]] == list(range(7))
    first, second, third = answer["answers"][:3]
    assert (first["token"], first["tokens"]) == (monday[0], [{"id": monday[0], "text": " Monday"}])
    assert (second["token"], [token["id"] for token in second["tokens"]]) == (None, [*x, *y])
    assert (third["value"], third["tokens"], third["problem"]) == (None, [], None)


def test_data_looks_at_the_columns_it_is_told(say: Callable, project: Path, model: Path) -> None:
    answering(project)
    arguments = ("data", "days/asked", "--model", model, "--column", "other.end", "--column", "input")
    answer = say(*arguments, "--token-form", "bare", "--json").json
    assert {found["column"] for found in answer["answers"]} == {"other.end", "input"}
    assert answer["refused"] == {}
    numbers = say("data", "days/asked", "--model", model, "--token-form", "id", "--json").json
    assert numbers["answers"][4]["token"] == 3
    wrong = say("data", "days/asked", "--model", model, "--column", "answr")
    assert (wrong.code, "did you mean 'answer'?" in wrong.err) == (2, True)
    (project / "datasets/days/none.json").write_text('[{"input": "a"}]')
    none = say("data", "days/none", "--model", model)
    assert (none.code, "no column with 'answer' in its name" in none.err) == (2, True)


def test_data_reads_every_format(say: Callable, project: Path) -> None:
    (project / "datasets/days/lines.jsonl").write_text('{"a": 1}\n{"a"\n')
    (project / "datasets/days/commas.csv").write_text("a,b\n1, x\n")
    (problem,) = say("data", "days/lines", "--json").json["problems"]
    assert problem["message"].startswith("'days/lines': line 2 is not JSON")
    assert say("data", "days/commas", "--json").json["sample"] == {"a": "1", "b": " x"}


@pytest.mark.parametrize("ref", ["days/trian", "days", "../days/train", "days/train#test", "/etc/passwd"])
@pytest.mark.usefixtures("project")
def test_data_refuses(say: Callable, ref: str) -> None:
    told = say("data", ref)
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith("error: ")


def test_schema_is_json_either_way(say: Callable) -> None:
    assert json.loads(say("schema").out) == say("schema", "--json").json


def test_vocab_lists_every_word(say: Callable) -> None:
    told = say("vocab").out
    answer = say("vocab", "--json").json
    for section in sections():
        assert section.title in told
        assert [word["name"] for word in answer[section.key]] == [word.name for word in section.words]
    assert "fit" in [word["name"] for word in answer["not_implemented"]]


def test_tokens_counts_from_after_the_prefix(say: Callable, model: Path) -> None:
    answer = say("tokens", model, "The capital", "of", "--json").json
    first, second = answer["texts"]
    assert [token["index"] for token in first["tokens"]] == [None, *range(first["length"])]
    assert "".join(token["text"] for token in first["tokens"][1:]) == "The capital"
    assert (second["text"], second["prefix"]) == ("of", 1)
    assert "prefix" in say("tokens", model, "The capital").out


def test_model_says_what_resolves(say: Callable, model: Path) -> None:
    answer = say("model", model, "--json").json
    assert answer["family"] == "llama"
    assert [component["name"] for component in answer["components"]] == list(COMPONENTS.names())
    widths = {component["name"]: component["width"] for component in answer["components"]}
    assert (widths["block_output"], widths["lm_head"], widths["input_ids"]) == (16, 320, 1)
    assert "block_output" in say("model", model).out
