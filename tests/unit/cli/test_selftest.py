"""Families without a row, and weights that are not what a row says: what explain, run and model say of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import strangers

from causalab_mini.checkpoint.resolve import resolve
from causalab_mini.checkpoint.verdicts import Finding, Proof, Verdict, remember
from causalab_mini.vocabulary.components import COMPONENTS


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def granite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return strangers.write_folder(tmp_path_factory.mktemp("stranger") / "granite", "granite", 16)


def at(project: Path, component: str, **site: object) -> None:
    path = project / "swap.json"
    document = json.loads(path.read_text())
    document["sites"]["mid"] = {"component": component, "layers": {"sweep": [0, 1], "as": "layer"}, **site}
    path.write_text(json.dumps(document))


def words(page: str) -> str:
    """A page with its columns one space apart."""
    return "\n".join(" ".join(line.split()) for line in page.splitlines())


def test_what_can_be_proved_of_a_stranger_runs(say: Callable, project: Path, granite: Path) -> None:
    told = say("explain", "swap.json", "--weights", granite)
    assert told.code == 0
    assert "the family 'granite' is not known: what its places hold is proved, or refused, when the weights" in told.err
    key = json.loads((project / "swap.json").read_text())["model"]["key"]
    assert f"`causalab-mini model {key} --weights {granite} --self-test` does it now" in told.err
    ran = say("run", "swap.json", "--out", "out", "--weights", granite)
    assert ran.code == 0
    assert (
        "the self-test proved all but attention_scores, attention_probs, attention_output, block_mid, mlp_input_norm"
        in ran.err
    )
    again = say("explain", "swap.json", "--weights", granite)
    assert "the self-test proved all but attention_scores, attention_probs, attention_output" in again.err


def test_what_cannot_be_proved_is_refused_when_it_is_known(say: Callable, project: Path, granite: Path) -> None:
    at(project, "attention_output")
    assert say("explain", "swap.json", "--weights", granite).code == 0
    for verb in (("run", "swap.json", "--out", "out"), ("explain", "swap.json")):
        told = say(*verb, "--weights", granite)
        assert told.code == 2
        assert "sites.mid.component" in told.err
        assert "could not prove it: no module was found that holds it" in told.err
    assert not (project / "out").exists()


def test_what_weights_speak_against_is_refused_of_a_known_family(say: Callable, project: Path, model: Path) -> None:
    remember(resolve(str(model)), Verdict("fp32", {"block_mid": Finding(Proof.REFUSED, "it is off by 1")}))
    assert say("explain", "swap.json", "--weights", model).code == 0
    at(project, "block_mid")
    told = say("explain", "swap.json", "--weights", model)
    assert told.code == 2
    key = json.loads((project / "swap.json").read_text())["model"]["key"]
    assert f"{key} (the weights in {model}) has no block_mid: it is off by 1" in told.err


def test_views_that_are_not_the_models(say: Callable, project: Path, model: Path) -> None:
    remember(resolve(str(model)), Verdict("fp32", {"views": Finding(Proof.REFUSED, "another head")}))
    path = project / "swap.json"
    document = json.loads(path.read_text())
    document["interventions"]["swap"]["reads"]["seen"] = {"site": "mid", "pos": -1, "input": "base", "view": "logits"}
    path.write_text(json.dumps(document))
    told = say("explain", "swap.json", "--weights", model)
    assert told.code == 2
    assert "interventions.swap.reads.seen.view" in told.err
    assert f"(the weights in {model}) has no views: another head" in told.err


def test_a_stranger_that_cannot_be_used(say: Callable, project: Path, granite: Path) -> None:
    remember(resolve(str(granite)), Verdict("fp32", {"ln_final": Finding(Proof.PROVED)}, "its rows depend on others"))
    told = say("explain", "swap.json", "--weights", granite)
    assert told.code == 2
    assert "the family 'granite' is not known, and it cannot be used: its rows depend on others" in told.err


def test_a_run_tests_once(say: Callable, project: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from causalab_mini.engine import selftest

    seen: list[object] = []
    examine = selftest.examine
    monkeypatch.setattr(selftest, "examine", lambda *args: seen.append(args) or examine(*args))
    assert say("run", "swap.json", "--out", "out", "--weights", model).code == 0
    assert say("run", "swap.json", "--out", "other", "--weights", model).code == 0
    assert len(seen) == 1


def test_a_cache_that_cannot_be_written_fails_no_run(say: Callable, project: Path, model: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("no directory")
    assert say("run", "swap.json", "--out", "out", "--weights", model).code == 0


def test_model_says_how_far_each_component_is_proved(say: Callable, model: Path, granite: Path) -> None:
    before = say("model", model, "--json").json
    assert before["self_test"] is None
    assert {component["verdict"] for component in before["components"]} == {"unproven", "refused"}
    tested = say("model", model, "--self-test", "--json").json
    assert tested["self_test"] == {"dtype": "fp32", "unusable": None}
    assert say("model", model, "--json").json == tested
    assert [component["name"] for component in tested["components"]] == list(COMPONENTS.names())
    by_name = {component["name"]: component for component in tested["components"]}
    assert by_name["attention_key"] == {
        "name": "attention_key",
        "layers": 3,
        "width": 8,
        "heads": 1,
        "writable": True,
        "usable": True,
        "verdict": "proved",
        "reason": None,
    }
    assert by_name["router_logits"]["reason"] == "its MLPs are no mixtures of experts"
    assert "attention_key 3 layers width 8 1 heads proved" in words(say("model", model).out)
    page = say("model", granite, "--self-test").out
    assert "a family without a row: only what the self-test proves can be used" in page
    assert "attention_output 3 layers width 16 unproven: no module was found" in words(page)
