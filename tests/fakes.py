"""A third engine: whole-number arithmetic on ids, for testing what stands above the contract in milliseconds.

A little causal model without weights. Its values are a function of the ids, the positions, the mask and what the cache
holds; edits reach later layers, later columns and, through the cache, later calls; keeps see edits; lanes may join at
a block. Every number is computed cell by cell, and sums run over columns in their order, padding adding zeros, so
nothing depends on what else is in a batch: whatever a schedule does, results are equal to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.cache_utils import DynamicCache

from causalab_mini.engine.contract import Inputs, Visit
from causalab_mini.engine.families import Family
from causalab_mini.engine.modules import Network
from causalab_mini.errors import EngineFailure

WIDTH = 4
VOCABULARY = 11
FAMILY = Family(
    "fake",
    "Fake",
    embeddings="embed",
    blocks="blocks",
    attention="attention",
    attention_added="attention",
    norm="norm",
    head="head",
)


@dataclass(frozen=True)
class Called:
    """A call that was made: lanes, columns, columns cached before, and the stops at which something happened."""

    lanes: int
    columns: int
    past: int
    stops: tuple[tuple[str, str], ...]


class Norm(nn.Module):
    """[..., w] → [..., w]: every entry's remainder by 7."""

    def forward(self, hidden: Tensor) -> Tensor:
        return torch.remainder(hidden, 7)


class Head(nn.Module):
    """[..., w] → [..., V]: entry v sums the hidden entries by weights 0 to 4, plus v/64 to break ties."""

    def forward(self, hidden: Tensor) -> Tensor:
        weights = torch.remainder(torch.arange(WIDTH)[:, None] * 3 + torch.arange(VOCABULARY) * 2, 5)
        # One product after the other: a matrix product may sum in another order for another shape.
        logits = torch.arange(VOCABULARY) / 64
        for entry in range(WIDTH):
            logits = logits + hidden[..., entry, None] * weights[entry].to(hidden.dtype)
        return logits


def network(depth: int = 2) -> Network:
    """A network of the fake family: paths to locate, a config for caches, the final norm and the head."""
    model = nn.Module()
    model.embed = nn.Identity()
    parts = ("attention", "mlp")
    model.blocks = nn.ModuleList(nn.ModuleDict({part: nn.Identity() for part in parts}) for _ in range(depth))
    model.norm, model.head = Norm(), Head()
    model.config = PreTrainedConfig(num_hidden_layers=depth)
    model.dtype = torch.float32
    model.weight = nn.Parameter(torch.zeros(1), requires_grad=False)
    return Network(cast(PreTrainedModel, model), FAMILY, torch.device("cpu"))


class Fake:
    """The engine. `calls` is what it was asked, in order."""

    def __init__(self, network: Network | None = None, depth: int = 2) -> None:
        self.device = torch.device("cpu")
        self.depth = depth if network is None else network.depth
        self.calls: list[Called] = []

    def forward(self, inputs: Inputs, visits: Sequence[Visit]) -> dict[str, Tensor]:
        """Run one call. Refuses visits twice at one place, out of forward order, or at no place."""
        kept: dict[str, Tensor] = {}
        waiting = list(visits)
        past = 0 if inputs.cache is None else inputs.cache.get_seq_length()

        def stop(module: str, side: str, value: Tensor) -> Tensor:
            if not waiting or (waiting[0].module, waiting[0].side) != (module, side):
                return value
            visit = waiting.pop(0)
            if visit.edit is not None:
                edited = visit.edit(value)
                assert edited.shape == value.shape
                assert edited.dtype == value.dtype
                value = edited
            kept.update({name: keep(value).clone() for name, keep in visit.keep.items()})
            return value

        real = inputs.mask[:, past:, None]
        entries = torch.arange(1, WIDTH + 1)
        hidden = stop("embed", "output", torch.remainder(inputs.ids[..., None] * entries + 1, 7).float())
        hidden = hidden + torch.remainder(inputs.positions[..., None] + entries, 3)
        joining = {join.layer: join.hidden for join in inputs.joins}
        present = 0 if joining else inputs.ids.shape[0]
        for layer in range(self.depth):
            if layer in joining:
                hidden = torch.cat((hidden[:present], joining[layer]))
                present = hidden.shape[0]
            if not present:
                continue
            path = f"blocks.{layer}"
            hidden = stop(path, "input", hidden)
            seen = self._seen(hidden * real[:present], inputs, layer)
            attention = stop(f"{path}.attention", "output", torch.remainder(seen + layer, 5))
            mlp = stop(f"{path}.mlp", "output", torch.remainder(3 * (hidden + attention) + layer, 4))
            hidden = stop(path, "output", hidden + attention + mlp)
        hidden = stop("norm", "output", Norm()(hidden))
        stop("", "output", Head()(hidden[:, inputs.head]))
        if waiting:
            raise EngineFailure(f"never came to {waiting[0].module} {waiting[0].side}, or came to it before")
        self.calls.append(Called(*inputs.ids.shape, past, tuple((visit.module, visit.side) for visit in visits)))
        return kept

    def _seen(self, hidden: Tensor, inputs: Inputs, layer: int) -> Tensor:
        """What attention adds up at each column: itself and every real column before it, [L, T, w]."""
        width = hidden.shape[1]
        if inputs.cache is not None:
            cache = cast(DynamicCache, inputs.cache)
            keys, _ = cache.update(hidden[:, None], hidden[:, None], layer)
            hidden = keys[:, 0] * inputs.mask[: keys.shape[0], :, None]
        return hidden.cumsum(1)[:, -width:]
