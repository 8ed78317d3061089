"""Which module of which model family holds the value a component names: one row each.

Knows dotted module paths and class names. Knows nothing of tensors and imports no model code.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """Where a `model_type` keeps its parts.

    `architecture` is the class in transformers' own module of that name. `embeddings`, `blocks`, `norm` and `head`
    are dotted paths from the root; `attention` and `mlp` are attributes of a block whose outputs are what is added to
    the residual stream, whether the block is sequential or parallel.
    """

    model_type: str
    architecture: str
    embeddings: str = "model.embed_tokens"
    blocks: str = "model.layers"
    attention: str = "self_attn"
    mlp: str = "mlp"
    norm: str = "model.norm"
    head: str = "lm_head"


FAMILIES: tuple[Family, ...] = (
    Family("llama", "LlamaForCausalLM"),
    Family("mistral", "MistralForCausalLM"),
    Family("qwen2", "Qwen2ForCausalLM"),
    Family("qwen3", "Qwen3ForCausalLM"),
    Family(
        "gpt2",
        "GPT2LMHeadModel",
        embeddings="transformer.wte",
        blocks="transformer.h",
        attention="attn",
        norm="transformer.ln_f",
    ),
    Family(
        "gpt_neox",
        "GPTNeoXForCausalLM",
        embeddings="gpt_neox.embed_in",
        blocks="gpt_neox.layers",
        attention="attention",
        norm="gpt_neox.final_layer_norm",
    ),
)


def family_of(model_type: str) -> Family | None:
    """The row of `model_type`, or None when it is not known."""
    return next((family for family in FAMILIES if family.model_type == model_type), None)
