import hashlib
import json

import pytest
from tests.unit.spec.build import GONE, changed, document, loaded


def digest(*edits: tuple[str, object]) -> str:
    return loaded(changed(*edits)).points[0].digest


def test_the_digest_by_its_definition():
    """Defaults filled in, no header, keys sorted, no spaces."""
    pos = {
        "all": None,
        "frame": "prompt",
        "index": -1,
        "last": None,
        "scope": None,
        "span": None,
        "token": "output",
    }
    layer = {"component": "block_output", "layers": [0], "heads": None, "units": None}
    whole = {"layers": None, "heads": None, "units": None}
    filled = {
        "format": "causalab-mini/1",
        "model": {
            "key": "causalab-mini/weekdays-llama",
            "revision": "main",
            "dtype": "fp32",
            "attn_implementation": None,
        },
        "roles": {"base": {"field": "input"}, "counterfactual": {"field": "counterfactual_inputs[0]"}},
        "sites": {
            "early": layer,
            "late": {**layer, "layers": [3]},
            "head": {"component": "lm_head", **whole},
            "ids": {"component": "input_ids", **whole},
        },
        "featurizers": {},
        "interventions": {
            "swap": {
                "reads": {
                    "v_cf": {
                        "site": "early",
                        "pos": pos,
                        "model": "original",
                        "input": "counterfactual",
                        "featurizer": "identity",
                        "view": "raw",
                    },
                    "logits": {
                        "site": "head",
                        "pos": {**pos, "frame": "generated", "index": 0},
                        "model": "patched",
                        "input": "base",
                        "featurizer": "identity",
                        "view": "raw",
                    },
                },
                "writes": {
                    "patch": {
                        "site": "early",
                        "pos": pos,
                        "mechanism": "add_scaled",
                        "operand": "v_cf",
                        "featurizer": "identity",
                        "features": None,
                        "params": {"scale": 1.0},
                        "missing": "refuse",
                        "reach": None,
                    }
                },
                "models": {"patched": {"input": "base", "writes": ["patch"]}},
                "metrics": {
                    "p": {"kind": "token_prob", "of": "logits", "token": "cf_answer", "token_form": "space_prefixed"}
                },
                "decode": {"steps": 3, "eos": "hold", "force": None},
            }
        },
        "steps": {
            "score": {
                "kind": "observe",
                "rows": {"base": "weekdays/train", "counterfactual": "weekdays/train"},
                "interventions": "swap",
                "outputs": {"m": {"read": "v_cf", "reduce": "none", "k": None}},
                "saves": [
                    {"value": "p", "file_path": "p.json"},
                    {"value": "patched.generated", "file_path": "generated.safetensors"},
                ],
            }
        },
    }
    text = json.dumps(filled, sort_keys=True, separators=(",", ":"))
    given = digest(("interventions.swap.writes.patch.mechanism", "add_scaled"), ("steps.score.outputs.m", "v_cf"))
    assert given == hashlib.sha256(text.encode()).hexdigest()


SAME = [
    [("interventions.swap.reads.v_cf.pos", {"index": -1})],
    [("interventions.swap.reads.v_cf.pos", {"index": -1, "frame": "prompt"})],
    [("sites.early.layers", [0])],
    [("header", {"description": "why"}), ("$schema", "x")],
    [("format", "causalab-mini/1"), ("model.revision", "main")],
    [("interventions.swap.reads.v_cf.model", "original")],
    [("interventions.swap.writes.patch.params", {})],
    [("interventions.swap.metrics.p.token_form", "space_prefixed")],
    [("steps.score.interventions", GONE)],
    [("steps.score.interventions", GONE), ("steps.score.intervention", "swap")],
    [("steps.score.outputs", {})],
    [("interventions.swap.decode", {"steps": 3})],
    [("interventions.swap.decode", {"steps": 3, "eos": "hold"})],
]


@pytest.mark.parametrize("edits", SAME, ids=range(len(SAME)))
def test_spellings_of_one_experiment_have_one_digest(edits: list[tuple[str, object]]):
    assert digest(*edits) == digest()


def test_numbers_are_normal():
    scaled = ("interventions.swap.writes.patch.mechanism", "add_scaled")
    params = "interventions.swap.writes.patch.params"
    assert digest(scaled, (params, {"scale": 4})) == digest(scaled, (params, {"scale": 4.0}))
    assert digest(scaled, (params, {"scale": 1})) == digest(scaled)
    operand = "interventions.swap.writes.patch.operand"
    assert digest((operand, 0)) == digest((operand, 0.0))
    output = "steps.score.outputs.m"
    assert digest((output, "v_cf")) == digest((output, {"read": "v_cf", "reduce": "none"}))


DIFFERENT = [
    [("interventions.swap.reads.v_cf.pos", -2)],
    [("sites.late.layers", 2)],
    [("sites.late.layers", [2, 3])],
    [("sites.late.layers", [3, 2])],
    [("sites.late.layers", "all")],
    [("model.dtype", "bf16")],
    [("interventions.swap.decode", 4)],
    [("interventions.swap.writes.patch.missing", "skip")],
    [("interventions.swap.metrics.p.token", "base_answer")],
    [("steps.score.rows.base", "weekdays/full")],
    [("steps.score.saves[0].file_path", "q.json")],
]


def test_other_experiments_have_other_digests():
    assert len({digest(), *(digest(*edits) for edits in DIFFERENT)}) == len(DIFFERENT) + 1


def test_the_order_of_keys_does_not_matter():
    turned = json.loads(json.dumps(document()), object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    assert loaded(turned).digest == loaded(document()).digest


def test_a_sweep_has_a_digest_of_its_own():
    swept = loaded(changed(("interventions.swap.reads.logits.pos.index", {"sweep": [0, 1]})))
    assert swept.points[0].digest == digest()
    assert swept.digest not in [point.digest for point in swept.points]
