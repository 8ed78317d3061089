"""A greedy loop over an engine, for tests: a left-padded batch, a cache, the head at the last column.

The short form of what a run does, without lanes, places or schedules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from causalab_mini.engine.caches import fresh
from causalab_mini.engine.contract import Engine, Inputs, Visit
from causalab_mini.engine.modules import Network


@dataclass(frozen=True)
class Decoded:
    """ids [L, N]; of every step, the raw logits [L, V] and what the visits kept."""

    ids: Tensor
    logits: list[Tensor]
    kept: list[dict[str, Tensor]]


def positions(mask: Tensor, columns: int) -> Tensor:
    """Position ids [L, columns] of the last columns of `mask`."""
    return (mask.cumsum(-1) - 1).clamp(min=0)[:, -columns:]


def decode(
    engine: Engine,
    network: Network,
    ids: Tensor,
    mask: Tensor,
    steps: int,
    visits: Callable[[int], Sequence[Visit]] = lambda step: (),
    held: Sequence[int] = (),
) -> Decoded:
    """Decode `steps` tokens; `visits(step)` are made in that step's call, the last of them perhaps at the logits."""
    cache, chosen, logits, kept = fresh(network), [], [], []
    for step in range(steps):
        if step:
            ids = chosen[-1][:, None]
            mask = torch.cat((mask, mask.new_ones(len(mask), 1)), dim=-1)
        head = torch.tensor([ids.shape[1] - 1])
        inputs = Inputs(ids, mask, positions(mask, ids.shape[1]), head, cache)
        seen = engine.forward(inputs, _with_logits(visits(step)))
        logits.append(seen.pop(""))
        kept.append(seen)
        choice = logits[-1].clone()
        choice[:, list(held)] = -torch.inf
        chosen.append(choice.argmax(-1))
    return Decoded(torch.stack(chosen, dim=1), logits, kept)


def _with_logits(visits: Sequence[Visit]) -> list[Visit]:
    """The visits, the last position's logits kept as well, under the name ""."""
    visits = list(visits)
    root = visits.pop() if visits and visits[-1].module == "" else Visit("", "output")
    return [*visits, Visit("", "output", root.edit, {**root.keep, "": lambda t: t[:, -1]})]
