"""What holds for a model family: one row each. Torch-free; the modules of a family are `engine`'s.

A family joins the sharing of prefixes and the skipping of layers by its row.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Resume(Enum):
    """Whether several columns at once can go on from a cache."""

    CHUNK = "yes"
    STEPS = "step by step"
    NO = "no"


@dataclass(frozen=True)
class Capability:
    """What is true of a family whatever the sizes of a checkpoint.

    `chunk_resume`: how columns go on from a cache. `enters`: whether a lane may begin at the input of any block.
    `attention`: what a document gets that leaves `attn_implementation` open, and `attentions` what it may ask for.
    `gated`: whether the MLP multiplies its activation by a second projection. `head_dim`: the width of a head where the
    config does not say, if that is not the hidden width divided by the heads.
    """

    model_type: str
    chunk_resume: Resume = Resume.CHUNK
    enters: bool = True
    attention: str = "sdpa"
    attentions: tuple[str, ...] = ("eager", "sdpa")
    gated: bool = True
    head_dim: int | None = None


CAPABILITIES: tuple[Capability, ...] = (
    *(Capability(model_type) for model_type in ("llama", "mistral", "qwen2")),
    Capability("qwen3", head_dim=128),
    # Scores are capped, which sdpa cannot do.
    Capability("gemma2", attention="eager", attentions=("eager",), head_dim=256),
    Capability("gpt2", gated=False),
    Capability("gpt_neox", gated=False),
)


def capability_of(model_type: str) -> Capability | None:
    """The row of a model type, or None when its places cannot be read and written."""
    return next((row for row in CAPABILITIES if row.model_type == model_type), None)
