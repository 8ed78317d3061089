"""Builds documents and tables for tests, with sites that need no declaring.

Sites are called by the short names of `SITES`: `out1` is the residual stream leaving block 1.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

TABLE = "own/rows"
SITES = {
    f"{short}{layer}": {"component": component, "layers": layer}
    for short, component in (
        ("in", "block_input"),
        ("attn", "attention_output"),
        ("mlp", "mlp_output"),
        ("out", "block_output"),
    )
    for layer in range(3)
} | {
    "ids": {"component": "input_ids"},
    "embeddings": {"component": "embeddings"},
    "norm": {"component": "ln_final"},
    "head": {"component": "lm_head"},
}
ROLES = {"base": {"field": "input"}, "other": {"field": "counterfactual_inputs[0]"}}
PROMPTS = ("If today is Thursday, tomorrow is", "Friday is", "The day after Wednesday, I think, is")
"""Of unequal length."""


def rows(prompts: Sequence[str] = PROMPTS, **columns: Sequence[object]) -> list[dict]:
    """Rows of these prompts, their counterfactuals the same prompts in the next row; `columns` hold one cell each."""
    after = [*prompts[1:], prompts[0]]
    return [
        {
            "example_id": f"row-{i}",
            "input": prompt,
            "counterfactual_inputs": [after[i]],
            **{name: cells[i] for name, cells in columns.items()},
        }
        for i, prompt in enumerate(prompts)
    ]


def write_table(root: Path, table: Sequence[object], name: str = TABLE) -> Path:
    """Write a table under the data root `root`, which is returned."""
    path = root / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(table))
    return root


def generated(**cut: object) -> dict:
    """A position in the generated frame."""
    return {"frame": "generated", **cut}


def read(site: str, pos: object = -1, model: str = "original", role: str = "base", **more: object) -> dict:
    return {"site": site, "pos": pos, "model": model, "input": role, **more}


def write(site: str, pos: object, mechanism: str, operand: object = None, **more: object) -> dict:
    """A write; keywords that are not fields of a write are the mechanism's parameters."""
    fields = {key: more.pop(key) for key in ("features", "missing", "featurizer") if key in more}
    return {"site": site, "pos": pos, "mechanism": mechanism, "operand": operand, "params": more, **fields}


def dictate(ids: Sequence[int]) -> dict:
    """Writes that make a model say `ids`: at each step the logit of one is set far above the others."""
    return {
        f"say{step}": write("head", generated(index=step), "swap", 90.0, features=[token])
        for step, token in enumerate(ids)
    }


def intervention(
    reads: dict,
    writes: dict | None = None,
    models: dict | None = None,
    metrics: dict | None = None,
    decode: int = 0,
) -> dict:
    """An intervention. Without `models`, all writes make one, `m` on `base`."""
    if models is None:
        models = {"m": {"input": "base", "writes": list(writes)}} if writes else {}
    return {"reads": reads, "writes": writes or {}, "models": models, "metrics": metrics or {}, "decode": decode}


def step(body: dict | str | list, table: str = TABLE, outputs: dict | None = None, **more: object) -> dict:
    """A step on one table that saves its outputs, and the continuations named by `saves`."""
    saved = [*(outputs or {}), *more.pop("saves", ())]
    return {
        "kind": "observe",
        "rows": {"base": table, "other": table},
        "interventions": body,
        "outputs": outputs or {},
        "saves": [{"value": value, "file_path": f"{value}.safetensors"} for value in saved],
        **more,
    }


def document(steps: dict, interventions: dict | None = None, **more: object) -> dict:
    """A document of steps whose interventions may stand inline."""
    return {
        "model": {"key": "any", "dtype": "fp32"},
        "roles": ROLES,
        "sites": SITES,
        "interventions": interventions or {},
        "steps": steps,
        **more,
    }


def observing(body: dict, table: str = TABLE, outputs: dict | None = None, saves: Sequence[str] = ()) -> dict:
    """A document of one step that runs one intervention."""
    return document({"only": step("one", table, outputs, saves=list(saves))}, {"one": body})
