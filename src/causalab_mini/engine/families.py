"""Which module of which model family holds the value a component names: one row each.

Knows dotted module paths and class names. Knows nothing of tensors and imports no model code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Side = Literal["input", "output"]


@dataclass(frozen=True)
class Family:
    """Where a `model_type` keeps its parts.

    `architecture` is the class in transformers' own module of that name. `embeddings`, `blocks`, `norm` and `head`
    are dotted paths from the root. The others are attributes of a block: `attention`, `mlp` and the norm whose output
    feeds it; `attention_added` and `mlp_added`, the modules whose outputs are what is added to the residual stream,
    where those are norms of their own. `mixing` is the attention's output projection; `activation` and `down` are the
    MLP's activation function and last projection. `gated`: whether a second projection multiplies the activation.
    """

    model_type: str
    architecture: str
    embeddings: str = "model.embed_tokens"
    blocks: str = "model.layers"
    attention: str = "self_attn"
    attention_added: str = ""
    mixing: str = "o_proj"
    mlp: str = "mlp"
    mlp_norm: str = "post_attention_layernorm"
    mlp_added: str = ""
    activation: str = "act_fn"
    down: str = "down_proj"
    gated: bool = True
    norm: str = "model.norm"
    head: str = "lm_head"

    def within(self, component: str) -> tuple[str, Side] | None:
        """Where a block holds `component`: a path from the block, and a side; None for a component it has not."""
        neuron: tuple[str, Side] = (f"{self.mlp}.{self.down}", "input")
        places: dict[str, tuple[str, Side]] = {
            "block_input": ("", "input"),
            "attention_input_norm": (self.attention, "input"),
            **{
                f"attention_{part}": (f"{self.attention}.{tap_name(part)}", "output")
                for part in ("key", "value", "key_seen", "value_seen", "query")
            },
            "attention_z": (f"{self.attention}.{self.mixing}", "input"),
            "attention_premix": (f"{self.attention}.{self.mixing}", "input"),
            "attention_output": (self.attention_added or self.attention, "output"),
            "block_mid": (f"{self.mlp_norm}.{tap_name('mid')}", "output"),
            "mlp_input_norm": (self.mlp, "input"),
            "mlp_input": (self.mlp, "input"),
            "mlp_activation": (f"{self.mlp}.{self.activation}", "output") if self.gated else neuron,
            "mlp_neuron_output": neuron,
            "mlp_output": (self.mlp_added or self.mlp, "output"),
            "block_output": ("", "output"),
        }
        return places.get(component)


def tap_name(part: str) -> str:
    """What the module is called through which `part` of a block can be seen."""
    return f"{part}_tap"


FAMILIES: tuple[Family, ...] = (
    Family("llama", "LlamaForCausalLM"),
    Family("mistral", "MistralForCausalLM"),
    Family("qwen2", "Qwen2ForCausalLM"),
    Family("qwen3", "Qwen3ForCausalLM"),
    Family(
        "gemma2",
        "Gemma2ForCausalLM",
        attention_added="post_attention_layernorm",
        mlp_norm="pre_feedforward_layernorm",
        mlp_added="post_feedforward_layernorm",
    ),
    Family(
        "gpt2",
        "GPT2LMHeadModel",
        embeddings="transformer.wte",
        blocks="transformer.h",
        attention="attn",
        mixing="c_proj",
        mlp_norm="ln_2",
        activation="act",
        down="c_proj",
        gated=False,
        norm="transformer.ln_f",
    ),
    Family(
        "gpt_neox",
        "GPTNeoXForCausalLM",
        embeddings="gpt_neox.embed_in",
        blocks="gpt_neox.layers",
        attention="attention",
        mixing="dense",
        activation="act",
        down="dense_4h_to_h",
        gated=False,
        norm="gpt_neox.final_layer_norm",
    ),
)


def family_of(model_type: str) -> Family | None:
    """The row of `model_type`, or None when it is not known."""
    return next((family for family in FAMILIES if family.model_type == model_type), None)
