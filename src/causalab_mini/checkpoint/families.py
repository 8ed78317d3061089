"""What holds for a model family: one row each. Torch-free; the modules of a family are `engine`'s.

A family joins the sharing of prefixes and the skipping of layers by its row.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import Any


class Resume(Enum):
    """Whether several columns at once can go on from a cache."""

    CHUNK = "yes"
    STEPS = "step by step"
    NO = "no"


@dataclass(frozen=True)
class Mixer:
    """What stands where attention stands in some or all blocks of a family: it hands a state from token to token.

    `kind` is its name. `parts`: the `linear_attention_*` values that can be told apart in it, and `fixed` those of them
    that follow from others, so that they can only be read. The others are the config's words for its sizes: key heads
    and their width K, value heads and their width U; None where there is one, or where it is 1 wide.
    """

    kind: str
    parts: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    key_heads: str | None = None
    key_width: str = "state_size"
    value_heads: str = "num_heads"
    value_width: str | None = "head_dim"


DELTA = ("key", "value", "decay", "beta", "query", "z")
GATED_DELTANET = Mixer(
    "Gated DeltaNet",
    DELTA,
    key_heads="linear_num_key_heads",
    key_width="linear_key_head_dim",
    value_heads="linear_num_value_heads",
    value_width="linear_value_head_dim",
)
MAMBA = Mixer("Mamba", value_heads="intermediate_size", value_width=None)
MAMBA_2 = Mixer("Mamba-2", DELTA, ("decay", "beta"), key_heads="n_groups")
BAMBA = Mixer("Mamba-2", DELTA, ("decay", "beta"), "mamba_n_groups", "mamba_d_state", "mamba_n_heads", "mamba_d_head")


@dataclass(frozen=True)
class Capability:
    """What is true of a family whatever the sizes of a checkpoint.

    `chunk_resume`: how columns go on from a cache. `enters`: whether a lane may begin at the input of any block.
    `attention`: what a document gets that leaves `attn_implementation` open, and `attentions` what it may ask for.
    `gated`: whether the MLP multiplies its activation by a second projection. `patterns`: whether its attention weighs
    keys by a softmax that can be looked at. `head_dim`: the width of a head where the config does not say, if that is
    not the hidden width divided by the heads. `mixer`: what stands in place of attention in some blocks; `attends`:
    whether there is attention in others, and an MLP in any. `experts` and `chosen`: how many experts a mixture has and
    a token passes, where the config does not say. `bare`: whether embeddings enter the first block as they are, without
    positions, a scale or a norm.
    """

    model_type: str
    chunk_resume: Resume = Resume.CHUNK
    enters: bool = True
    attention: str = "sdpa"
    attentions: tuple[str, ...] = ("eager", "sdpa")
    gated: bool = True
    patterns: bool = True
    head_dim: int | None = None
    mixer: Mixer | None = None
    attends: bool = True
    bare: bool = True
    experts: int = 0
    chosen: int = 0


ALONE: Any = {"enters": False, "attention": "eager", "attentions": ("eager",), "attends": False}
"""What holds for families that do not attend: there is no implementation of attention to choose."""

CAPABILITIES: tuple[Capability, ...] = (
    *(Capability(model_type) for model_type in ("llama", "mistral", "qwen2", "olmo2")),
    Capability("qwen3", head_dim=128),
    # Scores are capped, which sdpa cannot do.
    Capability("gemma2", attention="eager", attentions=("eager",), head_dim=256),
    Capability("gemma3_text", head_dim=256),
    Capability("mixtral", experts=8, chosen=2),
    Capability("qwen2_moe", experts=60, chosen=4),
    Capability("gpt2", gated=False, bare=False),
    Capability("gpt_neox", gated=False),
    Capability("opt", gated=False, bare=False),
    # Biases of scores come with a row for every head of every lane, which a block's lanes cannot be told from.
    Capability(
        "bloom", enters=False, attention="eager", attentions=("eager",), gated=False, patterns=False, bare=False
    ),
    *(
        Capability(model_type, enters=False, head_dim=256, mixer=GATED_DELTANET)
        for model_type in ("qwen3_5_text", "qwen3_next")
    ),
    Capability("bamba", enters=False, mixer=BAMBA),
    Capability("mamba", chunk_resume=Resume.STEPS, mixer=MAMBA, **ALONE),
    Capability("mamba2", mixer=MAMBA_2, **ALONE),
)


def capability_of(model_type: str) -> Capability | None:
    """The row of a model type, or None when its places cannot be read and written."""
    return next((row for row in CAPABILITIES if row.model_type == model_type), None)


def implemented(model_type: str) -> bool:
    """Whether transformers seems to have models of a type: it has a folder for them. Imports nothing of it."""
    found = find_spec("transformers")
    roots = [] if found is None else found.submodule_search_locations or []
    folders = [path.name for root in roots for path in (Path(root) / "models").glob("*/")]
    name = model_type.replace("-", "_")
    return any(name == folder or name.startswith(f"{folder}_") for folder in folders)
