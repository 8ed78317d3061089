"""Recurrent states: read and written at any token, against a model that is fed token by token."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest
import torch
from tests.desk import Desk
from tests.plain import laid_out
from tests.recurrent import RECURRENT
from torch import Tensor

from causalab_mini.schedule.optimize import Mode

MODES: tuple[Mode, ...] = ("naive", "exact", "fast")
LAYER, STEPS = 2, 4
"""The last block, which has a state in every family here."""


UNEQUAL = [
    {"input": base, "counterfactual_inputs": [other]}
    for base, other in (
        ("If today is Thursday, tomorrow is", "If today is Monday, then tomorrow is"),
        ("The day after Friday is", "The day after Sunday is"),
        ("Note: Today is Saturday, so tomorrow will be", "Today is Tuesday, tomorrow is"),
        ("Yesterday was Monday, so today must be", "If today is Friday"),
    )
]


@dataclass
class Walk:
    """What a model does when it is fed one token after the other: states [H, K, U] after each, and logits of each."""

    states: list[Tensor] = field(default_factory=list)
    logits: list[Tensor] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)


def walk(model, ids, steps, eos, writes: Mapping[int, Callable[[Tensor], Tensor]] | None = None, layer=LAYER) -> Walk:
    """Feed `ids`, then what the model says; `writes` change the state of `layer` in place after a token."""
    from transformers.cache_utils import DynamicCache

    cache, found = DynamicCache(config=model.config), Walk()
    fed = list(ids)
    position = 0
    with torch.no_grad():
        while position < len(fed):
            options = (
                {} if model.config.model_type.startswith("mamba") else {"position_ids": torch.tensor([[position]])}
            )
            out = model(input_ids=torch.tensor([[fed[position]]]), cache=cache, use_cache=True, **options)
            state = cache.layers[layer].recurrent_states[0]
            if writes and position in writes:
                laid_out(model, state).copy_(writes[position](laid_out(model, state.clone())))
            found.states.append(laid_out(model, state[0].clone()))
            found.logits.append(out.logits[0, -1].clone())
            position += 1
            if position == len(fed) and len(found.ids) < steps:
                held = out.logits[0, -1].float().clone()
                held[list(eos)] = -torch.inf
                found.ids.append(int(held.argmax()))
                if len(found.ids) < steps:
                    fed.append(found.ids[-1])
    return found


def document(
    reads: dict, writes: dict, decode: int, metrics: dict, outputs: dict, component: str, **site: object
) -> dict:
    return {
        "model": {"key": "x", "dtype": "fp32"},
        "roles": {"base": {"field": "input"}, "counterfactual": {"field": "counterfactual_inputs[0]"}},
        "sites": {
            "state": {"component": component, "layers": LAYER, **site},
            "first": {"component": "linear_attention_state", "layers": 0},
            "entering": {"component": "linear_attention_state_in", "layers": LAYER},
            "head": {"component": "lm_head"},
        },
        "interventions": {
            "one": {
                "reads": reads,
                "writes": writes,
                "models": {"m": {"input": "base", "writes": list(writes)}},
                "metrics": metrics,
                "decode": decode,
            }
        },
        "steps": {
            "s": {
                "kind": "observe",
                "rows": {"base": "own/rows", "counterfactual": "own/rows"},
                "outputs": outputs,
                "saves": [{"value": name, "file_path": f"{name}.safetensors"} for name in outputs]
                + ([{"value": "m.generated", "file_path": "g.safetensors"}] if decode else []),
            }
        },
    }


def at(site: str, pos: object, role: str = "base", model: str = "m") -> dict:
    return {"site": site, "pos": pos, "model": model, "input": role}


def rows(desk: Desk, role: str = "base") -> list[list[int]]:
    texts = [row["input"] if role == "base" else row["counterfactual_inputs"][0] for row in UNEQUAL]
    return [list(desk.checkpoint.encode(text).ids) for text in texts]


@pytest.fixture(scope="session")
def unequal(random_world: Callable[[str, int], Desk], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Desk]:
    """`unequal(model_type, width)`: a random model over rows of unequal length."""
    root = tmp_path_factory.mktemp("unequal")
    (root / "own").mkdir()
    (root / "own/rows.json").write_text(json.dumps(UNEQUAL))
    return lambda model_type, width: random_world(model_type, width).over(root)


@pytest.fixture(params=RECURRENT)
def desk(request: pytest.FixtureRequest, unequal: Callable[[str, int], Desk]) -> Desk:
    return unequal(request.param, 64)


WAYS: tuple[tuple[Mode, str, int | None], ...] = (
    ("naive", "hooks", None),
    ("exact", "traced", 3),
    ("fast", "hooks", 3),
)


@pytest.mark.parametrize(("mode", "engine", "batch"), WAYS)
def test_states_are_those_of_a_model_fed_token_by_token(desk: Desk, mode: Mode, engine: str, batch: int | None) -> None:
    reads = {
        "inside": at("state", {"span": [1, 3]}),
        "first": at("first", {"span": [1, 3]}),
        "last": at("state", -1),
        "steps": at("state", {"frame": "generated", "all": True}),
        "entering": at("entering", {"frame": "generated", "span": [1, STEPS]}),
        "head": at("head", {"frame": "generated", "all": True}),
    }
    outputs = {name: {"read": name} for name in reads}
    made = document(reads, {}, STEPS, {}, outputs, "linear_attention_state")
    seen = desk.one(made, engine, batch, mode)
    for row, ids in enumerate(rows(desk)):
        alone = walk(desk.network.model, ids, STEPS, desk.checkpoint.eos_ids)
        prefix, end = len(desk.checkpoint.prefix), len(ids) - 1
        wanted = {
            "inside": alone.states[prefix + 1 : prefix + 3],
            "last": [alone.states[end]],
            "steps": alone.states[end : end + STEPS],
            "entering": alone.states[end : end + STEPS - 1],
        }
        for name, states in wanted.items():
            found = seen.tensor(name)[row].reshape(len(states), -1)
            torch.testing.assert_close(found, torch.stack(states).flatten(1), atol=2e-6, rtol=1e-6)
        torch.testing.assert_close(seen.tensor("head")[row], torch.stack(alone.logits[end:]), atol=1e-4, rtol=1e-4)
        assert seen.ids("m")[row] == alone.ids
    # In the first block both ways of making a state begin with the same numbers.
    ids, start = rows(desk)[0], len(desk.checkpoint.prefix) + 1
    stepped = walk(desk.network.model, ids, 0, (), layer=0).states[start : start + 2]
    torch.testing.assert_close(seen.tensor("first")[0], torch.stack(stepped).flatten(1), atol=1e-6, rtol=0)
    # Of two steps, what one leaves is what the next begins with, to the bit.
    assert torch.equal(seen.tensor("steps")[:, :-1], seen.tensor("entering"))


@pytest.mark.parametrize(("mode", "engine", "batch"), WAYS)
@pytest.mark.parametrize("where", [1, -1])
def test_a_written_state_acts_from_the_next_token_on(
    desk: Desk, mode: Mode, engine: str, batch: int | None, where: int
) -> None:
    reads = {
        "source": at("state", -2, "counterfactual", "original"),
        "here": at("state", where),
        "own": at("head", where),
        "head": at("head", {"frame": "generated", "all": True}),
    }
    write = {"site": "state", "pos": where, "mechanism": "lerp", "operand": "source", "params": {"t": 0.75}}
    outputs = {name: {"read": name} for name in reads}
    made = document(reads, {"w": write}, STEPS, {}, outputs, "linear_attention_state")
    untouched = desk.one(document(reads, {}, STEPS, {}, outputs, "linear_attention_state"), mode="naive")
    seen = desk.one(made, engine, batch, mode)
    for row, (ids, others) in enumerate(zip(rows(desk), rows(desk, "counterfactual"), strict=True)):
        source = walk(desk.network.model, others, 0, ()).states[-2]
        column = len(desk.checkpoint.prefix) + where if where >= 0 else len(ids) + where
        mixed = {column: lambda state, source=source: 0.25 * state + 0.75 * source}
        alone = walk(desk.network.model, ids, STEPS, desk.checkpoint.eos_ids, mixed)
        end = len(ids) - 1
        torch.testing.assert_close(seen.tensor("here")[row], alone.states[column].flatten(), atol=2e-6, rtol=1e-6)
        torch.testing.assert_close(seen.tensor("head")[row], torch.stack(alone.logits[end:]), atol=1e-4, rtol=1e-4)
        assert seen.ids("m")[row] == alone.ids
    if mode == "naive" and where == -1:
        assert torch.equal(seen.tensor("own"), untouched.tensor("own"))
    moved = (seen.tensor("head")[:, 1:] - untouched.tensor("head")[:, 1:]).abs().amax((1, 2))
    assert (moved > 0).all()
    (report,) = seen.observed.writes
    assert report.firings == (1, 1, 1, 1)
    assert all(change > 0 for change in report.largest_change)


def test_exact_is_naive_to_the_bit(desk: Desk) -> None:
    """Two models with one beginning, one written in the middle of the prompt, both read as they go on."""
    steps = {"frame": "generated", "all": True}
    reads = {
        "source": at("state", -2, "counterfactual", "original"),
        "inside": at("state", {"span": [1, 3]}),
        "head": at("head", steps),
        "states": at("state", steps),
        "other": at("head", steps, model="original"),
    }
    writes = {"w": {"site": "state", "pos": {"span": [1, 3]}, "mechanism": "swap", "operand": "source"}}
    outputs = {name: {"read": name} for name in ("inside", "head", "states", "other")}
    made = document(reads, writes, STEPS, {}, outputs, "linear_attention_state")
    naive, exact, fast = (desk.one(made, mode=mode) for mode in MODES)
    for name in outputs:
        assert torch.equal(naive.tensor(name), exact.tensor(name))
        torch.testing.assert_close(naive.tensor(name), fast.tensor(name), atol=1e-4, rtol=1e-4)
    assert naive.ids("m") == exact.ids("m") == fast.ids("m")


def test_a_write_after_the_last_token_leaves_what_that_token_said(desk: Desk) -> None:
    """To the bit, where lanes are not regrouped; else the written row may run in another call than the clean one."""
    reads = {
        "clean": at("head", -1, model="original"),
        "own": at("head", -1),
        "next": at("head", {"frame": "generated", "index": 1}),
        "clean_next": at("head", {"frame": "generated", "index": 1}, model="original"),
    }
    writes = {"w": {"site": "state", "pos": -1, "mechanism": "gaussian", "params": {"seed": 5}}}
    made = document(reads, writes, STEPS, {}, {name: {"read": name} for name in reads}, "linear_attention_state")
    for mode in MODES:
        seen = desk.one(made, mode=mode)
        if mode == "fast":
            torch.testing.assert_close(seen.tensor("own"), seen.tensor("clean"), atol=1e-5, rtol=1e-5)
        else:
            assert torch.equal(seen.tensor("own"), seen.tensor("clean"))
        assert ((seen.tensor("next") - seen.tensor("clean_next")).abs().amax(-1) > 1e-3).all()
