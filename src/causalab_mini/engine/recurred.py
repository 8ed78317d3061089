"""The equations of the self-test for recurrent mixers: the recurrence, made again from what it was given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from causalab_mini.engine.caches import fresh, state
from causalab_mini.engine.contract import Given, Inputs
from causalab_mini.engine.hooks import Hooks
from causalab_mini.engine.mixers import RECURRENCES, recurrent
from causalab_mini.engine.modules import Network

ONE = torch.tensor([0])


@dataclass(frozen=True)
class Walk:
    """One mixer over three tokens at once, then over one more: what it was given, the states [1, Hv, K, U] after."""

    given: Mapping[str, Tensor]
    after: Tensor
    stepped: Mapping[str, Tensor]
    last: Tensor


def walks(network: Network, ids: Tensor) -> dict[int, Walk]:
    """Every recurrent mixer of the model over the tokens `ids` [1, 3], and the first of them once more."""
    layers = list(recurrent(network.model, network.family))
    if not layers:
        return {}
    cache, engine = fresh(network), Hooks(network)
    seen: list[tuple[dict[int, Given], dict[int, Tensor]]] = []
    for columns, past in ((ids, 0), (ids[:, :1], ids.shape[1])):
        given = {layer: Given() for layer in layers}
        mask = torch.ones(1, past + columns.shape[1], dtype=torch.long)
        positions = torch.arange(past, mask.shape[1])[None]
        head = torch.tensor([columns.shape[1] - 1])
        device = network.device
        inputs = Inputs(columns.to(device), mask.to(device), positions.to(device), head.to(device), cache, given=given)
        engine.forward(inputs, ())
        seen.append((given, {layer: state(network, cache, layer).clone() for layer in layers}))
    (first, after), (then, last) = seen
    return {
        layer: Walk(first[layer].of(ONE, slice(None)), after[layer], then[layer].of(ONE, slice(None)), last[layer])
        for layer in layers
    }


def kept(network: Network, walk: Walk) -> tuple[Tensor, Tensor]:
    """The state after three tokens: by the recurrence, and in the cache."""
    recurrence = RECURRENCES[network.family.recurrence]
    *_, made = recurrence.states(walk.given, recurrence.nothing(walk.given))
    return made, walk.after


def entered(network: Network, walk: Walk) -> tuple[Tensor, Tensor]:
    """The state after a step: by the recurrence from the state before it, and in the cache."""
    (made,) = RECURRENCES[network.family.recurrence].states(walk.stepped, walk.after)
    return made, walk.last


def read_out(network: Network, walk: Walk, layer: int) -> tuple[Tensor, Tensor]:
    """What the heads read of their states at three tokens: by the states, and as the mixer hands it on."""
    recurrence = RECURRENCES[network.family.recurrence]
    states = torch.stack(list(recurrence.states(walk.given, recurrence.nothing(walk.given))), 1)
    mixer = recurrent(network.model, network.family)[layer]
    return recurrence.read(walk.given, states, getattr(mixer, "D", None)), walk.given["z"]
