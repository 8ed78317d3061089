"""Tiny random models with recurrent mixers, for `tests.families`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedModel

RECURRENT = ("qwen3_5_text", "qwen3_next", "bamba", "mamba2", "mamba")
KINDS = ("linear_attention", "full_attention", "linear_attention")
"""Of hybrids, the three blocks: a state, attention, a state."""


def makers(grouped: Mapping[str, Any], width: int) -> dict[str, Callable[[], PreTrainedModel]]:
    """By model type, what makes a model `width` wide. `grouped`: what a config with grouped heads is made of."""
    from transformers import BambaConfig, Mamba2Config, MambaConfig, Qwen3NextConfig
    from transformers.models.bamba.modeling_bamba import BambaForCausalLM
    from transformers.models.mamba.modeling_mamba import MambaForCausalLM
    from transformers.models.mamba2.modeling_mamba2 import Mamba2ForCausalLM
    from transformers.models.qwen3_5.configuration_qwen3_5 import Qwen3_5TextConfig
    from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5ForCausalLM
    from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextForCausalLM

    names = ("vocab_size", "bos_token_id", "eos_token_id", "pad_token_id", "initializer_range", "hidden_size")
    alone = {name: grouped[name] for name in (*names, "num_hidden_layers")}
    # Twice as many value heads as key heads, and values wider than keys.
    delta = {
        **grouped,
        "head_dim": 8,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 4,
        "linear_value_head_dim": 6,
        "layer_types": list(KINDS),
    }
    # Four heads of states in two groups, in chunks shorter than a prompt.
    scanned = {"state_size": 6, "expand": 2, "chunk_size": 4}
    return {
        "qwen3_5_text": lambda: Qwen3_5ForCausalLM(Qwen3_5TextConfig(**delta)),
        "qwen3_next": lambda: Qwen3NextForCausalLM(
            Qwen3NextConfig(**delta, mlp_only_layers=[0, 1, 2], num_experts=4, num_experts_per_tok=2)
        ),
        "bamba": lambda: BambaForCausalLM(
            BambaConfig(
                **grouped,
                attn_layer_indices=[1],
                mamba_n_heads=4,
                mamba_d_head=width // 2,
                mamba_n_groups=2,
                mamba_d_state=6,
                mamba_chunk_size=4,
            )
        ),
        "mamba2": lambda: Mamba2ForCausalLM(
            Mamba2Config(**alone, **scanned, num_heads=4, head_dim=width // 2, n_groups=2)
        ),
        "mamba": lambda: MambaForCausalLM(MambaConfig(**alone, state_size=6)),
    }
