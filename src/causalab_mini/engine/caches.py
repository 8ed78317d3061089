"""Key-value caches of a call: a new one, and one whose lanes begin with columns of earlier calls' lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin, DummyLayer, DynamicLayer, LinearAttentionCacheLayerMixin

from causalab_mini.engine.modules import Network

AnyLayer = CacheLayerMixin | LinearAttentionCacheLayerMixin | DummyLayer


@dataclass(frozen=True)
class Source:
    """A finished cache and what is taken from it.

    `lanes` [n]: the new cache's lanes that begin here; `slots` [n]: the lanes of `cache` they follow; `columns` [n, P]:
    which of its columns they take, in order. All int64, on the CPU.
    """

    cache: Cache
    lanes: Tensor
    slots: Tensor
    columns: Tensor


def fresh(network: Network) -> Cache:
    """An empty cache for `network`'s layers: every column is kept, and masks alone limit what is attended to."""
    return Cache(layers=[DynamicLayer() for _ in range(network.depth)])


def branch(sources: Sequence[Source], *, stored: bool) -> Cache:
    """A cache of L lanes that begin with P columns of `sources`; each lane stands in exactly one of them.

    The taken columns are looked up layer by layer as a call comes to it, and never held twice. `stored`: the columns to
    come are kept, which decoding and later branches need; otherwise they are forgotten. The sources stay as they are.
    """
    order = torch.argsort(torch.cat([source.lanes for source in sources]))
    in_order = bool((order == torch.arange(len(order))).all())
    layers: list[AnyLayer] = []
    for index in range(len(sources[0].cache.layers)):
        taken = [cast(DynamicLayer, source.cache.layers[index]) for source in sources]
        layers.append(_Branch(taken, sources, None if in_order else order, stored=stored))
    return Cache(layers=layers)


class _Branch(DynamicLayer):
    """One layer that begins with columns of other caches' layers."""

    def __init__(
        self, taken: Sequence[DynamicLayer], sources: Sequence[Source], order: Tensor | None, *, stored: bool
    ) -> None:
        super().__init__()
        self._taken_from = taken
        self._sources = sources
        self._order = order
        self._stored = stored

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """The taken columns and the new ones: keys and values [L, KV, P + T, h]; of the first lanes, if fewer come."""
        if self._stored:
            key_states, value_states = super().update(key_states, value_states)
        present = key_states.shape[0]
        keys, values = self._taken()
        return torch.cat((keys[:present], key_states), dim=-2), torch.cat((values[:present], value_states), dim=-2)

    def get_seq_length(self) -> int:
        """P, and the columns kept since."""
        return self._sources[0].columns.shape[1] + super().get_seq_length()

    def whole(self) -> tuple[Tensor, Tensor]:
        """All columns, taken and kept: keys and values [L, KV, P + T, h]."""
        keys, values = self._taken()
        if self.keys is None or self.values is None:
            return keys, values
        return torch.cat((keys, self.keys), dim=-2), torch.cat((values, self.values), dim=-2)

    def _taken(self) -> tuple[Tensor, Tensor]:
        wholes = [_whole(layer) for layer in self._taken_from]
        keys = [_cells(key, source) for (key, _), source in zip(wholes, self._sources, strict=True)]
        values = [_cells(value, source) for (_, value), source in zip(wholes, self._sources, strict=True)]
        if self._order is None:
            return (keys[0], values[0]) if len(keys) == 1 else (torch.cat(keys), torch.cat(values))
        order = self._order.to(keys[0].device)
        return torch.cat(keys)[order], torch.cat(values)[order]


def _whole(layer: DynamicLayer) -> tuple[Tensor, Tensor]:
    """Every column of a filled layer: keys and values [S, KV, W, h]."""
    if isinstance(layer, _Branch):
        return layer.whole()
    if layer.keys is None or layer.values is None:
        raise ValueError("a branch starts from a cache that has been filled")
    return layer.keys, layer.values


def _cells(t: Tensor, source: Source) -> Tensor:
    """Of `t` [S, KV, W, h], the source's columns of its slots: [n, KV, P, h]."""
    slots, columns = source.slots.to(t.device), source.columns.to(t.device)
    return t.transpose(1, 2)[slots[:, None], columns].transpose(1, 2)
