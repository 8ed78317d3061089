"""The loop's choices: which token comes next, by what margin, and which lanes have ended.

Choice is the argmax of the raw logits at the last position, ids of EOS left out where they are held off. A lane with
rules is given its tokens by a picker of its own (`run.picking`). A lane that stops ends with its first EOS; a forced
lane is fed its own tokens and ends with them. A lane that has ended is fed padding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from causalab_mini.run.picking import Picker
from causalab_mini.run.values import Continuation
from causalab_mini.schedule.ir import Ends


class Choices:
    """Choices of L lanes, step by step. `pickers`: those of the lanes, by slot, that have rules."""

    def __init__(
        self, eos_ids: tuple[int, ...], pad_id: int, ends: Sequence[Ends], pickers: Mapping[int, Picker] | None = None
    ) -> None:
        self._pickers = pickers or {}
        self._eos = list(eos_ids)
        self._pad = pad_id
        self._ends = ends
        self._held = [slot for slot, end in enumerate(ends) if not end.stops]
        self._alive = [end.forced is None or bool(end.forced) for end in ends]
        self._found: list[_Found] = [_Found() for _ in ends]

    @property
    def alive(self) -> tuple[bool, ...]:
        """Which lanes have a step to come."""
        return tuple(self._alive)

    def choose(self, logits: Tensor) -> Tensor:
        """The ids [L] that raw logits [L, V] emit; those of lanes that have ended are padding."""
        raw = logits.float()
        held = raw
        if self._eos and self._held:
            held = raw.clone()
            rows = torch.tensor(self._held, device=raw.device)
            held[rows[:, None], torch.tensor(self._eos, device=raw.device)] = -torch.inf
        top = held.topk(2, dim=-1).values
        best = held.argmax(-1).tolist()
        margins = (top[:, 0] - top[:, 1]).tolist()
        wants = raw.argmax(-1).tolist()
        fed: list[int] = []
        for slot, found in enumerate(self._found):
            if not self._alive[slot]:
                fed.append(self._pad)
                continue
            end, step = self._ends[slot], len(found.ids)
            if slot in self._pickers:
                token, margin = self._pickers[slot].pick(found.ids, raw[slot])
            else:
                token, margin = best[slot], margins[slot]
            if end.forced is None:
                found.margins.append(margin)
            else:
                token = end.forced[step]
            found.ids.append(token)
            found.wants.append(wants[slot])
            if wants[slot] in self._eos:
                found.stops.append(step)
            fed.append(token)
            over = end.forced is not None and step + 1 == len(end.forced)
            self._alive[slot] = not over and not (end.stops and token in self._eos)
        return torch.tensor(fed, device=logits.device)

    def continuations(self) -> list[Continuation]:
        """What every lane generated."""
        return [
            Continuation(tuple(found.ids), tuple(found.margins), tuple(found.stops), tuple(found.wants))
            for found in self._found
        ]


@dataclass(frozen=True)
class _Found:
    """What a lane has generated so far."""

    ids: list[int] = field(default_factory=list[int])
    margins: list[float] = field(default_factory=list[float])
    stops: list[int] = field(default_factory=list[int])
    wants: list[int] = field(default_factory=list[int])
