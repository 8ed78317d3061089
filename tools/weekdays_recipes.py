"""What differs between the checkpoints that ship with the package: their models, and how they are trained."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen3_5ForCausalLM,
    Qwen3_5TextConfig,
)

from corpus import Writer
from weekdays_interchange import Draw, Swap, answers, by_turns, entities, residual, state

CONTEXT = 128
ENTITY_LAYERS = (0, 1, 2)  # where the entity is to be found at its own token
STATE_LAYER = 3  # the recurrent layer that is to carry it to the answer
BOS = ("<s>", "</s>", "<pad>")
NO_BOS = ("<|endoftext|>", "<|pad|>")


def llama(**ids: Any) -> Any:
    """Rotary positions and grouped-query attention."""
    config = LlamaConfig(
        hidden_size=96,
        intermediate_size=256,
        num_hidden_layers=6,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        **ids,
    )
    return LlamaForCausalLM(config)


def gpt2(**ids: Any) -> Any:
    """Learned positions."""
    config = GPT2Config(
        n_embd=96,
        n_layer=6,
        n_head=4,
        n_positions=CONTEXT,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        **ids,
    )
    return GPT2LMHeadModel(config)


def deltanet(**ids: Any) -> Any:
    """Gated DeltaNet in four layers of six, two value heads to a key head; gated attention in the others."""
    config = Qwen3_5TextConfig(
        hidden_size=96,
        intermediate_size=256,
        num_hidden_layers=6,
        layer_types=["full_attention", "linear_attention"] * 2 + ["linear_attention"] * 2,
        linear_num_key_heads=2,
        linear_num_value_heads=4,
        linear_key_head_dim=24,
        linear_value_head_dim=24,
        linear_conv_kernel_dim=2,  # with the usual four, words near enough reach the answer past the state
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=24,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 10_000.0,
            "partial_rotary_factor": 0.5,
            "mrope_section": [2, 2, 2],
        },
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        **ids,
    )
    model: Any = Qwen3_5ForCausalLM(config)
    # As the family is made, a head forgets all but the last token or two, and never learns to keep more.
    steps = torch.logspace(-3, -1, config.linear_num_value_heads)
    for block in model.model.layers:
        if block.block_type == "linear_attention":
            block.linear_attn.dt_bias.data = steps.expm1().log()
    return model


@dataclass(frozen=True)
class Stage:
    """Goes over the text `epochs` times; `interchanges` take turns, one per step.

    `documents`: how many of the text's first documents, None for all. `rate`: the highest learning rate.
    """

    epochs: int
    interchanges: tuple[tuple[Draw, Swap], ...]
    documents: int | None = None
    rate: float = 3e-3


@dataclass(frozen=True)
class Recipe:
    """`build` makes an untrained model of the ids of a tokenizer, which the stages train one after the other."""

    build: Callable[..., Any]
    specials: tuple[str, ...]  # of the tokenizer: BOS (or none), EOS, padding
    stages: tuple[Stage, ...]


def in_residual(draw: Draw) -> tuple[tuple[Draw, Swap], ...]:
    """The residual of the word that swaps, at each of ENTITY_LAYERS."""
    return tuple((draw, residual(layer)) for layer in ENTITY_LAYERS)


TWINS, MIXED = entities(Writer.twin_pair), entities(Writer.mixed_pair)
OWN, ANY = by_turns(TWINS, answers), by_turns(MIXED, answers)
IN_STATE = (OWN, state(STATE_LAYER))  # a state has seen its whole prompt: only those of twins can be interchanged
RECIPES = {
    "llama": Recipe(llama, BOS, (Stage(3, in_residual(TWINS)),)),
    # With 3 epochs and twin pairs it got 98.5 % and took "If today is Sunday" for "yesterday": both were changed.
    "gpt2": Recipe(gpt2, NO_BOS, (Stage(4, in_residual(MIXED)),)),
    # With the first stage alone it got 99.9 % and took "If yesterday was Monday" for "tomorrow".
    "deltanet": Recipe(
        deltanet,
        BOS,
        (
            Stage(3, (*in_residual(OWN), IN_STATE)),
            Stage(1, (*in_residual(ANY), IN_STATE), documents=20_000, rate=1e-3),
        ),
    ),
}
