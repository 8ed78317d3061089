"""Where embeddings are what enters the first block, a write at both is a write at one value twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from tests.desk import Desk
from tests.families import PROMPTS, encode

from causalab_mini.checkpoint.families import CAPABILITIES

BARE = {row.model_type: row.bare for row in CAPABILITIES}


@pytest.mark.parametrize("family", BARE)
def test_rows_say_what_stands_between(family_network: Callable, family_folder: Callable, family: str) -> None:
    network = family_network(family, 16)
    seen: dict[str, torch.Tensor] = {}
    embeddings = network.model.get_submodule(network.family.embeddings)
    block = network.model.get_submodule(f"{network.family.blocks}.0")
    handles = (
        embeddings.register_forward_hook(lambda _, args, out: seen.update(out=out.clone())),
        block.register_forward_pre_hook(
            lambda _, args, kwargs: seen.update(entering=args[0] if args else kwargs["hidden_states"]),
            with_kwargs=True,
        ),
    )
    with torch.no_grad():
        network.model(input_ids=torch.tensor([encode(family_folder(family, 16), PROMPTS[0])]), use_cache=False)
    for handle in handles:
        handle.remove()
    assert torch.equal(seen["out"], seen["entering"]) is BARE[family]


@pytest.mark.parametrize(("family", "told"), [("llama", 1), ("gpt2", 0)])
def test_writes_at_both_are_refused_where_they_are_one(
    random_world: Callable[[str, int], Desk], family: str, told: int
) -> None:
    swap = {"pos": -1, "mechanism": "swap"}
    made = {
        "model": {"key": "any", "dtype": "fp32"},
        "roles": {"base": {"field": "input"}},
        "sites": {
            "words": {"component": "embeddings"},
            "first": {"component": "block_input", "layers": 0},
            "head": {"component": "lm_head"},
        },
        "interventions": {
            "one": {
                "reads": {"seen": {"site": "head", "pos": -1, "input": "base", "model": "m"}},
                "writes": {
                    "a": {"site": "words", "operand": 5.0, **swap},
                    "b": {"site": "first", "operand": 1.0, **swap},
                },
                "models": {"m": {"input": "base", "writes": ["a", "b"]}},
                "metrics": {"h": {"kind": "entropy", "of": "seen"}},
            }
        },
        "steps": {"s": {"kind": "observe", "rows": {"base": "weekdays/train"}}},
    }
    desk = random_world(family, 16)
    if not told:
        assert len(desk.compile(made).points) == 1
        return
    (problem,) = desk.problems(made)
    assert problem.path == "interventions.one.models.m.writes"
    assert "the second would undo the first" in problem.message
