"""Spaces with their tensors: each loaded, or drawn, once for a run.

Computes in fp32, whatever the model's dtype is.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import torch
from torch import Tensor

from causalab_mini.errors import RunFailure
from causalab_mini.plan.nodes import Space
from causalab_mini.vocabulary.featurizers import Maps


@dataclass(frozen=True)
class Featurizer:
    """A space ready to compute in."""

    space: Space
    maps: Maps
    device: torch.device

    def encode(self, x: Tensor) -> Tensor:
        """The features [n, k] of values x [n, d], fp32, on x's device."""
        return self.space.node.encode(x.to(self.device, torch.float32), self.maps).to(x.device)

    def inverse(self, x: Tensor, f: Tensor, new: Tensor) -> Tensor:
        """The value [n, d] with features `new` [n, k] in place of x's features `f`: x̂(new) + (x − x̂(f)).

        What the features do not express stays as it is in x, and features that stay change nothing, to the bit. Like x
        in dtype and device.
        """
        moved = self.space.node.decode(new.to(self.device), self.maps)
        moved = moved - self.space.node.decode(f.to(self.device), self.maps)
        return (x.to(self.device, torch.float32) + moved).to(x)


class Featurizers:
    """The featurizers of one run on one device."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._made: dict[Space, Featurizer] = {}

    def of(self, space: Space) -> Featurizer:
        """The featurizer of a space. `RunFailure` when its file is not what it was when the run was planned."""
        if space not in self._made:
            tensors = space.node.maps(space.d, _loaded(space))
            maps = {name: tensor.to(self._device, torch.float32).contiguous() for name, tensor in tensors.items()}
            self._made[space] = Featurizer(space, maps, self._device)
        return self._made[space]

    def some(self, space: Space | None) -> Featurizer | None:
        """The same, or None for the value itself."""
        return None if space is None else self.of(space)


def _loaded(space: Space) -> dict[str, Tensor]:
    """The tensors of a space's file, by slot, fp32 on the CPU; none where it has no file."""
    from safetensors.torch import load

    if space.path is None:
        return {}
    try:
        content = space.path.read_bytes()
    except OSError as error:
        raise RunFailure(f"the file of the featurizer '{space.name}' cannot be read: {error.strerror}") from error
    if hashlib.sha256(content).hexdigest() != space.sha256:
        raise RunFailure(f"the file of the featurizer '{space.name}' changed after the run was planned")
    tensors = load(content)
    return {slot: tensors[name].float() for slot, name in space.tensors}
