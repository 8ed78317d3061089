"""Every refusal and failure of a verb names a place and a way out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

MODEL = "causalab-mini/weekdays-llama"


def problem(told) -> dict[str, object]:
    (only,) = told.json["problems"]
    return only


def changed(**model: object) -> None:
    document = json.loads(Path("swap.json").read_text())
    document["model"].update(model)
    Path("changed.json").write_text(json.dumps(document))


@pytest.mark.usefixtures("project")
def test_a_folder_without_a_config(say: Callable) -> None:
    Path("empty").mkdir()
    changed(key="./empty")
    told = say("validate", "changed.json", "--json"), say("explain", "changed.json", "--json")
    assert told[0].code == 0
    assert told[1].code == 1
    found = problem(told[1])
    assert found["path"] == "model.key"
    assert "has no config.json" in str(found["message"])
    assert "--weights" in str(found["hint"])


@pytest.mark.usefixtures("project")
def test_a_family_that_is_not_known(say: Callable) -> None:
    Path("odd").mkdir()
    from causalab_mini.checkpoint.resolve import BUNDLED_FOLDER

    for name in ("tokenizer.json", "tokenizer_config.json", "config.json"):
        Path("odd", name).write_text((BUNDLED_FOLDER / "weekdays-llama" / name).read_text())
    config = json.loads(Path("odd/config.json").read_text())
    Path("odd/config.json").write_text(json.dumps({**config, "model_type": "abacus"}))
    changed(key="./odd")
    told = say("explain", "changed.json", "--json")
    assert told.code == 2
    assert "llama" in str(problem(told)["hint"])


@pytest.mark.parametrize("out", ["", "  "])
@pytest.mark.usefixtures("project")
def test_an_empty_out_is_none(say: Callable, out: str) -> None:
    told = say("run", "swap.json", "--out", out)
    assert told.code == 2
    assert "run needs a directory" in told.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--batch-size", "0"], "--batch-size: "),
        (["--batch-size", "few"], "--batch-size: "),
        (["--engine", "steam"], "--engine: 'steam' is not one of"),
    ],
)
@pytest.mark.usefixtures("project")
def test_a_wrong_option_is_named_first(say: Callable, arguments: list[str], message: str) -> None:
    told = say("run", "swap.json", "--out", "o", *arguments)
    assert told.err.startswith(f"error: {message}")
    assert "invalid value" not in told.err


@pytest.mark.usefixtures("project")
def test_a_table_is_told_of_once(say: Callable) -> None:
    document = json.loads(Path("swap.json").read_text())
    for step in document["steps"].values():
        step["rows"] = dict.fromkeys(step["rows"], "days/trian")
    document["model"]["key"] = MODEL
    Path("changed.json").write_text(json.dumps(document))
    assert "trian" in str(problem(say("explain", "changed.json", "--json"))["message"])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"example_id": "a", "input": "x"}, {"example_id": "a", "input": "y"}], "duplicate example_ids"),
        ([{"input": "x"}, {"input": " "}], "an empty prompt in 'input'"),
    ],
)
@pytest.mark.usefixtures("project")
def test_data_refuses_what_run_refuses(say: Callable, rows: list[dict], message: str) -> None:
    Path("datasets/days/odd.json").write_text(json.dumps(rows))
    told = say("data", "days/odd")
    assert told.code == 2
    assert message in told.err
