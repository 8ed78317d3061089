"""One call: the columns its lanes run themselves, and the greedy steps after them.

Step 0 is the prefill and emits token 0; step k sees token k−1 in its one column and emits token k. Padding is on the
left, so the last column is every lane's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from causalab_mini.engine.caches import fresh, snapshot
from causalab_mini.engine.contract import Engine, Inputs, Join, Visit
from causalab_mini.engine.modules import Network
from causalab_mini.errors import OutOfMemory
from causalab_mini.plan.nodes import Place
from causalab_mini.run.decode import Choices
from causalab_mini.run.featurizers import Featurizers
from causalab_mini.run.picking import pickers
from causalab_mini.run.recurrence import NOTHING, States, during
from causalab_mini.run.states import Parent, State, last_logits, masks, new_ids, taken_over
from causalab_mini.run.values import Values
from causalab_mini.run.visits import Arguments, EditCells, KeepCells, Report, edited, empty, gather_stops, split, visit
from causalab_mini.schedule.ir import Call, Frame, Lane, Schedule
from causalab_mini.schedule.passes.layers import entering_keep

LOGITS = "logits of the last position"
TOKENS = "input_ids"
HEAD = "logits"


@dataclass(frozen=True)
class Greedy:
    """How the next token is chosen: the ids never picked, and what stands in padded places."""

    eos_ids: tuple[int, ...]
    pad_id: int


@dataclass(frozen=True)
class _Now:
    """One forward of a call: its lanes by number, the step, how many columns it has, and which lanes have not ended."""

    numbers: tuple[int, ...]
    lanes: tuple[Lane, ...]
    step: int
    width: int
    alive: tuple[bool, ...] | None = None

    def members(self) -> Iterator[tuple[int, int, Lane]]:
        """The lanes that have not ended: slot, number, lane."""
        for slot, (number, lane) in enumerate(zip(self.numbers, self.lanes, strict=True)):
            if self.alive is None or self.alive[slot]:
                yield slot, number, lane

    def happens(self, lane: Lane, frame: Frame, at: int) -> bool:
        """Whether `at` is this step."""
        return frame == "generated" and at == self.step

    def own(self, lane: Lane, frame: Frame, at: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Which entries of `at` happen in this forward, and at which columns of its tensors."""
        if frame == "generated":
            return ((at.index(self.step),), (self.width - 1,)) if self.step in at else ((), ())
        if self.step:
            return (), ()
        offset = self.width - len(lane.ids)
        entries = tuple(entry for entry, column in enumerate(at) if lane.start <= column < len(lane.ids))
        return entries, tuple(offset + at[entry] for entry in entries)


