"""What three tokens show of attention patterns, [3, H, 3] with −∞ where a query sees no key."""

from __future__ import annotations

from collections.abc import Callable

import torch

from causalab_mini.engine.proofs import NotShown, Seen, handed_on


def weighed(seen: Seen) -> str | None:
    """Every query's weights sum to 1, and values so weighed are what the heads hand on."""
    found = {layer: value.masked_fill(value.isneginf(), 0).float() for layer, value in seen.of("attention_probs")}
    for layer, value in found.items():
        if not seen.close(value.sum(-1), torch.ones_like(value[..., 0])):
            return f"the weights of a query in block {layer} do not sum to 1"
    if handed_on(seen) is not None:
        raise NotShown("values and heads do not fit, by which weights are shown")
    for layer, value in found.items():
        weights = value.transpose(0, 1)
        values = seen.heads("attention_value", layer)
        shared = values.repeat_interleave(weights.shape[0] // values.shape[0], 0)
        if not seen.close(weights @ shared, seen.heads("attention_z", layer)):
            return f"values so weighed are not what the heads of block {layer} hand on"
    return None


def softened(seen: Seen) -> str | None:
    """Their softmax is attention_probs."""
    for layer, value in seen.of("attention_scores"):
        probs = seen.at("attention_probs", layer)
        if not seen.close(value.float().softmax(-1), probs.masked_fill(probs.isneginf(), 0).float()):
            return f"the softmax of the scores of block {layer} is not attention_probs"
    return None


PROOFS: dict[str, Callable[[Seen], str | None]] = {"attention_scores": softened, "attention_probs": weighed}
