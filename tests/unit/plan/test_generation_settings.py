"""Generation settings in a plan: every pair of layers with a real checkpoint, and how they are told."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest
from tests.building import generated, intervention, observing, read, rows, write_table

from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.checkpoint.resolve import resolve
from causalab_mini.plan.compile import compile_experiment
from causalab_mini.plan.generation import explain_generation, settings_record
from causalab_mini.plan.nodes import Decoding, Experiment
from causalab_mini.results.provenance import generation
from causalab_mini.spec.load import load

LAYERS = ("checkpoint", "model.generation", "interventions.one.generation", "--gen")
PENALTY = dict(zip(LAYERS, (1.1, 1.2, 1.3, 1.4), strict=True))


@pytest.fixture
def folder(tmp_path: Path, family_folder: Callable[[str, int], Path]) -> Path:
    """A checkpoint with a penalty, and with what is no setting, what changes nothing and what nobody knows."""
    copied = tmp_path / "checkpoint"
    shutil.copytree(family_folder("llama", 16), copied)
    path = copied / "generation_config.json"
    own = {"repetition_penalty": 1.1, "num_beams": 1, "transformers_version": "5", "own_key": [3]}
    path.write_text(json.dumps(json.loads(path.read_text()) | own))
    return copied


@pytest.fixture
def checkpoint(folder: Path) -> Checkpoint:
    return resolve(str(folder))


def compiled(checkpoint: Checkpoint, root: Path, stated: dict[str, dict], decode: object = 4) -> Experiment:
    """An experiment with settings of these layers; the checkpoint's take part where it is one of them."""
    body = intervention({"x": read("head", generated(index=0))}, metrics={"h": {"kind": "entropy", "of": "x"}})
    asked = observing({**body, "decode": decode, "generation": stated.get(LAYERS[2], {})})
    if LAYERS[1] in stated:
        asked["model"]["generation"] = stated[LAYERS[1]]
    elif LAYERS[0] in stated:
        asked["model"]["generation"] = "checkpoint"
    loaded = load(json.dumps(asked).encode(), "d.json").commanded(stated.get(LAYERS[3], {}))
    return compile_experiment(loaded, checkpoint, write_table(root, rows()))


def decoding(experiment: Experiment) -> Decoding:
    ((forward,),) = [observe.forwards for observe in experiment.points[0].plan.observes()]
    return forward.decoding


@pytest.mark.parametrize(("weak", "strong"), list(combinations(LAYERS, 2)))
def test_the_stronger_of_two_layers_decides(checkpoint: Checkpoint, tmp_path: Path, weak: str, strong: str) -> None:
    stated = {layer: {"repetition_penalty": PENALTY[layer]} for layer in (weak, strong)}
    own = copy.deepcopy(dict(checkpoint.generation_config))
    found = decoding(compiled(checkpoint, tmp_path, stated))
    (setting,) = [one for one in found.settings if one.acts]
    assert (setting.key, setting.value, setting.source) == ("repetition_penalty", PENALTY[strong], strong)
    assert found.processors == {"repetition_penalty": PENALTY[strong]}
    assert dict(checkpoint.generation_config) == own
    # Taken away in the stronger layer, nothing is left: the document's settings and the checkpoint's are no pair.
    nulled = {**stated, strong: {"repetition_penalty": None}}
    assert not decoding(compiled(checkpoint, tmp_path, nulled)).chosen
    # Something else in the stronger layer leaves the weaker one's, unless the checkpoint is not asked.
    beside = decoding(compiled(checkpoint, tmp_path, {**stated, strong: {"min_length": 3}})).processors
    lone = (weak, strong) == LAYERS[:2]
    assert beside == {"min_length": 3, **({} if lone else {"repetition_penalty": PENALTY[weak]})}


def test_what_is_ignored_is_named(checkpoint: Checkpoint, tmp_path: Path) -> None:
    experiment = compiled(checkpoint, tmp_path, {})
    said = "greedy N=4 (lock); eos held off; 2 checkpoint keys ignored: own_key, repetition_penalty"
    assert explain_generation(experiment) == f"generation: {said}"
    (record,) = generation(experiment)
    assert record["text"] == said
    assert record["selection"] == {"value": "argmax of the raw logits", "source": "language"}
    assert record["generation_config"] == {
        "value": "not used",
        "source": "language",
        "ignored": ["own_key", "repetition_penalty"],
    }
    assert record["settings"] == {}


def test_what_holds_is_told_with_its_source(checkpoint: Checkpoint, tmp_path: Path) -> None:
    stated = {"checkpoint": {}, LAYERS[2]: {"suppress_tokens": [7]}, "--gen": {"min_length": 2}}
    drawn = {"steps": 4, "eos": "stop", "sample": {"seed": 3, "top_k": 9}}
    experiment = compiled(checkpoint, tmp_path, stated, drawn)
    assert explain_generation(experiment) == (
        "generation: sampled N=4 temperature=1.0 top_k=9 seed=3 (lock); a row ends at its first eos; "
        "min_length=2 (--gen); repetition_penalty=1.1 (checkpoint); suppress_tokens=[7] (interventions.one.generation)"
    )
    record = settings_record(decoding(experiment))
    assert record["eos"] == {"value": "stop", "source": "document"}
    assert record["generation_config"] == {"value": "used", "source": "document", "ignored": []}
    assert record["selection"] == {
        "value": "a sample of the processed logits",
        "source": "document",
        "temperature": 1.0,
        "top_k": 9,
        "top_p": None,
        "min_p": None,
        "seed": 3,
    }
    settings = record["settings"]
    assert isinstance(settings, dict)
    assert settings["repetition_penalty"] == {"value": 1.1, "source": "checkpoint"}
    assert settings["min_length"] == {"value": 2, "source": "--gen"}


def test_points_with_other_settings_are_told_apart(checkpoint: Checkpoint, tmp_path: Path) -> None:
    experiment = compiled(checkpoint, tmp_path, {LAYERS[2]: {"min_length": {"sweep": [2, 3]}}})
    assert [(record["points"], record["text"]) for record in generation(experiment)] == [
        ([f"min_length={n}"], f"greedy N=4 (lock); eos held off; min_length={n} (interventions.one.generation); "
         "2 checkpoint keys ignored: own_key, repetition_penalty")
        for n in (2, 3)
    ]  # fmt: skip


def test_settings_of_the_checkpoint_that_fit_nothing_are_refused(folder: Path, tmp_path: Path) -> None:
    from causalab_mini.errors import PlanRefusal

    path = folder / "generation_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"suppress_tokens": "all"}))
    with pytest.raises(PlanRefusal) as caught:
        compiled(resolve(str(folder)), tmp_path, {"checkpoint": {}})
    (problem,) = caught.value.problems
    assert problem.path == "model.generation"
    assert "the checkpoint's 'suppress_tokens': a list of token ids is needed" in problem.message
    assert compiled(resolve(str(folder)), tmp_path, {})  # Neutral, it has no say.
