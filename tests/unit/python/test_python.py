"""The verbs from Python: the same answers and refusals as the command line's, and nothing heavy before its time."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

import causalab_mini as cm
from causalab_mini.cli import execute
from causalab_mini.cli.app import VERBS

ROOT = Path(__file__).parents[3]
PATH = ROOT / "documents" / "v2" / "patching.json"
TEXT = PATH.read_text()
DOCUMENT: dict[str, Any] = json.loads(TEXT)
DATA = ROOT / "datasets"
HEAVY = ("torch", "transformers", "nnsight", "datasets")
MORE = (*HEAVY, "numpy", "pandas", "pydantic", "typer", "rich", "jinja2", "matplotlib", "safetensors")


@pytest.mark.parametrize("given", [PATH, str(PATH), DOCUMENT, TEXT, TEXT.encode(), f"\n {TEXT}"], ids=type)
def test_a_document_is_a_path_a_dict_or_its_text(given: cm.AnyDocument) -> None:
    loaded = cm.validate(given)
    assert loaded.digest == cm.validate(PATH).digest
    assert [point.label for point in loaded.points] == [""]


def test_explain_says_what_the_command_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["explain", str(PATH), "--data-root", str(DATA), "--rows", "--schedule"]) == 0
    said = capsys.readouterr().out
    explained = cm.explain(DOCUMENT, rows=True, schedule=True, data_root=DATA)
    assert f"{explained}\n" == said
    assert explained.plan["name"] == "<root>"


def test_a_run_leaves_what_the_command_leaves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = cm.run(PATH, tmp_path / "python", data_root=DATA, engine="hooks")
    arguments = ["run", str(PATH), "--data-root", str(DATA), "--engine", "hooks", "--out", str(tmp_path / "command")]
    assert execute(arguments) == 0
    names = {path.relative_to(tmp_path / "command") for path in (tmp_path / "command").rglob("*") if path.is_file()}
    assert names == {
        path.relative_to(tmp_path / "python") for path in (tmp_path / "python").rglob("*.*") if path.is_file()
    } | {Path(".run/lock")}
    for name in names - {Path("run.json"), Path(".run/lock")}:
        if ".run" not in name.parts:
            assert (tmp_path / "command" / name).read_bytes() == (tmp_path / "python" / name).read_bytes(), name
    assert results.table("flipped")["value"].tolist() == [1.0] * 4
    assert cm.load(tmp_path / "command").table().equals(results.table())
    capsys.readouterr()


def test_without_a_directory_the_files_go_with_the_results() -> None:
    results = cm.run(DOCUMENT, data_root=DATA, engine="hooks")
    folder = results.directory
    assert (folder / "flipped.json").is_file()
    del results
    assert not folder.exists()


def test_a_directory_that_holds_points_is_finished(tmp_path: Path) -> None:
    cm.run(PATH, tmp_path, data_root=DATA, engine="hooks")
    (tmp_path / "run.json").unlink()
    with pytest.raises(cm.Refusal, match="no run has finished"):
        cm.load(tmp_path)
    results = cm.run(PATH, tmp_path, data_root=DATA, engine="hooks")
    assert results.run["points"] == {"run": 0, "kept": 1}


def test_what_a_run_warns_of_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    from causalab_mini.cli import session

    perform = session.perform

    def odd(*arguments: Any) -> session.Done:
        return replace(perform(*arguments), warnings=("something odd",))

    monkeypatch.setattr(session, "perform", odd)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cm.run(DOCUMENT, data_root=DATA, engine="hooks")
    assert [(str(one.message), one.filename) for one in caught] == [("something odd", __file__)]


def test_a_quick_try_is_partial_and_says_so(tmp_path: Path) -> None:
    layers = {"sites.late.layers": {"sweep": [0, 4], "as": "layer"}}
    results = cm.run(PATH, tmp_path, data_root=DATA, engine="hooks", sets=layers, limit=2, points=["layer=4"])
    assert results.points == ("layer=4",)
    assert results.summary()["n_rows"].tolist() == [2, 2, 2]
    assert results.run["partial"] == {"rows": 2, "points": {"complete": 1, "all": 2}}
    explained = str(cm.explain(PATH, sets=layers, data_root=DATA))
    assert "layer=0: Plan" in explained
    assert "layer=4: Plan" in explained


def test_a_write_that_changes_nothing_fails_when_strict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    idle: dict[str, Any] = {"data_root": DATA, "engine": "hooks", "sets": {"roles.counterfactual.field": "input"}}
    sentence = "write 'patch' of 'patched' changed nothing on 4 of 4 rows"
    with pytest.warns(UserWarning, match=sentence):
        cm.run(PATH, tmp_path / "out", **idle)
    with pytest.raises(cm.RunFailure, match=sentence):
        cm.run(PATH, tmp_path / "out", strict=True, **idle)
    assert cm.load(tmp_path / "out").warnings == (sentence,)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    with pytest.raises(cm.RunFailure, match=sentence):
        cm.run(PATH, strict=True, **idle)
    assert list((tmp_path / "temporary").iterdir()) == []
    cm.run(PATH, data_root=DATA, engine="hooks", strict=True)


def test_what_would_run_is_told_and_leaves_no_trace(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"data_root": DATA, "engine": "hooks", "sets": {"sites.late.layers": {"sweep": [0, 4]}}}
    found = cm.dry_run(PATH, tmp_path / "out", points=["layers=4"], **asked)
    assert [(one.point, one.runs) for one in found] == [("layers=0", False), ("layers=4", True)]
    assert not (tmp_path / "out").exists()
    cm.run(PATH, tmp_path / "out", **asked)
    assert not any(one.runs for one in cm.dry_run(PATH, tmp_path / "out", **asked))


def test_checking_and_comparing_say_what_the_commands_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = cm.check(PATH, data_root=DATA, engine="hooks", limit=2)
    assert found.holds
    assert execute(["check", str(PATH), "--data-root", str(DATA), "--engine", "hooks", "--limit", "2", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [one["values"] for one in said["comparisons"]] == [one.values for one in found.comparisons]
    assert [list(one.at_site) for one in found.written] == [[row["at_site"] for row in said["writes"][0]["rows"]]]
    all_rows = cm.run(PATH, tmp_path / "all", data_root=DATA, engine="hooks")
    cm.run(PATH, tmp_path / "two", data_root=DATA, engine="hooks", limit=2)
    compared = cm.compare(all_rows, tmp_path / "two")
    assert not compared.same
    assert {(pair.n, pair.only_first, pair.only_second) for pair in compared.pairs} == {(2, 2, 0)}
    assert cm.compare(tmp_path / "all", tmp_path / "all").same


@pytest.mark.parametrize("verb", [verb for verb, _ in VERBS if verb.__name__ in cm.__all__])
def test_every_option_of_a_verb_is_a_keyword(verb: Callable[..., None]) -> None:
    """But for what only a terminal has; `--dry-run` is a function of its own."""
    options = set(signature(verb).parameters) - {"context", "as_json", "debug", "display", "quiet", "dry_run"}
    assert options <= set(signature(getattr(cm, verb.__name__)).parameters)
    assert set(signature(cm.dry_run).parameters) == set(signature(cm.run).parameters) - {"strict"}


def test_a_check_looks_at_as_many_rows_as_the_verb() -> None:
    verb = next(verb for verb, _ in VERBS if verb.__name__ == "check")
    assert signature(cm.check).parameters["limit"].default == signature(verb).parameters["limit"].default


def test_refusals_have_their_problems() -> None:
    broken = {**DOCUMENT, "sites": {"late": {"component": "lm_hed"}}, "steps": {}}
    with pytest.raises(cm.Refusal) as refused:
        cm.validate(broken)
    paths = {problem.path for problem in refused.value.problems}
    assert "sites.late.component" in paths
    assert "steps" in paths


@pytest.mark.parametrize(
    ("document", "path", "message"),
    [
        ({**DOCUMENT, "sites": {"late": {"layers": {4}}}}, "sites.late.layers", "a set is nothing JSON has"),
        ({**DOCUMENT, "sites": {"late": {"layers": [b"4"]}}}, "sites.late.layers[0]", "a bytes is nothing JSON has"),
        ({**DOCUMENT, "sites": {4: {}}}, "sites", "the key 4 is no text"),
        ({**DOCUMENT, "decode": float("nan")}, "decode", "nan is no number of JSON"),
        (7, "", "a document is a dict, a path or JSON text, and a int was given"),
        ("nowhere.json", "", "there is no document nowhere.json"),
    ],
)
def test_what_is_no_document_is_refused(document: Any, path: str, message: str) -> None:
    with pytest.raises(cm.Refusal) as refused:
        cm.validate(document)
    assert [(problem.path, problem.message) for problem in refused.value.problems] == [(path, message)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"engine": "hook"}, "engine: there is no 'hook'"),
        ({"schedule": "quick"}, "schedule: there is no 'quick'"),
        ({"device_map": "gpu"}, "device_map: there is no 'gpu'"),
        ({"batch_size": 0}, "batch_size is at least 1, and 0 was given"),
        ({"batch_size": True}, "batch_size is at least 1, and True was given"),
        ({"limit": 0}, "limit is at least 1, and 0 was given"),
        ({"points": "layer=1"}, "this document has no sweep"),
        ({"sets": {"sites.late.layrs": 2}}, "layrs"),
        ({"sets": {"sites.late.layers": {2}}}, "a set is nothing JSON has"),
        ({"gen": {"temperatur": 2}}, "'temperatur' is not a generation setting"),
        ({"gen": {"temperature": {1}}}, "a set is nothing JSON has"),
        ({"gen": "temperature=1"}, "gen is a dict of settings, and a str was given"),
        ({"sets": [("sites.late.layers", 2)]}, "sets is a dict of settings, and a list was given"),
    ],
)
def test_settings_that_are_none_are_refused_before_anything_runs(
    settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(cm.Refusal, match=message):
        cm.run(DOCUMENT, tmp_path / "out", data_root=DATA, **settings)
    assert not (tmp_path / "out").exists()


def test_a_run_that_fails_leaves_no_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(cm.RunFailure):
        cm.run({**DOCUMENT, "model": {"key": "no/such-model", "dtype": "fp32"}}, data_root=DATA)
    assert list(tmp_path.iterdir()) == []


def fresh(script: str, *arguments: str) -> list[str]:
    """What is loaded of MORE after a script in an interpreter of its own."""
    end = f"\nimport json, sys; print(json.dumps([name for name in {MORE!r} if name in sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script + end, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_the_import_is_light() -> None:
    assert fresh("import causalab_mini as cm; cm.run, cm.Results, cm.Refusal") == []


def test_explaining_and_reading_import_no_torch(tmp_path: Path) -> None:
    document = str(ROOT / "documents" / "v2" / "generate_steer.json")
    cm.run(document, tmp_path / "out", data_root=DATA, engine="hooks")
    loaded = fresh("import causalab_mini as cm; cm.explain('documents/v2/patching.json', rows=True, schedule=True)")
    assert not set(loaded) & {*HEAVY, "pandas"}
    script = (
        "import sys, causalab_mini as cm; results = cm.load(sys.argv[1]); results.summary(); results.table();"
        "results.tensor('steered.generated', point={'step': 1})"
    )
    assert not set(fresh(script, str(tmp_path / "out"))) & set(HEAVY)


def test_the_verb_keeps_its_name_beside_the_room() -> None:
    fresh("import causalab_mini as cm, causalab_mini.run.runner; assert cm.run.__module__ == 'causalab_mini.python'")
