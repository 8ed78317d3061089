"""What run, check and compare answer is what their schemas say, whatever comes of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from causalab_mini.cli.answer_schema import ANSWERS

HOOKS = ("--engine", "hooks")
IDLE = ("--set", "roles.other.field=input", "--out", "idle")
CALLS = [
    (0, "run", "swap.json", "--out", "out", *HOOKS),
    (0, "run", "swap.json", "--out", "out", *HOOKS, "--quiet"),
    (0, "run", "swap.json", "--out", "part", *HOOKS, "--limit", "1", "--points", "layer=1", "--display", "rich"),
    (0, "run", "swap.json", *IDLE, *HOOKS),
    (1, "run", "swap.json", *IDLE, *HOOKS, "--strict"),
    (0, "run", "swap.json", "--out", "out", *HOOKS, "--dry-run"),
    (0, "run", "--help"),
    (2, "run", "swap.json", *HOOKS),
    (2, "run", "swap.json", "--out", "out", "--limit", "0"),
    (2, "run", "nowhere.json", "--out", "out"),
    (1, "run", "swap.json", "--out", "new", "--device-map", "cuda"),
    (0, "check", "swap.json"),
    (0, "check", "swap.json", "--set", "roles.other.field=input", "--limit", "1"),
    (2, "check", "swap.json", "--points", "layer=7"),
    (0, "compare", "out", "out"),
    (0, "compare", "out", "part"),
    (0, "compare", "idle", "out"),
    (2, "compare", "out", "nowhere"),
    (2, "compare", "out"),
]


@pytest.mark.usefixtures("project")
def test_answers_are_what_their_schemas_say(say: Callable, model: Path) -> None:
    for code, verb, *arguments in CALLS:
        weights = ("--weights", model) if verb != "compare" else ()
        told = say(verb, *arguments, *weights, "--json")
        assert told.code == code, told.err
        ANSWERS[verb].validate_json(told.out, strict=True)


def test_what_is_no_answer_does_not_fit() -> None:
    for answer in ('{"ok": false}', '{"ok": false, "problems": [], "more": 1}', '{"ok": true, "problems": []}', "[]"):
        for verb in ANSWERS.values():
            with pytest.raises(ValidationError):
                verb.validate_json(answer, strict=True)


def test_schemas_are_printed(say: Callable) -> None:
    for verb in ANSWERS:
        printed = say("schema", "--of", verb, "--json").json
        assert printed["title"] == f"What {verb} --json answers"
        assert {"$ref": "#/$defs/Refused"} in printed["anyOf"]
