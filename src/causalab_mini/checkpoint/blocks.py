"""What the blocks of a checkpoint lack, as its config says: component by component, with the reason. Torch-free.

Knows the switches of configs that change what a block computes; refuses to know modules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from causalab_mini.checkpoint.files import Json

NORMS_AFTER = "its norms come after attention and the MLP: what enters {} is {} itself"
NORMED_STREAM = "its blocks norm the residual stream itself after every sum, so that nothing is just added to it"
ADDED_TO_NORM = "its blocks add to the output of their norms, and not to what enters them"
SLICED = "its config has the projections done in slices ('slow_but_exact'), by no module"
NO_FINAL = "its config leaves the final norm out"
DENSE = "its MLPs are no mixtures of experts"
UNKNOWN = "its family is not known, and routers are looked for in none but known ones"
EXPERTS = "the neurons of a mixture of experts belong to its experts, of which every token passes a few"

INSIDE_MLP = ("mlp_activation", "mlp_neuron_output")
ROUTING = ("router_logits", "expert_weights", "expert_indices")


def lacking(model_type: str, config: Mapping[str, Json]) -> dict[str, str]:
    """Components no block of the checkpoint has, by name, with the reason."""
    match model_type:
        case "olmo2":
            return {
                "attention_input_norm": NORMS_AFTER.format("attention", "block_input"),
                "mlp_input_norm": NORMS_AFTER.format("the MLP", "block_mid"),
            }
        case "bloom":
            added = ("attention_output", "block_mid", "mlp_output")
            sliced = ("attention_z", "attention_premix", *INSIDE_MLP, "attention_output", "mlp_output")
            shares = config.get("pretraining_tp")
            return {
                **_all(added, ADDED_TO_NORM, config.get("apply_residual_connection_post_layernorm") is True),
                **_all(sliced, SLICED, config.get("slow_but_exact") is True and isinstance(shares, int) and shares > 1),
            }
        case "opt":
            after = config.get("do_layer_norm_before") is False
            return {
                **_all(("attention_output", "block_mid", "mlp_output"), NORMED_STREAM, after),
                **_all(("attention_input_norm",), NORMS_AFTER.format("attention", "block_input"), after),
                **_all(("mlp_input_norm",), "its norms come after attention and the MLP: see mlp_input", after),
                **_all(("ln_final",), NO_FINAL, after or config.get("_remove_final_layer_norm") is True),
            }
        case _:
            return {}


def mixtures(model_type: str, config: Mapping[str, Json], depth: int) -> frozenset[int]:
    """Which of the `depth` blocks have a mixture of experts for an MLP."""
    match model_type:
        case "mixtral":
            return frozenset(range(depth))
        case "qwen2_moe" | "qwen3_next":
            every, dense = config.get("decoder_sparse_step", 1), config.get("mlp_only_layers")
            if config.get("num_experts") == 0 or not isinstance(every, int):
                return frozenset()
            kept = dense if isinstance(dense, list) else []
            return frozenset(layer for layer in range(depth) if layer not in kept and (layer + 1) % every == 0)
        case _:
            return frozenset()


def _all(components: Iterable[str], reason: str, holds: bool) -> dict[str, str]:
    return dict.fromkeys(components, reason) if holds else {}
