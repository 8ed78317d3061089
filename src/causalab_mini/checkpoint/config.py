"""What a checkpoint's config says: family, sizes, end and padding ids. Torch-free.

Knows the spellings different families use for one number; refuses to know modules (`engine.modules`) and weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from causalab_mini.checkpoint import files
from causalab_mini.checkpoint.families import Capability, capability_of
from causalab_mini.checkpoint.files import Json
from causalab_mini.errors import ModelUnavailable, PlanRefusal, Problem

DEPTH = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
HIDDEN = ("hidden_size", "n_embd", "d_model", "dim")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv")
DEFAULT_WINDOW = 4096
"""What transformers takes for a model that slides and does not say how far."""

NEURONS = ("intermediate_size", "n_inner", "ffn_dim")
CONTEXT = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len")


@dataclass(frozen=True)
class Config:
    """Numbers of a config. Sizes are counts: `depth` blocks, `hidden` width, `vocab` rows of the head.

    `parallel`: whether attention and MLP of a block read the same input.
    """

    model_type: str
    depth: int
    hidden: int
    vocab: int
    heads: int
    kv_heads: int
    head_dim: int
    neurons: int
    parallel: bool
    context: int | None
    eos_ids: frozenset[int]
    pad_id: int | None
    window: int | None = None
    generation_config: Mapping[str, Json] = field(default_factory=dict[str, Json])

    @property
    def supported(self) -> bool:
        """Whether this family's places can be read and written."""
        return self.capability is not None

    @property
    def capability(self) -> Capability | None:
        """What holds for this family; None when its places cannot be read and written."""
        return capability_of(self.model_type)


def read(folder: Path) -> Config:
    """The facts of the checkpoint in `folder`.

    `pad_id` and `eos_ids` are what the configs say; the tokenizer adds its own. `ModelUnavailable` when the config
    lacks a size, `PlanRefusal` when the model is code from a hub.
    """
    config = files.read_object(folder / files.CONFIG)
    for name, content in ((files.CONFIG, config), (files.TOKENIZER_CONFIG, _tokenizer_config(folder))):
        if content.get("auto_map"):
            message = f"the checkpoint's {name} asks for code of its own ('auto_map'), and code from a hub is never run"
            raise PlanRefusal(Problem("", message, "use a checkpoint whose model type transformers implements itself"))
    generation = files.read_optional(folder / files.GENERATION_CONFIG)
    text = config.get("text_config")
    sizes = text if isinstance(text, dict) and _number(config, DEPTH) is None else config
    model_type = sizes.get("model_type", config.get("model_type"))
    if not isinstance(model_type, str):
        raise ModelUnavailable(f"{folder / files.CONFIG} names no 'model_type'")
    depth, hidden, heads, vocab = (_size(folder, sizes, names) for names in (DEPTH, HIDDEN, HEADS, ("vocab_size",)))
    eos = (
        ids_of(generation.get("eos_token_id")) | ids_of(config.get("eos_token_id")) | ids_of(sizes.get("eos_token_id"))
    )
    family = capability_of(model_type)
    pad = sorted(ids_of(config.get("pad_token_id")) or ids_of(sizes.get("pad_token_id")))
    return Config(
        model_type=model_type,
        depth=depth,
        hidden=hidden,
        vocab=vocab,
        heads=heads,
        kv_heads=_number(sizes, KV_HEADS) or heads,
        head_dim=_number(sizes, ("head_dim",)) or (family and family.head_dim) or hidden // heads,
        neurons=_number(sizes, NEURONS) or 4 * hidden,
        parallel=model_type == "gpt_neox" and sizes.get("use_parallel_residual") is not False,
        context=_number(sizes, CONTEXT),
        eos_ids=frozenset(token for token in eos if token < vocab),
        pad_id=next((token for token in pad if token < vocab), None),
        window=_window(model_type, sizes),
        generation_config=generation,
    )


def _window(model_type: str, config: Mapping[str, Json]) -> int | None:
    """How many columns the attention of some block is limited to, None where all see the whole text."""
    slides = (
        config.get("use_sliding_window") is True
        if model_type.startswith("qwen")
        else model_type in ("mistral", "gemma2")
    )
    if not slides:
        return None
    window = config.get("sliding_window", DEFAULT_WINDOW)
    return window if isinstance(window, int) else None


def ids_of(value: Json) -> frozenset[int]:
    """Token ids of a config entry: a number, a list of numbers, or nothing."""
    entries = value if isinstance(value, list) else [value]
    return frozenset(
        entry for entry in entries if isinstance(entry, int) and entry >= 0 and not isinstance(entry, bool)
    )


def _tokenizer_config(folder: Path) -> dict[str, Json]:
    return files.read_optional(folder / files.TOKENIZER_CONFIG)


def _number(config: Mapping[str, Json], names: tuple[str, ...]) -> int | None:
    found = (config.get(name) for name in names)
    return next((value for value in found if isinstance(value, int) and not isinstance(value, bool)), None)


def _size(folder: Path, config: Mapping[str, Json], names: tuple[str, ...]) -> int:
    size = _number(config, names)
    if size is None or size < 1:
        raise ModelUnavailable(f"{folder / files.CONFIG} does not say '{names[0]}'")
    return size
