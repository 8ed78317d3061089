"""One call: a prefill of its lanes and, when they decode, the greedy loop after it.

Step 0 is the prefill and emits token 0; step k sees token k−1 in its one column and emits token k. Choice is the
argmax of the raw logits at the last position, ids of EOS left out. Padding is on the left, so the last column is
every lane's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from causalab_mini.engine.caches import fresh
from causalab_mini.engine.contract import Engine, Inputs, Visit
from causalab_mini.engine.modules import Network
from causalab_mini.run.values import Continuation, Values
from causalab_mini.run.visits import EditCells, KeepCells, Stop, gather_stops, split, visit
from causalab_mini.schedule.ir import Call, Edit, Lane

LOGITS = "logits of the last position"
TOKENS = "input_ids"
HEAD = "logits"

Arguments = Callable[[Edit, int], Tensor | float | None]
"""An edit's argument at a step: [len(at) or 1, w] at the prefill's prompt frame, [1, w] at a step, or a number."""


@dataclass(frozen=True)
class Greedy:
    """How the next token is chosen: the ids never picked, and what stands in padded places."""

    eos_ids: tuple[int, ...]
    pad_id: int


@dataclass(frozen=True)
class CallRunner:
    """Runs calls of one loaded model into one store."""

    network: Network
    engine: Engine
    greedy: Greedy
    arguments: Arguments
    values: Values

    def run(self, call: Call, lanes: tuple[Lane, ...]) -> None:
        """Run `call`, whose lanes are `lanes` (in its order)."""
        device = self.engine.device
        ids, mask = padded([lane.ids for lane in lanes], call.width, self.greedy.pad_id)
        ids, mask = ids.to(device), mask.to(device)
        steps = max(lane.decode for lane in lanes)
        cache = fresh(self.network) if steps else None
        logits = self._forward(call, lanes, 0, ids, mask, cache)
        if not steps:
            return
        choices = _Choices(self.greedy.eos_ids)
        for step in range(1, steps):
            ids = choices.choose(logits)[:, None]
            mask = torch.cat((mask, mask.new_ones(len(lanes), 1)), dim=-1)
            logits = self._forward(call, lanes, step, ids, mask, cache)
        choices.choose(logits)
        for number, continuation in zip(call.lanes, choices.continuations(), strict=True):
            self.values.continuations[number] = continuation

    def _forward(
        self, call: Call, lanes: tuple[Lane, ...], step: int, ids: Tensor, mask: Tensor, cache: Cache | None
    ) -> Tensor:
        """One forward on `ids` [L, T]: raw logits [L, V] of the last position, empty when no lane decodes."""
        width = ids.shape[1]
        stops = gather_stops(self._edits(call, lanes, step, width), _keeps(call, lanes, step, width))
        decoding = cache is not None
        head = sorted({*logit_columns(stops), *([width - 1] if decoding else [])})
        place_of = {column: index for index, column in enumerate(head)}
        visits: list[Visit] = []
        for index, stop in enumerate(stops):
            identity = stop.place.component.identity
            if identity == TOKENS:
                for cells in stop.keeps:
                    self.values.keep(cells.lane, cells.keep, ids[cells.slot, list(cells.columns)][:, None].cpu())
                continue
            column_of = place_of.__getitem__ if identity == HEAD else int
            spot = self.network.locate(identity, stop.place.layer)
            visits.append(visit(stop, spot, str(index), column_of, self._report))
        if decoding:
            visits = _with_last_logits(visits, self.network)
        positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -width:]
        inputs = Inputs(ids, mask, positions, torch.tensor(head, dtype=torch.long, device=ids.device), cache)
        out = self.engine.forward(inputs, visits)
        for index, stop in enumerate(stops):
            if stop.keeps and stop.place.component.identity != TOKENS:
                for cells, value in split(stop, out[str(index)]):
                    self.values.keep(cells.lane, cells.keep, value)
        return out.get(LOGITS, torch.empty(0))

    def _edits(self, call: Call, lanes: tuple[Lane, ...], step: int, width: int) -> Iterator[EditCells]:
        for slot, (number, lane) in enumerate(zip(call.lanes, lanes, strict=True)):
            for edit in lane.edits:
                columns = _columns(edit.frame, edit.at, step, width - len(lane.ids), width)
                if columns:
                    yield EditCells(slot, number, columns, edit, self.arguments(edit, step))

    def _report(self, cells: list[EditCells], largest: Tensor) -> None:
        sizes = [len(cell.columns) for cell in cells]
        for cell, part in zip(cells, torch.split(largest, sizes), strict=True):
            self.values.changed(cell.lane, cell.edit.name, len(cell.columns), float(part.max()))


def padded(rows: list[tuple[int, ...]], width: int, pad_id: int) -> tuple[Tensor, Tensor]:
    """Left-padded ids [L, width] and their mask (1 where a token is the row's own), both int64."""
    ids = [[pad_id] * (width - len(row)) + list(row) for row in rows]
    mask = [[0] * (width - len(row)) + [1] * len(row) for row in rows]
    return torch.tensor(ids, dtype=torch.long), torch.tensor(mask, dtype=torch.long)


def _columns(frame: str, at: tuple[int, ...], step: int, offset: int, width: int) -> tuple[int, ...]:
    """The columns of a call's tensors that `at` means at `step`; `offset` is the lane's padding at the prefill."""
    if frame == "generated":
        return (width - 1,) if step in at else ()
    return tuple(offset + column for column in at) if step == 0 else ()


def _keeps(call: Call, lanes: tuple[Lane, ...], step: int, width: int) -> Iterator[KeepCells]:
    for slot, (number, lane) in enumerate(zip(call.lanes, lanes, strict=True)):
        for keep in lane.keeps:
            columns = _columns(keep.frame, keep.at, step, width - len(lane.ids), width)
            if columns:
                yield KeepCells(slot, number, columns, keep)


def logit_columns(stops: list[Stop]) -> set[int]:
    """The columns whose logits the stops read or write."""
    at_head = [stop for stop in stops if stop.place.component.identity == HEAD]
    cells: list[EditCells | KeepCells] = [cells for stop in at_head for cells in stop.keeps]
    cells += [cells for stop in at_head for group in stop.groups.values() for cells in group.cells]
    return {column for cell in cells for column in cell.columns}


def _last(logits: Tensor) -> Tensor:
    """[L, K, V] → [L, V]: the last column's."""
    return logits[:, -1].clone()


def _with_last_logits(visits: list[Visit], network: Network) -> list[Visit]:
    """The same visits, the logits of the last position kept too: after whatever edits them."""
    spot = network.locate("logits", None)
    keep: dict[str, Callable[[Tensor], Tensor]] = {LOGITS: _last}
    if visits and visits[-1].module == spot.path:
        last = visits[-1]
        return [*visits[:-1], Visit(last.module, last.side, last.edit, {**last.keep, **keep})]
    return [*visits, Visit(spot.path, spot.side, None, keep)]


class _Choices:
    """Greedy choices of all lanes, step by step."""

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
        chosen = held.argmax(-1)
        top = held.topk(2, dim=-1).values
        self._ids.append(chosen)
        self._margins.append(top[:, 0] - top[:, 1])
        raw_best = raw.argmax(-1)
        self._stops.append(torch.isin(raw_best, torch.tensor(self._eos, device=raw.device)))
        return chosen

    def continuations(self) -> list[Continuation]:
        """What every lane generated."""
        ids = torch.stack(self._ids, dim=1).tolist()
        margins = torch.stack(self._margins, dim=1).tolist()
        stops = torch.stack(self._stops, dim=1).tolist()
        return [
            Continuation(tuple(i), tuple(m), next((k for k, stop in enumerate(s) if stop), None))
            for i, m, s in zip(ids, margins, stops, strict=True)
        ]
