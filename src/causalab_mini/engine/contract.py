"""What an engine is: something that runs one call of a causal language model and lets values be seen and changed.

An engine knows modules and tensors and nothing else: no positions, mechanisms, frames, rows or documents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin


@dataclass(frozen=True)
class Join:
    """Lanes that enter a call at the input of block `layer`: the next ones in order, with `hidden` [k, T, d] there."""

    layer: int
    hidden: Tensor


class Given:
    """What passed into the recurrence of one mixer in one call, by part: [L, T, heads, …]."""

    def __init__(self) -> None:
        self.parts: dict[str, Tensor] = {}

    def of(self, lanes: Tensor, columns: slice) -> dict[str, Tensor]:
        """The parts of some lanes at some columns: [n, t, heads, …] fp32."""
        return {name: part[lanes.to(part.device), columns].float() for name, part in self.parts.items()}


@dataclass(frozen=True)
class Inputs:
    """One call: L lanes, T new columns, P columns already in the cache.

    `ids` and `positions` [L, T] int64, `mask` [L, P+T] int64 (1 real, 0 padding); `head` [K]: the columns of T,
    ascending, whose logits are computed. `cache` grows by T columns. With `joins`, in the order of layers, every lane
    enters by one of them: a block runs the lanes that have joined, and blocks before the first join are left out.
    `given`: blocks whose recurrent mixer is listened to, each with what is filled by the call.
    """

    ids: Tensor
    mask: Tensor
    positions: Tensor
    head: Tensor
    cache: Cache | None = None
    joins: tuple[Join, ...] = ()
    given: Mapping[int, Given] = field(default_factory=dict[int, "Given"])

    def __post_init__(self) -> None:
        past = 0 if self.cache is None else length(self.cache, self.past)
        lanes, width = self.ids.shape if self.ids.ndim == 2 else (-1, -1)
        wanted = {"positions": (lanes, width), "mask": (lanes, past + width), "head": (self.head.shape[0],)}
        found = {name: tuple(getattr(self, name).shape) for name in wanted}
        if lanes < 0 or found != wanted:
            raise ValueError(f"a call on ids {tuple(self.ids.shape)} after {past} columns has {found}, not {wanted}")

    @property
    def past(self) -> int:
        """P: the columns in the cache before the call."""
        return self.mask.shape[1] - self.ids.shape[1]


def length(cache: Cache, unknown: int) -> int:
    """How many columns a cache holds; `unknown` where all its layers keep a state in place of columns."""
    return cache.get_seq_length() if any(isinstance(layer, CacheLayerMixin) for layer in cache.layers) else unknown


@dataclass(frozen=True)
class Visit:
    """A stop at one side of one module.

    The tensor is the module's first input or its output (element `item` of a tuple; the logits [L, K, V] at the root,
    whose path is ""). Where the module works on the columns of all lanes one under the other, [L·T, w], it is seen as
    [L, T, w]. `edit` maps the tensor to its replacement, then each `keep` maps it to a tensor to hand back: edits
    before keeps.
    """

    module: str
    side: Literal["input", "output"]
    edit: Callable[[Tensor], Tensor] | None = None
    keep: Mapping[str, Callable[[Tensor], Tensor]] = field(default_factory=dict[str, Callable[[Tensor], Tensor]])
    item: int = 0


class Engine(Protocol):
    """Runs calls of one loaded model."""

    device: torch.device

    def forward(self, inputs: Inputs, visits: Sequence[Visit]) -> dict[str, Tensor]:
        """Run one call with `visits`, which come in forward order, at most one per (module, side).

        Returns what the visits keep, by name: never memory that the model goes on using. They may be tensors of
        torch's inference mode: read and combine them freely, clone before writing in place or taking gradients. A
        failure inside the model is raised as `EngineFailure`, out of memory as `OutOfMemory`; an error of this package
        raised by an edit or a keep passes as it is.
        """
        ...
