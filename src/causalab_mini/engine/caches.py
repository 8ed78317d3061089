"""Key-value caches of a call: a new one, and one whose lanes begin with columns of earlier calls' lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard, cast

import torch
from torch import Tensor
from transformers.cache_utils import (
    Cache,
    CacheLayerMixin,
    DummyLayer,
    DynamicLayer,
    LinearAttentionCacheLayerMixin,
    LinearAttentionLayer,
)

from causalab_mini.engine.mixers import RECURRENCES, recurrent
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
    """An empty cache for `network`'s layers: every column is kept, and masks alone limit what is attended to.

    A recurrent layer keeps its state in place of columns.
    """
    states = recurrent(network.model, network.family)
    layers: list[AnyLayer] = [
        LinearAttentionLayer() if layer in states else DynamicLayer() for layer in range(network.depth)
    ]
    return Cache(layers=layers)


def state(network: Network, cache: Cache, layer: int) -> Tensor:
    """What a recurrent layer hands on to the next column: [L, Hv, K, U] fp32, the cache's own memory."""
    found = cast(LinearAttentionLayer, cache.layers[layer]).recurrent_states[0]
    if found is None:
        raise ValueError(f"the cache of layer {layer} has no state yet")
    return RECURRENCES[network.family.recurrence].seen(found)


def write_state(network: Network, cache: Cache, layer: int, value: Tensor) -> None:
    """Let a recurrent layer go on from `value` [L, Hv, K, U]. Some kernels hold on to the memory, so it is kept."""
    with torch.inference_mode():
        state(network, cache, layer).copy_(value)


def snapshot(cache: Cache) -> Cache:
    """A cache that stays as it is while the given one is gone on with, as far as columns up to now are concerned."""
    return Cache(
        layers=[_copied(layer) if isinstance(layer, LinearAttentionLayer) else layer for layer in cache.layers]
    )


def _copied(
    layer: LinearAttentionLayer, sources: Sequence[tuple[LinearAttentionLayer, Tensor]] = ()
) -> LinearAttentionLayer:
    """A recurrent layer like `layer`, holding the states of some lanes of `sources`, or all of its own."""
    new = LinearAttentionLayer()
    held = sources or [(layer, torch.arange(_filled(layer.conv_states[0]).shape[0]))]
    for name in ("conv_states", "recurrent_states"):
        rows = [_filled(getattr(own, name)[0]) for own, _ in held]
        picked = [states[slots.to(states.device)] for states, (_, slots) in zip(rows, held, strict=True)]
        getattr(new, name)[0] = torch.cat(picked)
    new.conv_kernel_size[0] = layer.conv_kernel_size[0]
    new.is_conv_states_initialized[0] = new.is_recurrent_states_initialized[0] = new.has_previous_state[0] = True
    new.device, new.dtype = layer.device, layer.dtype
    return new


def _filled(states: Tensor | None) -> Tensor:
    if states is None:
        raise ValueError("a recurrent layer starts from one that has been filled")
    return states


def branch(sources: Sequence[Source], *, stored: bool) -> Cache:
    """A cache of L lanes that begin with P columns of `sources`; each lane stands in exactly one of them.

    The taken columns are looked up layer by layer as a call comes to it, and never held twice. `stored`: the columns to
    come are kept, which decoding and later branches need; otherwise they are forgotten. The sources stay as they are.
    """
    order = torch.argsort(torch.cat([source.lanes for source in sources]))
    in_order = bool((order == torch.arange(len(order))).all())
    layers: list[AnyLayer] = []
    for index in range(len(sources[0].cache.layers)):
        states = [(layer, source.slots) for source in sources if _keeps_state(layer := source.cache.layers[index])]
        if states:
            layers.append(_in_order(_copied(states[0][0], states), None if in_order else order))
            continue
        taken = [cast(DynamicLayer, source.cache.layers[index]) for source in sources]
        layers.append(_Branch(taken, sources, None if in_order else order, stored=stored))
    return Cache(layers=layers)


def _keeps_state(layer: AnyLayer) -> TypeGuard[LinearAttentionLayer]:
    return isinstance(layer, LinearAttentionLayer)


def _in_order(layer: LinearAttentionLayer, order: Tensor | None) -> LinearAttentionLayer:
    """The same layer, its lanes put in order."""
    if order is not None:
        layer.reorder_cache(cast(torch.LongTensor, order))
    return layer


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
