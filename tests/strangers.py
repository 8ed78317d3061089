"""Tiny random models of families that the product has no row for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests import families

if TYPE_CHECKING:
    from transformers import PreTrainedModel

STRANGERS = ("phi3", "stablelm", "starcoder2", "granite", "cohere", "falcon", "olmoe", "exaone4", "mpt")


def build(model_type: str, width: int = 64) -> PreTrainedModel:
    """A seeded random model in fp32, eval mode."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    heads = families.heads(width)
    plain: dict[str, Any] = {
        "vocab_size": families.VOCABULARY,
        "hidden_size": width,
        "num_hidden_layers": families.DEPTH,
        "num_attention_heads": heads,
        "max_position_embeddings": 256,
        "initializer_range": 1 / width**0.5,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 2,
    }
    grouped = {**plain, "intermediate_size": 2 * width, "num_key_value_heads": heads // 2}
    own: dict[str, dict[str, Any]] = {
        # What is added to the residual stream is half of what leaves attention and MLP; logits are a quarter.
        "granite": {"residual_multiplier": 0.5, "logits_scaling": 4.0, "attention_multiplier": 0.3},
        # Side by side, and logits times a number.
        "cohere": {"logit_scale": 0.25},
        "olmoe": {"num_experts": 4, "num_experts_per_tok": 2},
    }
    bare = {
        "falcon": {**plain, "multi_query": True},
        "mpt": {"d_model": width, "n_heads": heads, "n_layers": families.DEPTH, "vocab_size": families.VOCABULARY},
    }
    config = AutoConfig.for_model(model_type, **bare.get(model_type, {**grouped, **own.get(model_type, {})}))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(width)
        model = AutoModelForCausalLM.from_config(config)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim == 1:
                    parameter.add_(0.2 * torch.randn_like(parameter))
    return model.eval()


def write_folder(folder: Path, model_type: str, width: int = 64) -> Path:
    """Save model and tokenizer under `folder`, the way checkpoints are laid out."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    folder.mkdir(parents=True, exist_ok=True)
    build(model_type, width).save_pretrained(folder)
    families.write_tokenizer(folder, "llama")
    return folder
