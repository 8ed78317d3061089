"""Which module of which model family holds the value a component names: one row each.

Knows dotted module paths and class names. Knows nothing of tensors and imports no model code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Side = Literal["input", "output"]


@dataclass(frozen=True)
class Hold:
    """Where a block holds a value: a path from the block, a side, and which element where the module hands out several.

    What comes flat, the tokens of all lanes one under the other, is the engine's business.
    """

    path: str
    side: Side
    item: int = 0


@dataclass(frozen=True)
class Family:
    """Where a `model_type` keeps its parts.

    `architecture` is the class in transformers' own module `module` (of the type's own name if it is not said).
    `embeddings`, `projected` (where embeddings are brought to the width of the residual stream, if they are), `blocks`,
    `norm`, `narrowed` (what stands between the last norm and the head, if anything does) and `head` are dotted paths
    from the root.

    The others are paths from a block. `attention` and `mlp` are given what enters them; `attention_added` and
    `mlp_added` hand out what is added to the residual stream: themselves, norms after them, or their last projections.
    `middle` is given the residual stream after attention, as the tensor the stream goes on with: the norm that feeds
    the MLP, or the MLP where there is none. `mixing` is the attention's output projection, `split` the attention's
    method that hands out queries, keys and values where no interface is given them; `activation` and `down` are the
    MLP's activation function and last projection, `gated` says whether a second projection multiplies the activation,
    and `router` is what chooses experts in a mixture. `mixer` is the recurrent mixer of the blocks that have one,
    `recurrence` its kind. An empty path stands for what a family has not, or what is not known of it.
    """

    model_type: str
    architecture: str
    module: str = ""
    embeddings: str = "model.embed_tokens"
    projected: str = ""
    blocks: str = "model.layers"
    attention: str = "self_attn"
    attention_added: str = "self_attn"
    mixing: str = "self_attn.o_proj"
    split: str = ""
    middle: str = "post_attention_layernorm"
    mlp: str = "mlp"
    mlp_added: str = "mlp"
    activation: str = "mlp.act_fn"
    down: str = "mlp.down_proj"
    gated: bool = True
    router: str = "mlp.gate"
    mixer: str = ""
    recurrence: str = ""
    norm: str = "model.norm"
    narrowed: str = ""
    head: str = "lm_head"

    def within(self, component: str) -> Hold | None:
        """Where a block holds `component`; None for a component it has not."""
        places: dict[str, Hold] = {
            "block_input": Hold("", "input"),
            "attention_input_norm": Hold(self.attention, "input"),
            **{
                f"attention_{part}": Hold(f"{self.attention}.{tap_name(part)}", "output")
                for part in ("key", "value", "key_seen", "value_seen", "query", "scores", "probs")
            },
            "attention_z": Hold(self.mixing, "input"),
            "attention_premix": Hold(self.mixing, "input"),
            "attention_output": Hold(self.attention_added, "output"),
            "block_mid": Hold(f"{self.middle}.{tap_name('mid')}", "output"),
            "mlp_input_norm": Hold(self.mlp, "input"),
            "mlp_input": Hold(self.mlp, "input"),
            "router_logits": Hold(self.router, "output", 0),
            "expert_weights": Hold(self.router, "output", 1),
            "expert_indices": Hold(self.router, "output", 2),
            "mlp_activation": Hold(self.activation, "output") if self.gated else Hold(self.down, "input"),
            "mlp_neuron_output": Hold(self.down, "input"),
            "mlp_output": Hold(self.mlp_added, "output"),
            "block_output": Hold("", "output"),
            **{
                f"linear_attention_{part}": Hold(f"{self.mixer}.{tap_name(f'linear_{part}')}", "output")
                for part in ("key", "value", "decay", "beta", "query", "z")
            },
            "linear_attention_output": Hold(self.mixer, "output"),
        }
        place = places.get(component)
        whole = component in ("block_input", "block_output")
        return place if place is None or whole or (place.path and place.path[0] != ".") else None


def tap_name(part: str) -> str:
    """What the module is called through which `part` of a block can be seen."""
    return f"{part}_tap"


FAMILIES: tuple[Family, ...] = (
    Family("llama", "LlamaForCausalLM"),
    Family("mistral", "MistralForCausalLM"),
    Family("qwen2", "Qwen2ForCausalLM"),
    Family("qwen3", "Qwen3ForCausalLM"),
    Family("mixtral", "MixtralForCausalLM"),
    Family("qwen2_moe", "Qwen2MoeForCausalLM"),
    *(
        Family(
            model_type,
            architecture,
            module=module,
            attention_added="post_attention_layernorm",
            middle="pre_feedforward_layernorm",
            mlp_added="post_feedforward_layernorm",
        )
        for model_type, architecture, module in (
            ("gemma2", "Gemma2ForCausalLM", ""),
            ("gemma3_text", "Gemma3ForCausalLM", "gemma3"),
        )
    ),
    Family(
        "olmo2",
        "Olmo2ForCausalLM",
        attention_added="post_attention_layernorm",
        middle="mlp",
        mlp_added="post_feedforward_layernorm",
    ),
    Family(
        "gpt2",
        "GPT2LMHeadModel",
        embeddings="transformer.wte",
        blocks="transformer.h",
        attention="attn",
        attention_added="attn",
        mixing="attn.c_proj",
        middle="ln_2",
        activation="mlp.act",
        down="mlp.c_proj",
        gated=False,
        norm="transformer.ln_f",
    ),
    Family(
        "gpt_neox",
        "GPTNeoXForCausalLM",
        embeddings="gpt_neox.embed_in",
        blocks="gpt_neox.layers",
        attention="attention",
        attention_added="attention",
        mixing="attention.dense",
        activation="mlp.act",
        down="mlp.dense_4h_to_h",
        gated=False,
        norm="gpt_neox.final_layer_norm",
    ),
    # Attention and MLP are given the residual stream and hand it out, grown: what they add leaves their projections.
    Family(
        "bloom",
        "BloomForCausalLM",
        embeddings="transformer.word_embeddings",
        blocks="transformer.h",
        attention="self_attention",
        attention_added="self_attention.dense",
        mixing="self_attention.dense",
        split="_reshape",
        activation="mlp.gelu_impl",
        down="mlp.dense_4h_to_h",
        mlp_added="mlp.dense_4h_to_h",
        gated=False,
        norm="transformer.ln_f",
    ),
    # The MLP is no module of its own.
    Family(
        "opt",
        "OPTForCausalLM",
        embeddings="model.decoder.embed_tokens",
        projected="model.decoder.project_in",
        blocks="model.decoder.layers",
        mixing="self_attn.out_proj",
        middle="final_layer_norm",
        mlp="fc1",
        mlp_added="fc2",
        activation="activation_fn",
        down="fc2",
        gated=False,
        norm="model.decoder.final_layer_norm",
        narrowed="model.decoder.project_out",
    ),
    *(
        Family(model_type, architecture, module=module, mixer="linear_attn", recurrence="Gated DeltaNet")
        for model_type, architecture, module in (
            ("qwen3_5_text", "Qwen3_5ForCausalLM", "qwen3_5"),
            ("qwen3_next", "Qwen3NextForCausalLM", ""),
        )
    ),
    Family(
        "bamba",
        "BambaForCausalLM",
        middle="pre_ff_layernorm",
        mlp="feed_forward",
        mlp_added="feed_forward",
        activation="feed_forward.act_fn",
        down="feed_forward.down_proj",
        norm="model.final_layernorm",
        mixer="mamba",
        recurrence="Mamba-2",
    ),
    *(
        Family(
            model_type,
            architecture,
            embeddings="backbone.embeddings",
            blocks="backbone.layers",
            attention="",
            middle="",
            norm="backbone.norm_f",
            mixer="mixer",
            recurrence=recurrence,
        )
        for model_type, architecture, recurrence in (
            ("mamba", "MambaForCausalLM", "Mamba"),
            ("mamba2", "Mamba2ForCausalLM", "Mamba-2"),
        )
    ),
)


def family_of(model_type: str) -> Family | None:
    """The row of `model_type`, or None when it is not known."""
    return next((family for family in FAMILIES if family.model_type == model_type), None)
