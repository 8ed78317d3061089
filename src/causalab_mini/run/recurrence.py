"""Recurrent states of a call: read and written in the cache between forwards, and made again inside a prompt.

A state lies between two columns. Of a lane's columns in a call, the state after the last one is in the cache when they
have run; the one the lane goes on from is there before; those between are made from what the recurrence was given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from causalab_mini.engine.caches import state, write_state
from causalab_mini.engine.contract import Given
from causalab_mini.engine.mixers import RECURRENCES
from causalab_mini.engine.modules import Network
from causalab_mini.run.featurizers import Featurizers
from causalab_mini.run.values import Values
from causalab_mini.run.visits import Arguments, EditCells, KeepCells, Stop, edited, empty, gather_stops, split
from causalab_mini.schedule.ir import Edit, Frame, Lane

ENTERING = "linear_attention_state_in"

Member = tuple[int, int, Lane]
"""A lane of a call: its slot, its number, itself."""

Moment = Literal["taken over", "inside", "left"]


def moment(lane: Lane, frame: Frame, at: int) -> Moment | None:
    """When, in the prefill of a lane, a state is there: that after column `at`, or of step `at`."""
    if frame == "generated":
        return "left" if at == 0 else None
    if at == len(lane.ids) - 1:
        return "left"
    if lane.start <= at:
        return "inside"
    return "taken over" if at == lane.start - 1 else None


def during(which: Moment) -> Callable[[Lane, Frame, int], bool]:
    """Whether a state is there at a moment of the prefill."""
    return lambda lane, frame, at: moment(lane, frame, at) == which


@dataclass(frozen=True)
class Inside:
    """States inside the prompt that a call is asked for: by layer, the cells, and what is needed to make them."""

    stops: tuple[Stop, ...]
    before: dict[int, Tensor]
    given: dict[int, Given]


NOTHING = Inside((), {}, {})


class States:
    """Reads and writes the states of the lanes of calls."""

    def __init__(self, network: Network, values: Values, featurizers: Featurizers, arguments: Arguments) -> None:
        self._network = network
        self._values = values
        self._featurizers = featurizers
        self._arguments = arguments

    def act(
        self,
        members: Iterable[Member],
        cache: Cache,
        now: Callable[[Lane, Frame, int], bool],
        step: int = 0,
        *,
        entering: bool = False,
    ) -> None:
        """Write, then keep, the states that are in the cache: those for which `now` is true.

        `entering`: before a step, what it begins with is kept instead.
        """
        edits: list[EditCells] = []
        keeps: list[KeepCells] = []
        for slot, number, lane in members:
            for edit in lane.edits:
                if edit.place.component.state and not entering:
                    happening = (at for at in edit.at if now(lane, edit.frame, at))
                    edits += [cells for at in happening for cells in self._cells(slot, number, edit, at, step)]
            for keep in lane.keeps:
                if keep.place.component.state and (keep.place.component.name == ENTERING) == entering:
                    keeps += [KeepCells(slot, number, (0,), keep) for at in keep.at if now(lane, keep.frame, at)]
        for stop in gather_stops(edits, keeps):
            layer = stop.place.layer
            assert layer is not None, "a state belongs to a block"
            found = state(self._network, cache, layer)
            flat = found.flatten(1)[:, None]
            if stop.groups:
                flat = edited(stop, flat, int, self._report)
                write_state(self._network, cache, layer, flat[:, 0].view(found.shape))
            if stop.keeps:
                slots = torch.tensor([cells.slot for cells in stop.keeps], device=flat.device)
                for cells, value in split(stop, flat[slots, 0].cpu()):
                    self._values.keep(cells.lane, cells.keep, value)

    def inside(self, members: Sequence[Member], cache: Cache | None, width: int) -> Inside:
        """What a prefill of `width` columns must be listened to for, before it runs."""
        keeps: list[KeepCells] = []
        for slot, number, lane in members:
            offset = width - len(lane.ids)
            for keep in lane.keeps:
                if keep.place.component.state:
                    at = tuple(offset + at for at in keep.at if moment(lane, keep.frame, at) == "inside")
                    keeps += [KeepCells(slot, number, at, keep)] if at else []
        stops = tuple(gather_stops((), keeps))
        layers = [stop.place.layer for stop in stops if stop.place.layer is not None]
        resumed = cache is not None and any(lane.start for _, _, lane in members)
        before = {layer: state(self._network, cache, layer).clone() for layer in layers} if resumed and cache else {}
        return Inside(stops, before, {layer: Given() for layer in layers})

    def keep(self, asked: Inside) -> None:
        """Make the states that were asked for, once the call has run."""
        for stop in asked.stops:
            recurrence = RECURRENCES[self._network.family.recurrence]
            layer = stop.place.layer
            assert layer is not None, "a state belongs to a block"
            slots = torch.tensor(sorted({cells.slot for cells in stop.keeps}))
            row_of = {slot: row for row, slot in enumerate(slots.tolist())}
            last = max(column for cells in stop.keeps for column in cells.columns)
            parts = asked.given[layer].of(slots, slice(last + 1))
            if layer in asked.before:
                initial = asked.before[layer][slots.to(asked.before[layer].device)]
            else:
                initial = recurrence.nothing(parts)
            wanted = {column for cells in stop.keeps for column in cells.columns}
            found = {
                column: made.flatten(1).cpu()
                for column, made in enumerate(recurrence.states(parts, initial))
                if column in wanted
            }
            made = torch.cat([found[c][row_of[cells.slot]][None] for cells in stop.keeps for c in cells.columns])
            for cells, value in split(stop, made):
                self._values.keep(cells.lane, cells.keep, value)

    def _cells(self, slot: int, number: int, edit: Edit, at: int, step: int) -> Iterator[EditCells]:
        argument = self._arguments(edit, step)
        if empty(argument):
            return
        if isinstance(argument, Tensor) and argument.shape[0] == len(edit.at) > 1:
            argument = argument[[edit.at.index(at)]]
        yield EditCells(slot, number, (0,), edit, argument, (at,), self._featurizers.some(edit.space))

    def _report(self, cells: list[EditCells], largest: Tensor, size: Tensor) -> None:
        for cell, change, before in zip(cells, largest.tolist(), size.tolist(), strict=True):
            for at in cell.at:
                self._values.changed(cell.lane, cell.edit, at, change, before)
