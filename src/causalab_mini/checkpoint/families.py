"""What a schedule may do with a model family: one row each. Torch-free; the modules of a family are `engine`'s.

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
    """`chunk_resume`: how columns go on from a cache. `enters`: whether a lane may begin at the input of any block."""

    model_type: str
    chunk_resume: Resume = Resume.CHUNK
    enters: bool = True


CAPABILITIES: tuple[Capability, ...] = tuple(
    Capability(model_type) for model_type in ("llama", "mistral", "qwen2", "qwen3", "gpt2", "gpt_neox")
)


def capability_of(model_type: str) -> Capability | None:
    """The row of a model type, or None when its places cannot be read and written."""
    return next((row for row in CAPABILITIES if row.model_type == model_type), None)
