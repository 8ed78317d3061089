"""What the self-test saw of a model in one forward, and when two values of it are equal.

Values are [3, w], of the tokens a, b, a. Knows components and layers; what has to be equal is `engine.proofs`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.engine.modules import Network
from causalab_mini.engine.recurred import Walk
from causalab_mini.vocabulary.components import COMPONENTS

NAMES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}


class NotShown(Exception):
    """Nothing that was seen speaks for or against a component; the message says what is missing."""


def tolerance(dtype: str) -> float:
    """How far two sides of an equation may be apart, as a share of the largest number in them."""
    return 1e-4 if dtype == "fp32" else 3e-2


def tokens(vocabulary: int) -> Tensor:
    """Three tokens a, b, a from inside a vocabulary: [1, 3]."""
    return torch.tensor([[vocabulary // 2, vocabulary // 3, vocabulary // 2]])


def close(one: Tensor, other: Tensor, share: float) -> bool:
    """Whether two tensors of one shape are apart by no more than `share` of the largest number."""
    if one.shape != other.shape:
        return False
    one, other = one.float(), other.float()
    return bool(torch.isfinite(one).all() and (one - other).abs().max() <= share * other.abs().max().clamp(min=1e-6))


@dataclass(frozen=True)
class Seen:
    """What one forward held: by component and layer."""

    network: Network
    checkpoint: Checkpoint
    values: Mapping[str, Mapping[int | None, Tensor]]
    share: float
    walks: Mapping[int, Walk] = field(default_factory=dict[int, Walk])

    def of(self, name: str) -> Iterator[tuple[int | None, Tensor]]:
        """A component's value at every layer that has it; `NotShown` where it could not be looked at."""
        identity = self.checkpoint.value_of(COMPONENTS.get(name))
        if identity not in self.values:
            raise NotShown(f"{name} could not be looked at")
        yield from self.values[identity].items()

    def at(self, name: str, layer: int | None) -> Tensor:
        """A component's value at one layer."""
        found = dict(self.of(name))
        if layer not in found:
            raise NotShown(f"there is no {name} to compare with")
        return found[layer]

    def close(self, one: Tensor, other: Tensor) -> bool:
        """Whether two values are equal, as closely as the dtype lets them be."""
        return close(one, other, self.share)

    def off(self, one: Tensor, other: Tensor) -> str:
        """How far two values of one shape are apart, in words."""
        gap = (one.float() - other.float()).abs().max() / other.float().abs().max().clamp(min=1e-6)
        return f"off by {gap.item():.2g} of the largest number"

    def block(self, layer: int | None) -> nn.Module:
        """The block of a layer."""
        return self.network.model.get_submodule(f"{self.network.family.blocks}.{layer}")

    def heads(self, name: str, layer: int | None) -> Tensor:
        """A value by heads: [heads, 3, h]."""
        count = self.checkpoint.heads_of(COMPONENTS.get(name))
        return self.at(name, layer).unflatten(-1, (count, -1)).transpose(0, 1).float()
