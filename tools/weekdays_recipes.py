"""What differs between the checkpoints that ship with the package: their models, and how they are trained."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen3_5ForCausalLM,
    Qwen3_5TextConfig,
)

from corpus import Writer
from weekdays_interchange import Draw, Swap, answers, entities, residual, state

CONTEXT = 128
ENTITY_LAYERS = (0, 1, 2)  # where the entity is to be found at its own token
STATE_LAYER, STATE_HEADS = 3, slice(0, 2)  # the recurrent layer that is to carry it to the answer, and its value heads
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
        layer_types=["linear_attention", "linear_attention", "full_attention"] * 2,
        linear_num_key_heads=2,
        linear_num_value_heads=4,
        linear_key_head_dim=24,
        linear_value_head_dim=24,
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
    return Qwen3_5ForCausalLM(config)


def state_rows(model: Any) -> dict[str, tuple[int, slice]]:
    """Layers, and heads of STATE_LAYER, whose recurrent state a card tells about, by their names there."""
    rows: dict[str, tuple[int, slice]] = {}
    for layer, kind in enumerate(getattr(model.config, "layer_types", ())):
        if kind == "linear_attention":
            rows[str(layer)] = (layer, slice(None))
        if kind == "linear_attention" and layer == STATE_LAYER:
            rows[f"{layer}, heads 0 and 1"] = (layer, STATE_HEADS)
            rows[f"{layer}, heads 2 and 3"] = (layer, slice(STATE_HEADS.stop, None))
    return rows


@dataclass(frozen=True)
class Recipe:
    """`build` makes an untrained model of the ids of a tokenizer; `interchanges` take turns, one per step."""

    build: Callable[..., Any]
    specials: tuple[str, ...]  # of the tokenizer: BOS (or none), EOS, padding
    epochs: int
    interchanges: tuple[tuple[Draw, Swap], ...]


def at_entities(draw: Draw) -> tuple[tuple[Draw, Swap], ...]:
    """The residual of the entity, at each of ENTITY_LAYERS."""
    return tuple((draw, residual(layer)) for layer in ENTITY_LAYERS)


TWINS = entities(Writer.twin_pair)
IN_STATE = state(STATE_LAYER, STATE_HEADS)
# With 3 epochs and twin pairs GPT-2 got 98.5 % and took "If today is Sunday" for "yesterday": both were changed.
RECIPES = {
    "llama": Recipe(llama, BOS, 3, at_entities(TWINS)),
    "gpt2": Recipe(gpt2, NO_BOS, 4, at_entities(entities(Writer.mixed_pair))),
    "deltanet": Recipe(deltanet, BOS, 4, (*at_entities(TWINS), (TWINS, IN_STATE), (answers, IN_STATE))),
}
