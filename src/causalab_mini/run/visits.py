"""From the edits and keeps of lanes to visits of modules: which cells of which tensor change, and which are kept.

A *cell* is one lane at one column of a tensor [L, T, w]. Knows lanes and cells; refuses to know modules beyond the
spot a place maps to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

from causalab_mini.engine.contract import Visit
from causalab_mini.engine.modules import Spot
from causalab_mini.plan.nodes import Place, Space
from causalab_mini.run import patterns
from causalab_mini.run.featurizers import Featurizer
from causalab_mini.schedule.ir import Edit, Keep
from causalab_mini.vocabulary.components import network_order
from causalab_mini.vocabulary.mechanisms import Argument, Mechanism

Arguments = Callable[[Edit, int], Tensor | float | None]
"""An edit's argument at a step: [len(at) or 1, w] in the prompt's frame, [1, w] at a step, or a number."""


def empty(argument: Tensor | float | None) -> bool:
    """Whether an argument turned out to have no value: then there is nothing to write."""
    return isinstance(argument, Tensor) and not argument.shape[0]


@dataclass(frozen=True)
class EditCells:
    """An edit of one lane in this call: its cells' columns, its argument [n or 1, w], a number or None, and the prompt
    columns or the step that the cells are. With a featurizer the argument is of its features; at patterns it is
    [n or 1, H, keys].
    """

    slot: int
    lane: int
    columns: tuple[int, ...]
    edit: Edit
    argument: Tensor | float | None
    at: tuple[int, ...]
    featurizer: Featurizer | None = None


@dataclass(frozen=True)
class KeepCells:
    """A keep of one lane in this call: its cells' columns, and how many keys the lane has by now."""

    slot: int
    lane: int
    columns: tuple[int, ...]
    keep: Keep
    keys: int = 0


@dataclass(frozen=True)
class _Alike:
    """What edits that are done at once have in common: their rank (first, second, … of their lane at this place), how
    they compute, on which coordinates of the last axis, in which space and on which of its features.
    """

    rank: int
    mechanism: Mechanism
    columns: tuple[int, ...] | None
    space: Space | None = None
    features: tuple[int, ...] | None = None


@dataclass
class Stop:
    """All that happens at one place in one call."""

    place: Place
    groups: dict[_Alike, list[EditCells]] = field(default_factory=dict[_Alike, list[EditCells]])
    ranks: dict[int, int] = field(default_factory=dict[int, int])
    keeps: list[KeepCells] = field(default_factory=list[KeepCells])

    def add(self, cells: EditCells) -> None:
        """One more edit, after those of its lane that are here already."""
        rank = self.ranks.get(cells.slot, 0)
        self.ranks[cells.slot] = rank + 1
        edit = cells.edit
        if edit.space is None:
            alike = _Alike(rank, edit.mechanism, selected(edit.place.columns, edit.features))
        else:
            alike = _Alike(rank, edit.mechanism, edit.place.columns, edit.space, edit.features)
        self.groups.setdefault(alike, []).append(cells)


class Report(Protocol):
    """Told how much each cell of an edit changed, in the order of the cells: [n] largest absolute changes, and [n]
    largest absolute entries before.
    """

    def __call__(self, cells: list[EditCells], largest: Tensor, size: Tensor, /) -> None:
        """Take the changes of one group."""
        ...