class CallRunner:
    """Runs the calls of a schedule in order on one loaded model into one store."""

    def __init__(
        self,
        schedule: Schedule,
        network: Network,
        engine: Engine,
        greedy: Greedy,
        arguments: Arguments,
        values: Values,
        featurizers: Featurizers | None = None,
    ) -> None:
        self._schedule = schedule
        self._network = network
        self._engine = engine
        self._greedy = greedy
        self._arguments = arguments
        self._values = values
        self._featurizers = featurizers or Featurizers(engine.device)
        self._recurrence = States(network, values, self._featurizers, arguments)
        self._last_use: dict[int, int] = {}
        self._forked: set[int] = set()
        for index, call in enumerate(schedule.calls):
            for number in call.lanes:
                parent = schedule.lanes[number].parent
                if parent is not None:
                    self._last_use[parent] = index
                    if not call.width:
                        self._forked.add(parent)
        self._states: dict[int, Parent] = {}
        self.halved = 0
        self.spared = 0
        """Columns of the last call that were planned and not run, since all its lanes had ended."""

    def run(self, index: int) -> None:
        """Run the schedule's call number `index`, in halves when memory runs out."""
        self.spared = 0
        self._run(self._schedule.calls[index])
        for finished in [number for number in self._states if self._last_use[number] <= index]:
            del self._states[finished]

    def _run(self, call: Call) -> None:
        try:
            self._whole(call)
        except OutOfMemory:
            if len(call.lanes) == 1:
                raise
            self.halved += 1
            self._values.forget(call.lanes)
            middle = len(call.lanes) // 2
            for lanes in (call.lanes[:middle], call.lanes[middle:]):
                self._run(replace(call, lanes=lanes))

    def _whole(self, call: Call) -> None:
        lanes = tuple(self._schedule.lanes[number] for number in call.lanes)
        steps = self._schedule.steps(call)
        parents = [self._parent(lane) for lane in lanes]
        followed = any(number in self._last_use for number in call.lanes)
        stored = steps > 1 or followed
        cache = taken_over(call, lanes, parents, stored=stored) if call.cached else fresh(self._network)
        mask = masks(call, lanes).to(self._engine.device)
        now = _Now(call.lanes, lanes, 0, call.width)
        states = any(tap.place.component.state for lane in lanes for tap in (*lane.edits, *lane.keeps))
        if call.width:
            if states:
                self._recurrence.act(now.members(), cache, during("taken over"))
            ids = new_ids(call, lanes, self._greedy.pad_id).to(self._engine.device)
            used = cache if stored or call.cached or states or _remembers(lanes) else None
            logits = self._forward(now, ids, mask, used, call.head)
        else:
            logits = last_logits(parents)
        # What later calls start from stays as it is now.
        left = snapshot(cache) if followed and (states or steps > 1) else cache
        if states:
            self._recurrence.act(now.members(), cache, during("left"))
        if followed:
            forked = any(number in self._forked for number in call.lanes)
            state = State(call, lanes, left, logits if forked else None)
            for slot, number in enumerate(call.lanes):
                if number in self._last_use:
                    self._states[number] = Parent(state, slot)
        if steps:
            # Later calls branch from the prompt's columns alone, so the loop may go on in the same cache.
            self._decode(_Now(call.lanes, lanes, 1, 1), steps, logits, mask, cache)

    def _parent(self, lane: Lane) -> Parent:
        return Parent(None, 0) if lane.parent is None or lane.start == 0 else self._states[lane.parent]

    def _decode(self, now: _Now, steps: int, logits: Tensor, mask: Tensor, cache: Cache) -> None:
        """The steps after the prefill, from the last position's logits [L, V] on."""
        states = any(tap.place.component.state for lane in now.lanes for tap in (*lane.edits, *lane.keeps))
        chosen_by = pickers(now.lanes, self._greedy.eos_ids, self._network)
        choices = Choices(self._greedy.eos_ids, self._greedy.pad_id, [lane.ends for lane in now.lanes], chosen_by)
        chosen = choices.choose(logits)
        for step in range(1, steps):
            if not any(choices.alive):
                self.spared += (steps - step) * len(now.lanes)
                break
            mask = torch.cat((mask, mask.new_ones(len(now.lanes), 1)), dim=-1)
            stepping = _Now(now.numbers, now.lanes, step, 1, choices.alive)
            if states:
                self._recurrence.act(stepping.members(), cache, stepping.happens, step, entering=True)
            logits = self._forward(stepping, chosen[:, None], mask, cache, (0,))
            if states:
                self._recurrence.act(stepping.members(), cache, stepping.happens, step)
            chosen = choices.choose(logits)
        for number, continuation in zip(now.numbers, choices.continuations(), strict=True):
            self._values.generated(number, continuation)

    def _forward(self, now: _Now, ids: Tensor, mask: Tensor, cache: Cache | None, head: tuple[int, ...]) -> Tensor:
        """One forward on `ids` [L, T]: raw logits [L, V] of the last column, empty when the head is not there."""
        joins, edits = self._joins(now, list(self._edits(now)))
        stops = gather_stops(edits, _keeps(now))
        place_of = {column: index for index, column in enumerate(head)}
        visits: list[Visit] = []
        for index, stop in enumerate(stops):
            identity = stop.place.component.identity
            if identity == TOKENS:
                for cells in stop.keeps:
                    self._values.keep(cells.lane, cells.keep, ids[cells.slot, list(cells.columns)][:, None].cpu())
                continue
            column_of = place_of.__getitem__ if identity == HEAD else int
            spot = self._network.locate(identity, stop.place.layer)
            visits.append(visit(stop, spot, str(index), column_of, self._report(now)))
        if now.width - 1 in place_of:
            visits = _with_last_logits(visits, self._network)
        asked = self._recurrence.inside(list(now.members()), cache, now.width) if not now.step else NOTHING
        positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -now.width :]
        columns = torch.tensor(head, dtype=torch.long, device=ids.device)
        out = self._engine.forward(Inputs(ids, mask, positions, columns, cache, joins, asked.given), visits)
        self._recurrence.keep(asked)
        for index, stop in enumerate(stops):
            if stop.keeps and stop.place.component.identity != TOKENS:
                for cells, value in split(stop, out[str(index)]):
                    self._values.keep(cells.lane, cells.keep, value)
        return out.get(LOGITS, torch.empty(0))

    def _edits(self, now: _Now) -> Iterator[EditCells]:
        for slot, number, lane in now.members():
            for edit in lane.edits:
                entries, columns = now.own(lane, edit.frame, edit.at)
                if columns and not edit.place.component.state:
                    argument = self._arguments(edit, now.step)
                    if empty(argument):
                        continue
                    if isinstance(argument, Tensor) and argument.shape[0] not in (1, len(columns)):
                        argument = argument[list(entries)]
                    at = tuple(edit.at[entry] for entry in entries)
                    featurizer = self._featurizers.some(edit.space)
                    yield EditCells(slot, number, columns, edit, argument, at, featurizer)

    def _joins(self, now: _Now, edits: list[EditCells]) -> tuple[tuple[Join, ...], list[EditCells]]:
        """The lanes that enter at a block's input, with their values there as written, and the edits still to do."""
        if now.step or not any(lane.entry for lane in now.lanes):
            return (), edits
        joins: list[Join] = []
        rest = edits
        device = self._engine.device
        entries = [(slot, lane.entry) for slot, lane in enumerate(now.lanes) if lane.entry is not None]
        for layer in sorted({entry.layer for _, entry in entries}):
            slots = [slot for slot, entry in entries if entry.layer == layer]
            rows = [self._entering(now.lanes[slot], layer, now.width) for slot in slots]
            hidden = torch.stack(rows).to(device)
            here = {slot: index for index, slot in enumerate(slots)}
            mine = [cells for cells in rest if cells.slot in here and _enters(cells.edit.place, layer)]
            rest = [cells for cells in rest if cells not in mine]
            for stop in gather_stops((replace(cells, slot=here[cells.slot]) for cells in mine), ()):
                hidden = edited(stop, hidden, int, self._report(now))
            joins.append(Join(layer, hidden))
        return tuple(joins), rest

    def _entering(self, lane: Lane, layer: int, width: int) -> Tensor:
        """[width, d]: what the lane enters block `layer` with, before its writes; padding on the left."""
        if lane.entry is None:
            raise ValueError("this lane does not enter in the middle of the network")
        value = self._values.value(lane.entry.twin, entering_keep(lane, layer))
        return torch.cat((value.new_zeros(width - len(value), value.shape[-1]), value))

    def _report(self, now: _Now) -> Report:
        def report(cells: list[EditCells], largest: Tensor, size: Tensor) -> None:
            changes = zip(largest.tolist(), size.tolist(), strict=True)
            for cell in cells:
                for at in cell.at:
                    self._values.changed(cell.lane, cell.edit, at, *next(changes))

        return report


