"""A small complete document, and ways to change it."""

from __future__ import annotations

import copy
import json
import re

from causalab_mini.errors import Problem, Refusal
from causalab_mini.spec.load import Loaded, load

GONE = object()
"""Stands for a key to take away."""


def document() -> dict:
    """An interchange with every kind of part: one model, one write, two reads, one metric, three steps of decode."""
    return copy.deepcopy(
        {
            "model": {"key": "causalab-mini/weekdays-llama", "dtype": "fp32"},
            "roles": {"base": {"field": "input"}, "counterfactual": {"field": "counterfactual_inputs[0]"}},
            "sites": {
                "early": {"component": "block_output", "layers": 0},
                "late": {"component": "block_output", "layers": 3},
                "head": {"component": "lm_head"},
                "ids": {"component": "input_ids"},
            },
            "interventions": {
                "swap": {
                    "reads": {
                        "v_cf": {"site": "early", "pos": -1, "input": "counterfactual"},
                        "logits": {
                            "site": "head",
                            "pos": {"frame": "generated", "index": 0},
                            "model": "patched",
                            "input": "base",
                        },
                    },
                    "writes": {"patch": {"site": "early", "pos": -1, "mechanism": "swap", "operand": "v_cf"}},
                    "models": {"patched": {"input": "base", "writes": ["patch"]}},
                    "metrics": {"p": {"kind": "token_prob", "of": "logits", "token": "cf_answer"}},
                    "decode": 3,
                }
            },
            "steps": {
                "score": {
                    "kind": "observe",
                    "rows": {"base": "weekdays/train", "counterfactual": "weekdays/train"},
                    "interventions": "swap",
                    "saves": [
                        {"value": "p", "file_path": "p.json"},
                        {"value": "patched.generated", "file_path": "generated.safetensors"},
                    ],
                }
            },
        }
    )


def changed(*edits: tuple[str, object]) -> dict:
    """The document with each (path, value) put in; `GONE` takes the key away."""
    result = document()
    for path, value in edits:
        put(result, path, value if value is GONE else copy.deepcopy(value))
    return result


def put(tree: dict, path: str, value: object) -> None:
    """Set `path` (`a.b[0].c`) in `tree`, making objects on the way."""
    parts = [int(part[1:-1]) if part[0] == "[" else part for part in re.findall(r"\[\d+\]|[^.\[\]]+", path)]
    here: object = tree
    for part in parts[:-1]:
        here = here.setdefault(part, {}) if isinstance(here, dict) else here[part]
    if value is GONE:
        del here[parts[-1]]
    elif isinstance(here, list) and parts[-1] == len(here):
        here.append(value)
    else:
        here[parts[-1]] = value


def loaded(value: object) -> Loaded:
    """The points of a document given as JSON values or as text."""
    text = value if isinstance(value, bytes) else json.dumps(value, indent=1).encode()
    return load(text, "trial.json")


def problems(value: object) -> list[Problem]:
    """What a document is refused for; empty when it is not."""
    try:
        loaded(value)
    except Refusal as refusal:
        return list(refusal.problems)
    return []


def paths(value: object) -> list[str]:
    """Where the problems are, sorted."""
    return sorted(problem.path for problem in problems(value))