def selected(columns: tuple[int, ...] | None, features: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """The coordinates of the last axis a write touches: `features` of `columns`, or None for all."""
    if features is None:
        return columns
    return features if columns is None else tuple(columns[feature] for feature in features)


def gather_stops(edits: Iterable[EditCells], keeps: Iterable[KeepCells]) -> list[Stop]:
    """Everything a call does, by place, in forward order."""
    stops: dict[tuple[str, int | None], Stop] = {}

    def stop(place: Place) -> Stop:
        return stops.setdefault((place.identity, place.layer), Stop(place))

    for cells in edits:
        stop(cells.edit.place).add(cells)
    for cells in keeps:
        stop(cells.keep.place).keeps.append(cells)
    return sorted(stops.values(), key=lambda s: network_order(s.place.component, s.place.layer))


def visit(stop: Stop, spot: Spot, name: str, column_of: Callable[[int], int], report: Report) -> Visit:
    """The visit that does what `stop` says; `column_of` maps a call column to the tensor's."""
    keep: dict[str, Callable[[Tensor], Tensor]] = {}
    if stop.keeps:
        lanes, columns = _cells(((cells.slot, cells.columns) for cells in stop.keeps), column_of)

        def cells(t: Tensor) -> Tensor:
            return t[lanes.to(t.device), columns.to(t.device)].cpu()

        keep[name] = cells

    def edit(t: Tensor) -> Tensor:
        return edited(stop, t, column_of, report)

    return Visit(spot.path, spot.side, edit if stop.groups else None, keep, spot.item)


def split(stop: Stop, kept: Tensor) -> Iterable[tuple[KeepCells, Tensor]]:
    """The tensor a visit kept [n, w], cut back into its keeps' own values [len(columns), w]; patterns of [n, H, N]."""
    sizes = [len(cells.columns) for cells in stop.keeps]
    for cells, value in zip(stop.keeps, torch.split(kept, sizes), strict=True):
        features = cells.keep.place.columns
        if cells.keep.place.component.pattern:
            yield cells, patterns.kept(value, features, cells.keys)
        else:
            yield cells, value if features is None else value[:, list(features)]


def edited(stop: Stop, t: Tensor, column_of: Callable[[int], int], report: Report) -> Tensor:
    """A new tensor: `t` [L, T, w], or patterns [L, T, H, N], after all edits of the stop, in their order."""
    before, after = t, t.clone()
    for alike, group in sorted(stop.groups.items(), key=lambda item: item[0].rank):
        lanes, columns = _cells(((cells.slot, cells.columns) for cells in group), column_of)
        index = (lanes.to(t.device), columns.to(t.device))
        old = after[index]
        feature = None if alike.columns is None else list(alike.columns)
        x = old if feature is None else old[:, feature]
        was = before[index] if feature is None else before[index][:, feature]
        featurizer = group[0].featurizer
        if stop.place.component.pattern:
            new, one, other = patterns.changed(x, was, partial(_changed, alike, group))
        else:
            new = _changed(alike, group, x, was) if featurizer is None else _moved(featurizer, alike, group, x, was)
            one, other = x, new
        one = one.float()
        report(group, (other.float() - one).abs().amax(-1).cpu(), one.abs().amax(-1).cpu())
        if feature is None:
            after[index] = new
        else:
            old[:, feature] = new
            after[index] = old
    return after


def _changed(alike: _Alike, group: list[EditCells], f: Tensor, was: Tensor) -> Tensor:
    """The mechanism on values f [n, w]; `was` are the values before any write."""
    argument = was if alike.mechanism.argument is Argument.BEFORE else _arguments(group, f)
    return alike.mechanism.apply(f, argument)


def _moved(featurizer: Featurizer, alike: _Alike, group: list[EditCells], x: Tensor, was: Tensor) -> Tensor:
    """The mechanism on the features of values x [n, d], what they do not express left as it is."""
    f = featurizer.encode(x)
    before = featurizer.encode(was) if alike.mechanism.argument is Argument.BEFORE else f
    if alike.features is None:
        return featurizer.inverse(x, f, _changed(alike, group, f, before))
    among = list(alike.features)
    new = f.clone()
    new[:, among] = _changed(alike, group, f[:, among], before[:, among])
    return featurizer.inverse(x, f, new)


def _arguments(cells: list[EditCells], f: Tensor) -> Tensor | None:
    """The arguments of a group's cells as one [n, w], on f's device in f's dtype.

    An argument is in the space of the whole value: a write limited to some features takes those of it.
    """
    parts: list[Tensor] = []
    for cell in cells:
        count = len(cell.columns)
        if cell.argument is None:
            return None
        if isinstance(cell.argument, Tensor):
            features = cell.edit.features
            argument = cell.argument if features is None else cell.argument[:, list(features)]
            if cell.edit.place.component.pattern:
                argument = patterns.over(argument, f.shape[-1] // argument.shape[1]).flatten(1)
            parts.append(argument.to(f).expand(count, f.shape[-1]))
        else:
            parts.append(f.new_full((count, f.shape[-1]), cell.argument))
    return torch.cat(parts)


def _cells(cells: Iterable[tuple[int, tuple[int, ...]]], column_of: Callable[[int], int]) -> tuple[Tensor, Tensor]:
    lanes: list[int] = []
    columns: list[int] = []
    for slot, at in cells:
        lanes.extend([slot] * len(at))
        columns.extend(column_of(column) for column in at)
    return torch.tensor(lanes), torch.tensor(columns)
