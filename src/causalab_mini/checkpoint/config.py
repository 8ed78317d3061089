"""What a checkpoint's config says: family, sizes, end and padding ids. Torch-free.

Knows the spellings different families use for one number; refuses to know modules (`engine.modules`) and weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from causalab_mini.checkpoint import blocks, files
from causalab_mini.checkpoint.families import Capability, Mixer, capability_of
from causalab_mini.checkpoint.files import Json
from causalab_mini.errors import ModelUnavailable, PlanRefusal, Problem

DEPTH = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
HIDDEN = ("hidden_size", "n_embd", "d_model", "dim")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv")
DEFAULT_WINDOW = 4096
"""What transformers takes for a model that slides and does not say how far."""

NEURONS = ("intermediate_size", "n_inner", "ffn_dim")
EXPERTS = ("num_experts", "num_local_experts")
CONTEXT = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len")


@dataclass(frozen=True)
class Recurrent:
    """The recurrent mixers of a checkpoint: the blocks that have one, and its sizes.

    Keys and queries have `key_heads` heads, K wide; values and states `value_heads`, values U wide.
    """

    layers: tuple[int, ...]
    key_heads: int
    key_width: int
    value_heads: int
    value_width: int


@dataclass(frozen=True)
class Config:
    """Numbers of a config. Sizes are counts: `depth` blocks, `hidden` width, `vocab` rows of the head.

    `parallel`: whether attention and MLP of a block read the same input. `lacking`: components that no block has, with
    the reason. `mixtures`: the blocks whose MLP is a mixture of `experts` experts; every token passes `chosen` of them.
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
    recurrent: Recurrent | None = None
    lacking: Mapping[str, str] = field(default_factory=dict[str, str])
    mixtures: frozenset[int] = frozenset()
    experts: int = 0
    chosen: int = 0
    generation_config: Mapping[str, Json] = field(default_factory=dict[str, Json])

    @property
    def supported(self) -> bool:
        """Whether this family's places can be read and written."""
        return self.capability is not None

    @property
    def capability(self) -> Capability | None:
        """What holds for this family; None when its places cannot be read and written."""
        return capability_of(self.model_type)

    @property
    def mixer(self) -> Mixer | None:
        """What stands in place of attention in some blocks, if anything does."""
        return None if self.capability is None else self.capability.mixer


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
    depth, hidden, vocab = (_size(folder, sizes, names) for names in (DEPTH, HIDDEN, ("vocab_size",)))
    eos = (
        ids_of(generation.get("eos_token_id")) | ids_of(config.get("eos_token_id")) | ids_of(sizes.get("eos_token_id"))
    )
    family = capability_of(model_type)
    heads = _size(folder, sizes, HEADS) if family is None or family.attends else 1
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
        lacking=blocks.lacking(model_type, sizes),
        mixtures=blocks.mixtures(model_type, sizes, depth),
        experts=_number(sizes, EXPERTS) or (family.experts if family else 0),
        chosen=_number(sizes, ("num_experts_per_tok",)) or (family.chosen if family else 0),
        recurrent=None if family is None or family.mixer is None else _recurrent(folder, sizes, family, depth, hidden),
        generation_config=generation,
    )


def _recurrent(folder: Path, config: Mapping[str, Json], family: Capability, depth: int, hidden: int) -> Recurrent:
    """The recurrent blocks of a config, and their sizes."""
    mixer = family.mixer
    assert mixer is not None, "a family without a mixer has no recurrent blocks"

    def size(name: str) -> int:
        # What configs leave out is what transformers makes of the others.
        made = {"intermediate_size": int(hidden * _factor(config, "expand", 2)), "mamba_d_head": None}
        known = _number(config, (name,))
        if known is None and name == "mamba_d_head":
            known = int(hidden * _factor(config, "mamba_expand", 2)) // size("mamba_n_heads")
        return known or made.get(name) or _size(folder, config, (name,))

    return Recurrent(
        layers=_recurrent_layers(config, family, depth),
        key_heads=1 if mixer.key_heads is None else size(mixer.key_heads),
        key_width=size(mixer.key_width),
        value_heads=size(mixer.value_heads),
        value_width=1 if mixer.value_width is None else size(mixer.value_width),
    )


def _recurrent_layers(config: Mapping[str, Json], family: Capability, depth: int) -> tuple[int, ...]:
    """The numbers of the blocks that have a mixer, by the three ways configs say so."""
    if not family.attends:
        return tuple(range(depth))
    kinds, attending = config.get("layer_types"), config.get("attn_layer_indices")
    if isinstance(kinds, list):
        return tuple(layer for layer, kind in enumerate(kinds) if kind == "linear_attention")
    if "attn_layer_indices" in config:
        own = attending if isinstance(attending, list) else []
        return tuple(layer for layer in range(depth) if layer not in own)
    interval = _number(config, ("full_attention_interval",)) or 4
    return tuple(layer for layer in range(depth) if (layer + 1) % interval)


def _factor(config: Mapping[str, Json], name: str, default: float) -> float:
    found = config.get(name, default)
    return found if isinstance(found, int | float) else default


def _window(model_type: str, config: Mapping[str, Json]) -> int | None:
    """How many columns the attention of some block is limited to, None where all see the whole text."""
    if model_type.startswith("qwen") and config.get("use_sliding_window") is not True:
        return None
    slides = model_type in ("mistral", "gemma2", "gemma3_text")
    window = config.get("sliding_window", DEFAULT_WINDOW if slides else None)
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
