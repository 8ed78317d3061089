"""Ten taps on three steps, listed in any order: the planner owns the order in which they act."""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import deepcopy

from tests.desk import Desk, Seen

STEPS = 3
SITES = {
    "stream": {"component": "block_output", "layers": 2},
    "heads": {"component": "attention_z", "layers": 3, "heads": [1]},
    "keys": {"component": "attention_key", "layers": 1},
    "neurons": {"component": "mlp_neuron_output", "layers": 4, "units": [0, 5]},
    "head": {"component": "lm_head"},
}


def step(k: int) -> dict:
    return {"frame": "generated", "index": k}


def read(site: str, pos: object, model: str = "m") -> dict:
    return {"site": site, "pos": pos, "model": model, "input": "base"}


DOCUMENT = {
    "model": {"key": "causalab-mini/weekdays-llama", "dtype": "fp32"},
    "roles": {"base": {"field": "input"}},
    "sites": SITES,
    "interventions": {
        "one": {
            "reads": {
                "clean": read("stream", -2, "original"),
                "keys_first": read("keys", step(0)),
                "stream_second": read("stream", step(1)),
                "neurons_second": read("neurons", step(1)),
                "head_first": read("head", step(0)),
                "head_second": read("head", step(1)),
                "head_third": read("head", step(2)),
            },
            "writes": {
                "mix": {
                    "site": "stream",
                    "pos": step(0),
                    "mechanism": "lerp",
                    "operand": "clean",
                    "params": {"t": 0.3},
                },
                "noise": {
                    "site": "heads",
                    "pos": step(1),
                    "mechanism": "gaussian",
                    "params": {"seed": 3, "scale": 0.5},
                },
                "push": {"site": "keys", "pos": step(2), "mechanism": "add_scaled", "operand": 0.5},
            },
            "models": {"m": {"input": "base", "writes": ["mix", "noise", "push"]}},
            "metrics": {name: {"kind": "top_k", "of": f"head_{name}", "k": 3} for name in ("first", "second", "third")},
            "decode": STEPS,
        }
    },
    "steps": {
        "s": {
            "kind": "observe",
            "rows": {"base": "weekdays/said"},
            "outputs": {name: name for name in ("keys_first", "stream_second", "neurons_second")},
            "saves": [
                {"value": name, "file_path": f"{name}.safetensors"}
                for name in ("keys_first", "stream_second", "neurons_second", "m.generated")
            ],
        }
    },
}


def shuffled(document: dict, chance: random.Random) -> dict:
    """The document with its sites, reads, writes and metrics in another order."""
    made = deepcopy(document)
    for holder, name in [(made, "sites"), *((made["interventions"]["one"], n) for n in ("reads", "writes", "metrics"))]:
        items = list(holder[name].items())
        chance.shuffle(items)
        holder[name] = dict(items)
    return made


def told(seen: Seen) -> tuple[object, object]:
    """Tables by name, and the bytes of every tensor."""
    tables = {table.name: [row.value for row in table.rows] for table in seen.observed.tables}
    tensors = {
        (bundle.name, name): tensor.numpy().tobytes()
        for bundle in seen.observed.bundles
        for name, tensor in bundle.tensors.items()
    }
    return tables, tensors


def test_fifty_orders_of_ten_taps_give_the_same_bytes(shipped: Callable[[str], Desk]) -> None:
    desk, chance = shipped("weekdays-llama"), random.Random(0)
    first = told(desk.one(DOCUMENT))
    assert any(value for value in first[0].values())
    for turn in range(50):
        engine, mode = ("traced", "naive") if turn % 10 == 9 else ("hooks", "auto")
        other = desk.one(shuffled(DOCUMENT, chance), engine, mode=mode)
        if mode == "auto":
            assert told(other) == first
        else:
            # Another schedule may move the last bit, and does so alike in every order.
            assert told(other) == told(desk.one(DOCUMENT, engine, mode=mode))
