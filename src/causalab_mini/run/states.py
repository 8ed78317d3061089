"""The state a call leaves behind, and the cache of a call whose lanes start from earlier ones'.

A call's cache has `cached` columns taken over, then `width` of its own, then one for every later step; each part is
padded on the left. So a lane's prompt column c is found at `cached − start + c` before its start and at
`cached + width − len(ids) + c` from it on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from causalab_mini.engine.caches import Source, branch
from causalab_mini.schedule.ir import Call, Lane


@dataclass
class State:
    """What later calls may start from: the cache, and the last position's logits [L, V] where one may need them."""

    call: Call
    lanes: tuple[Lane, ...]
    cache: Cache
    logits: Tensor | None = None

    def columns(self, slot: int, count: int, width: int) -> list[int]:
        """Where the first `count` prompt columns of a lane are in the cache, left-padded to `width`."""
        lane = self.lanes[slot]
        taken = self.call.cached - lane.start
        own = self.call.cached + self.call.width - len(lane.ids)
        found = [taken + column if column < lane.start else own + column for column in range(count)]
        return [0] * (width - count) + found


@dataclass(frozen=True)
class Parent:
    """Where a lane's taken columns come from: a state and a slot in it; None for a lane that takes none."""

    state: State | None
    slot: int


def taken_over(call: Call, lanes: Sequence[Lane], parents: Sequence[Parent], *, stored: bool) -> Cache:
    """A cache holding the columns before each lane's start. `stored`: whether the call's own columns are kept in it."""
    states: list[State] = []
    for parent in parents:
        if parent.state is not None and all(parent.state is not state for state in states):
            states.append(parent.state)
    # A lane that takes nothing stands with the first source: its columns are padding, whatever they hold.
    home = [states[0] if parent.state is None else parent.state for parent in parents]
    sources: list[Source] = []
    for state in states:
        members = [slot for slot in range(len(lanes)) if home[slot] is state]
        slots = [parents[slot].slot for slot in members]
        columns = [state.columns(parents[slot].slot, lanes[slot].start, call.cached) for slot in members]
        sources.append(Source(state.cache, torch.tensor(members), torch.tensor(slots), torch.tensor(columns)))
    return branch(sources, stored=stored)


def last_logits(parents: Sequence[Parent]) -> Tensor:
    """The logits [L, V] from which lanes without columns of their own go on."""
    rows: list[Tensor] = []
    for parent in parents:
        if parent.state is None or parent.state.logits is None:
            raise ValueError("a lane without columns needs a parent whose last logits are kept")
        rows.append(parent.state.logits[parent.slot])
    return torch.stack(rows)


def masks(call: Call, lanes: Sequence[Lane]) -> Tensor:
    """[L, cached + width] int64: 1 where a column is the lane's own, taken over or new."""
    rows = [
        [0] * (call.cached - lane.start) + [1] * lane.start + [0] * (call.width - lane.columns) + [1] * lane.columns
        for lane in lanes
    ]
    return torch.tensor(rows, dtype=torch.long)


def new_ids(call: Call, lanes: Sequence[Lane], pad_id: int) -> Tensor:
    """[L, width] int64: the tokens each lane runs itself, left-padded."""
    rows = [[pad_id] * (call.width - lane.columns) + list(lane.ids[lane.start :]) for lane in lanes]
    return torch.tensor(rows, dtype=torch.long)
