"""The greedy loop's choices: which token comes next, and by what margin.

Choice is the argmax of the raw logits at the last position, ids of EOS left out.
"""

from __future__ import annotations

import torch
from torch import Tensor

from causalab_mini.run.values import Continuation


class Choices:
    """Greedy choices of L lanes, step by step."""

    def __init__(self, eos_ids: tuple[int, ...]) -> None:
        self._eos = list(eos_ids)
        self._ids: list[Tensor] = []
        self._margins: list[Tensor] = []
        self._stops: list[Tensor] = []

    def choose(self, logits: Tensor) -> Tensor:
        """The next ids [L] from raw logits [L, V]."""
        raw = logits.float()
        held = raw
        if self._eos:
            held = raw.clone()
            held[:, self._eos] = -torch.inf
        top = held.topk(2, dim=-1).values
        self._ids.append(held.argmax(-1))
        self._margins.append(top[:, 0] - top[:, 1])
        self._stops.append(torch.isin(raw.argmax(-1), torch.tensor(self._eos, device=raw.device)))
        return self._ids[-1]

    def continuations(self) -> list[Continuation]:
        """What every lane generated."""
        ids = torch.stack(self._ids, dim=1).tolist()
        margins = torch.stack(self._margins, dim=1).tolist()
        stops = torch.stack(self._stops, dim=1).tolist()
        return [
            Continuation(tuple(i), tuple(m), tuple(step for step, stop in enumerate(s) if stop))
            for i, m, s in zip(ids, margins, stops, strict=True)
        ]
