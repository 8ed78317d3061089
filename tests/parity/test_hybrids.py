"""What families with recurrent mixers have in common with others: the stream, attention, the MLP, read and written."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from tests import plain
from tests.desk import Desk
from tests.parity.test_recurrent import at, document, rows, unequal
from tests.recurrent import RECURRENT

__all__ = ["unequal"]

STEPS = 4
MLP = {"bamba": ("feed_forward", "pre_ff_layernorm")}


def spots(family: str) -> dict[str, tuple[int | None, str, str]]:
    """By component: a layer that has it, the module that holds it, and which side."""
    if family.startswith("mamba"):
        return {
            "embeddings": (None, "backbone.embeddings", "output"),
            "block_input": (1, "backbone.layers.1", "input"),
            "block_output": (1, "backbone.layers.1", "output"),
            "linear_attention_output": (1, "backbone.layers.1.mixer", "output"),
            "ln_final": (None, "backbone.norm_f", "output"),
            "lm_head": (None, "", "output"),
        }
    mlp, before = MLP.get(family, ("mlp", "post_attention_layernorm"))
    norm = "model.final_layernorm" if family == "bamba" else "model.norm"
    block, mixer = "model.layers.1", "mamba" if family == "bamba" else "linear_attn"
    return {
        "embeddings": (None, "model.embed_tokens", "output"),
        "block_input": (2, "model.layers.2", "input"),
        "attention_value": (1, f"{block}.self_attn.v_proj", "output"),
        "attention_z": (1, f"{block}.self_attn.o_proj", "input"),
        "attention_output": (1, f"{block}.self_attn", "output"),
        "linear_attention_output": (0, f"model.layers.0.{mixer}", "output"),
        "block_mid": (2, f"model.layers.2.{before}", "input"),
        "mlp_input": (0, f"model.layers.0.{mlp}", "input"),
        "mlp_activation": (1, f"{block}.{mlp}.act_fn", "output"),
        "mlp_neuron_output": (0, f"model.layers.0.{mlp}.down_proj", "input"),
        "mlp_output": (2, f"model.layers.2.{mlp}", "output"),
        "block_output": (0, "model.layers.0", "output"),
        "ln_final": (None, norm, "output"),
        "lm_head": (None, "", "output"),
    }


@pytest.mark.parametrize("width", [16, 64, 512])
@pytest.mark.parametrize("family", RECURRENT)
def test_values_are_the_modules(unequal: Callable[[str, int], Desk], family: str, width: int) -> None:
    desk, places = unequal(family, width), spots(family)
    reads = {
        f"{name}_{frame}": at(name, pos)
        for name in places
        for frame, pos in (("prompt", {"last": 2}), ("steps", {"frame": "generated", "all": True}))
    }
    made = document(reads, {}, STEPS, {}, {name: {"read": name} for name in reads}, "linear_attention_state")
    for name, (layer, _, _) in places.items():
        made["sites"][name] = {"component": name} | ({} if layer is None else {"layers": layer})
    seen = desk.one(made, "traced" if width == 64 else "hooks", 3)
    for row, ids in enumerate(rows(desk)):
        end = len(ids) - 1
        looks = [
            plain.Look(f"{name} {token}", module, side, token)
            for name, (_, module, side) in places.items()
            for token in range(end - 1, end + STEPS)
        ]
        alone = plain.run(desk.network.model, ids, (), looks, STEPS, desk.checkpoint.eos_ids)
        assert seen.ids("m")[row] == alone.ids
        for name in places:
            for frame, first, last in (("prompt", end - 1, end + 1), ("steps", end, end + STEPS)):
                wanted = torch.stack([alone.values[f"{name} {token}"] for token in range(first, last)])
                torch.testing.assert_close(seen.tensor(f"{name}_{frame}")[row], wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("family", RECURRENT)
def test_writes_do_what_hooks_do(unequal: Callable[[str, int], Desk], family: str) -> None:
    desk = unequal(family, 64)
    # A hook in front of a norm changes what the norm is given and not the stream: `block_mid` is more than that.
    places = [(name, place) for name, place in spots(family).items() if name != "block_mid"]
    for number, (name, (layer, module, side)) in enumerate(places):
        writes = {
            "prompt": {"site": "here", "pos": -2, "mechanism": "add_scaled", "operand": 0.5},
            "later": {
                "site": "here",
                "pos": {"frame": "generated", "index": 1},
                "mechanism": "add_scaled",
                "operand": 0.5,
            },
        }
        reads = {"head": at("head", {"frame": "generated", "all": True})}
        made = document(reads, writes, STEPS, {}, {"head": {"read": "head"}}, "linear_attention_state")
        made["sites"]["here"] = {"component": name} | ({} if layer is None else {"layers": layer})
        engine, mode = [("hooks", "fast"), ("traced", "fast"), ("hooks", "exact")][number % 3]
        seen = desk.one(made, engine, 3, mode)
        for row, ids in enumerate(rows(desk)):
            edits = [plain.Edit(module, side, token, lambda value: value + 0.5) for token in (len(ids) - 2, len(ids))]
            alone = plain.run(desk.network.model, ids, edits, (), STEPS, desk.checkpoint.eos_ids)
            torch.testing.assert_close(seen.tensor("head")[row], alone.logits, atol=2e-4, rtol=1e-4)
            assert seen.ids("m")[row] == alone.ids