def _remembers(lanes: Iterable[Lane]) -> bool:
    """Whether lanes look at what is seen only on its way into a cache."""
    return any(tap.place.component.lasting for lane in lanes for tap in (*lane.edits, *lane.keeps))


def _enters(place: Place, layer: int) -> bool:
    return place.component.name == "block_input" and place.layer == layer


def _keeps(now: _Now) -> Iterator[KeepCells]:
    for slot, number, lane in now.members():
        for keep in lane.keeps:
            _, columns = now.own(lane, keep.frame, keep.at)
            if columns and not keep.place.component.state:
                yield KeepCells(slot, number, columns, keep, len(lane.ids) + now.step)


def _last(logits: Tensor) -> Tensor:
    """[L, K, V] → [L, V]: the last column's."""
    return logits[:, -1].clone()


def _with_last_logits(visits: list[Visit], network: Network) -> list[Visit]:
    """The same visits, the logits of the last column kept too: after whatever edits them."""
    spot = network.locate(HEAD, None)
    keep: dict[str, Callable[[Tensor], Tensor]] = {LOGITS: _last}
    if visits and visits[-1].module == spot.path:
        last = visits[-1]
        return [*visits[:-1], Visit(last.module, last.side, last.edit, {**last.keep, **keep})]
    return [*visits, Visit(spot.path, spot.side, None, keep)]
