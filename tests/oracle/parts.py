"""Where a family has a value inside attention or the MLP: a module of the block, a side, and its entries."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn.functional import pad

MIX = {"gpt2": "attn.c_proj", "gpt_neox": "attention.dense"}
VALUES = {"gpt2": "attn.c_attn", "gpt_neox": "attention.query_key_value"}
PATTERNS = {"attention_scores": "scores", "attention_probs": "probs"}
DOWN = {"gpt2": "mlp.c_proj", "gpt_neox": "mlp.dense_4h_to_h"}


def inside(component: str, config: Any) -> tuple[str, str] | None:
    """The module, from the block, and side that hold a component; None where it is no such component."""
    family = config.model_type
    return {
        "attention_z": (MIX.get(family, "self_attn.o_proj"), "input"),
        "attention_value": (VALUES.get(family, "self_attn.v_proj"), "output"),
        "mlp_neuron_output": (DOWN.get(family, "mlp.down_proj"), "input"),
    }.get(component)


def entries(site: dict, config: Any) -> list[int] | None:
    """Which entries of the module's value the site is; None for all of them."""
    component, family = site["component"], config.model_type
    heads = site.get("heads")
    if component == "linear_attention_state":
        size = config.linear_key_head_dim * config.linear_value_head_dim
        return None if heads is None else [head * size + i for head in heads for i in range(size)]
    count = config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // count
    if component in PATTERNS:
        return heads
    if component == "attention_value":
        # Queries, keys and values come out of one module: side by side in GPT-2, head by head in GPT-NeoX.
        first = {"gpt2": 2 * config.hidden_size, "gpt_neox": 2 * width}.get(family, 0)
        apart = 3 * width if family == "gpt_neox" else width
        if heads is None and family not in VALUES:
            return None
        return [first + head * apart + i for head in heads or range(count) for i in range(width)]
    if heads is not None:
        return [head * width + i for head in heads for i in range(width)]
    return site.get("units")


def padded(found: list[Any]) -> list[Any]:
    """Patterns [..., H, T] over as many tokens as any of them is; what is none as it is."""
    most = max((one.shape[-1] for one in found if isinstance(one, Tensor)), default=0)
    return [pad(one, (0, most - one.shape[-1])) if isinstance(one, Tensor) else one for one in found]
