"""Key-value caches of a call: a new one, and a copy of one with its lanes chosen anew."""

from __future__ import annotations

import copy
from typing import cast

import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicCache

from causalab_mini.engine.modules import Network


def fresh(network: Network) -> Cache:
    """An empty cache of the kind `network`'s layers need."""
    return DynamicCache(config=network.model.config)


def fork(cache: Cache, lanes: Tensor) -> Cache:
    """A cache of its own whose lane i is lane `lanes[i]` of `cache`.

    `lanes` [n] int64, repeats allowed: one prefix lane becomes many. `cache` stays as it is, whatever is done to
    the copy: selecting lanes allocates, and nothing that is written in place is shared.
    """
    if lanes.ndim != 1:
        raise ValueError(f"fork takes lanes [n], not {tuple(lanes.shape)}")
    # The tensors go into the copy's memo, so that the structure is copied and the tensors only once, by selection.
    shared = {id(tensor): tensor for layer in cache.layers for tensor in _tensors(vars(layer))}
    copied = copy.deepcopy(cache, shared)
    copied.reorder_cache(cast(torch.LongTensor, lanes))
    return copied


def _tensors(value: object) -> list[Tensor]:
    """The tensors inside `value`, through dicts, lists and tuples."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        return [tensor for item in value.values() for tensor in _tensors(item)]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _tensors(item)]
    return []
