"""Quick tries: --set, --limit, --points, --quiet, --display, --strict."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from causalab_mini.cli import progress
from causalab_mini.cli.progress import Display, display_of


@pytest.fixture
def go(say: Callable, project: Path, model: Path) -> Callable:
    return lambda *more: say("run", "swap.json", "--out", "out", "--weights", model, "--engine", "hooks", *more)


def record() -> dict:
    return json.loads(Path("out/run.json").read_bytes())


def test_what_is_set_wins_and_is_recorded(go: Callable, say: Callable, model: Path) -> None:
    sets = ("--set", "sites.mid.layers=1", "--set", "interventions.swap.decode=3", "--set", "roles.other.field=input")
    told = go(*sets, "--json")
    assert told.code == 0
    assert {line["point"] for line in told.json["summary"]} == {""}
    assert record()["overrides"] == {
        "sites.mid.layers": 1,
        "interventions.swap.decode": 3,
        "roles.other.field": "input",
    }
    written = json.loads(Path("out/document.json").read_bytes())
    assert written["sites"]["mid"]["layers"] == 1
    assert written["interventions"]["swap"]["decode"] == 3
    assert say("validate", "out/document.json", "--json").json["digest"] == told.json["digest"] == record()["digest"]
    same = say("run", "out/document.json", "--out", "again", "--weights", model, "--engine", "hooks", "--json")
    assert same.json["summary"] == told.json["summary"]
    assert go(*sets, "--json").json["points"] == {"run": 0, "kept": 1}
    assert "holds another experiment" in go().err


def test_generation_settings_of_the_command_line_win_over_what_is_set(say: Callable, model: Path, go: Callable) -> None:
    told = say("explain", "swap.json", "--weights", model, "--set", "interventions.swap.decode=4", "--json")
    forwards = told.json["plan"]["children"][0]["children"][0]["forwards"]
    assert {forward["decode"] for forward in forwards} == {4}


@pytest.mark.parametrize(
    ("pair", "message", "hint"),
    [
        ("interventions.swap.decode", "--set takes KEY=VALUE", ""),
        ("interventions.swop.decode=3", "there is no 'swop'", "did you mean 'swap'?"),
        ("interventions.swap.decod=3", "there is no key 'decod' here", "did you mean 'decode'?"),
        ("interventions.swap.decode=many", "a number of steps or an object is needed", ""),
        ("interventions.swap.writes.push.params.scale=2", "'swap' takes no parameters", ""),
        ("model.dtype=fp8", "'fp32', 'bf16' or 'fp16' is needed", ""),
    ],
)
@pytest.mark.usefixtures("project")
def test_what_does_not_fit_is_refused(go: Callable, pair: str, message: str, hint: str) -> None:
    told = go("--set", pair, "--json")
    assert told.code == 2
    (problem,) = told.json["problems"]
    assert message in problem["message"]
    assert hint in str(problem["hint"])
    assert not Path("out").exists()
    if "=" in pair:
        assert problem["line"] is not None


def test_a_path_set_twice_is_refused(go: Callable) -> None:
    told = go("--set", "interventions.swap.decode=3", "--set", "interventions.swap.decode=4")
    assert "says 'interventions.swap.decode' twice" in told.err


def test_a_few_rows_are_partial(go: Callable) -> None:
    told = go("--limit", "1")
    assert told.code == 0
    assert "partial: the first 1 rows of every table" in told.err
    assert len(json.loads(Path("out/layer=0/spread.json").read_bytes())) == 1
    assert record()["partial"] == {"rows": 1, "points": {"complete": 2, "all": 2}}
    again = go("--limit", "1", "--json").json
    assert (again["points"], again["partial"]["rows"]) == ({"run": 0, "kept": 2}, 1)
    assert "holds another experiment" in go("--limit", "2").err
    assert "holds another experiment" in go().err


def test_quiet_leaves_the_paths(go: Callable) -> None:
    told = go("--quiet")
    assert len(told.out.splitlines()) == 10
    assert told.err == ""
    assert go("--quiet", "--limit", "1", "--force").err == ""


def test_displays(go: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = go("--display", "none").err
    assert "done" not in shown
    assert shown.startswith("point")
    assert go("--force", "--display", "plain").err.count("done") == 2
    assert go("--force", "--display", "rich").code == 0
    assert go("--display", "loud").code == 2
    assert display_of(None) is Display.PLAIN
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    assert display_of(None) is Display.RICH
    assert display_of(Display.PLAIN) is Display.PLAIN
    assert display_of(Display.RICH, quiet=True) is Display.NONE


def test_a_write_that_changes_nothing_is_told_and_fails_when_strict(go: Callable) -> None:
    idle = ("--set", "roles.other.field=input")
    warned = go(*idle)
    assert warned.code == 0
    sentence = "write 'push' of 'patched' changed nothing on 2 of 2 rows, at 2 of 2 points, first layer=0"
    assert f"warning: {sentence}" in warned.err
    assert record()["warnings"] == [sentence]
    strict = go(*idle, "--strict")
    assert strict.code == 1
    assert f"error: {sentence}" in strict.err
    assert strict.err.count(sentence) == 1
    found = go(*idle, "--strict", "--json")
    assert (found.code, found.json["ok"], found.json["idle_writes"]) == (1, False, [sentence])
    assert go(*idle, "--json").json["ok"] is True
    assert go("--force", "--strict").code == 0


def test_a_metric_without_any_value_says_so(go: Callable, project: Path) -> None:
    document = json.loads((project / "swap.json").read_text())
    swap = document["interventions"]["swap"]
    swap["metrics"]["right"] = {"kind": "token_prob", "of": "logits", "token": "answer"}
    (project / "swap.json").write_text(json.dumps(document))
    rows = json.loads((project / "datasets/days/train.json").read_text())
    (project / "datasets/days/train.json").write_text(json.dumps([{**row, "answer": ""} for row in rows]))
    told = go()
    assert told.code == 0
    sentence = "'right' has a value on none of 2 rows: empty_cell on 2, at 2 of 2 points, first layer=0"
    assert f"warning: {sentence}" in told.err
    assert sentence in record()["warnings"]
    assert ["layer=0", "right", "-", "-", "-", "0", "/", "2"] in [line.split() for line in told.err.splitlines()]
    assert go("--json").json["unscored"] == [sentence]
