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

    `stored`: the columns to come are kept in it, which decoding and later branches need. Otherwise the taken columns
    are looked up layer by layer as the call comes to it, and nothing is held. The sources stay as they are.
    """
    order = torch.argsort(torch.cat([source.lanes for source in sources]))
    layers: list[AnyLayer] = []
    for index in range(len(sources[0].cache.layers)):
        layer = _Branch(sources, order, index)
        layers.append(layer.settled() if stored else layer)
    return Cache(layers=layers)


class _Branch(DynamicLayer):
    """One layer that begins with columns of other caches and forgets what is added to it."""

    def __init__(self, sources: Sequence[Source], order: Tensor, index: int) -> None:
        super().__init__()
        self._sources = sources
        self._order = order
        self._index = index

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """The taken columns and the new ones: keys and values [L, KV, P + T, h]; of the first lanes, if fewer come."""
        present = key_states.shape[0]
        keys, values = self._taken()
        return (
            torch.cat((keys[:present], key_states), dim=-2),
            torch.cat((values[:present], value_states), dim=-2),
        )

    def get_seq_length(self) -> int:
        """P: how many columns are taken."""
        return self._sources[0].columns.shape[1]

    def settled(self) -> DynamicLayer:
        """A plain layer holding the taken columns."""
        layer = DynamicLayer()
        keys, values = self._taken()
        layer.lazy_initialization(keys, values)
        layer.keys, layer.values = keys, values
        return layer

    def _taken(self) -> tuple[Tensor, Tensor]:
        layers = [cast(DynamicLayer, source.cache.layers[self._index]) for source in self._sources]
        keys = [_cells(layer.keys, source) for layer, source in zip(layers, self._sources, strict=True)]
        values = [_cells(layer.values, source) for layer, source in zip(layers, self._sources, strict=True)]
        if len(keys) == 1 and bool((self._order == torch.arange(len(self._order))).all()):
            return keys[0], values[0]
        order = self._order.to(keys[0].device)
        return torch.cat(keys)[order], torch.cat(values)[order]


def _cells(t: Tensor | None, source: Source) -> Tensor:
    """Of `t` [S, KV, W, h], the source's columns of its slots: [n, KV, P, h]."""
    if t is None:
        raise ValueError("a branch starts from a cache that has been filled")
    slots, columns = source.slots.to(t.device), source.columns.to(t.device)
    return t.transpose(1, 2)[slots[:, None], columns].transpose(1, 2)
