"""Share prefix, share text: columns that lanes begin with alike are run once. Promise: last bit.

In a causal model what a column computes depends on the tokens up to it and on the writes that act there, so lanes that
agree column by column, in tokens and in writes, agree in value. One rule serves every case: the clean prefix before
the first written position of a sweep, a template that all rows begin with, families of rows inside it.

A key or value that is written for one forward alone is in no cache: the columns from it on are run together, by every
lane for itself.

Lanes run in rounds. In each, a lane takes the longest beginning it shares with a lane of an earlier round; lanes that
could share still more with each other wait for the next round behind one of them, when that saves more columns than a
further call costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from causalab_mini.schedule.ir import Call, Edit, Lane, LaneValue, PublishedValue, Schedule, edits_before
from causalab_mini.schedule.keeps import handed_up
from causalab_mini.schedule.limits import Shape

Column = int | tuple[int, tuple[Edit, ...], int]
"""What a column computes: its token, and the edits that act there; last the lane that alone can run it, or -1."""


@dataclass
class _Node:
    """A beginning that has been run, and the lane that ran its last column."""

    lane: int
    next: dict[Column, _Node] = field(default_factory=dict[Column, "_Node"])


@dataclass(frozen=True)
class _Common:
    """Lanes that go on alike: one that leads, the rest, and how many columns some of them begin with in common."""

    lead: int
    rest: list[int]
    columns: int


def share_prefix(schedule: Schedule, shape: Shape) -> Schedule:
    """The same lanes, each starting where an earlier one has not been; one call for every round.

    In a family whose columns cannot go on from a cache, lanes are only put into rounds.
    """
    rounds = _Rounds(schedule, shape)
    while rounds.waiting:
        rounds.run()
    return handed_up(replace(schedule, lanes=tuple(rounds.lanes), calls=tuple(rounds.calls)))


class _Rounds:
    """The lanes placed so far, round by round."""

    def __init__(self, schedule: Schedule, shape: Shape) -> None:
        self._share = shape.resumes
        self._price = shape.price
        self.lanes = list(schedule.lanes)
        self.waiting = [number for call in schedule.calls for number in call.lanes]
        self.calls: list[Call] = []
        self._columns = {number: _columns(schedule, number) for number in self.waiting}
        self._needs = _needs(schedule, self.waiting)
        self._root = _Node(-1)
        self._done: set[int] = set()

    def run(self) -> None:
        """Place the lanes of one more round."""
        ready = [number for number in self.waiting if self._needs[number] <= self._done]
        if not ready:
            raise ValueError("lanes wait for each other")
        later = [number for number in self.waiting if not self._needs[number] <= self._done]
        needed = {source for number in later for source in self._needs[number]}
        shared = {number: _walk(self._root, self._columns[number]) for number in ready}
        families = self._families(ready, shared, needed)
        common = [
            _Common(lead, rest, max(_common(self._columns[lead], self._columns[one], shared[lead][0]) for one in rest))
            for lead, *rest in families
            if rest
        ]
        saved = sum(
            _common(self._columns[family.lead], self._columns[one], shared[one][0]) - shared[one][0]
            for family in common
            for one in family.rest
        )
        if self._share and saved >= self._price:
            chosen = self._behind(ready, common, shared, needed)
        else:
            chosen = self._patient(ready, common, shared, needed) if later and self._share else ready
        if later or len(chosen) < len(ready):
            # A written lane enters where it leaves the clean run of its tokens, if that comes in an earlier round.
            clean = {self.lanes[number].ids for number in chosen if not self.lanes[number].edits}
            held = [n for n in chosen if self.lanes[n].edits and self.lanes[n].ids in clean and n not in needed]
            chosen = [number for number in chosen if number not in set(held)]
        for number in chosen:
            start, node = shared[number]
            self.lanes[number] = replace(self.lanes[number], start=start, parent=node.lane if start else None)
        for number in chosen:
            if self._share:
                _insert(self._root, self._columns[number], number)
        self._done.update(chosen)
        self.waiting = [number for number in self.waiting if number not in self._done]
        self.calls.append(Call(tuple(chosen), 0, ()))

    def _families(
        self, ready: list[int], shared: dict[int, tuple[int, _Node]], needed: set[int]
    ) -> Iterable[list[int]]:
        """Lanes that go on alike from the same place, those that others need first."""
        families: dict[tuple[int, Column], list[int]] = {}
        for number in sorted(ready, key=lambda number: number not in needed):
            start, node = shared[number]
            families.setdefault((id(node), self._columns[number][start]), []).append(number)
        return families.values()

    def _behind(
        self,
        ready: list[int],
        common: list[_Common],
        shared: dict[int, tuple[int, _Node]],
        needed: set[int],
    ) -> list[int]:
        """One lane of each family runs, the others wait behind it.

        Lanes that generate wait with them, so that they go on together: what such a family has in common is run as a
        trunk, a lane of its own.
        """
        waits = {number for family in common for number in family.rest}
        trunks: list[int] = []
        for family in common:
            if self.lanes[family.lead].decode > 1 and family.columns > shared[family.lead][0]:
                trunks.append(self._trunk(family, shared))
                waits.add(family.lead)
        alone = {number for number in ready if self.lanes[number].decode > 1 and number not in needed}
        chosen = [number for number in ready if number not in waits | alone]
        if not chosen and not trunks:
            chosen = [number for number in ready if number not in waits]
        return [*chosen, *trunks]

    def _trunk(self, family: _Common, shared: dict[int, tuple[int, _Node]]) -> int:
        """A new lane that runs what a family has in common."""
        lead = self.lanes[family.lead]
        edits = edits_before(lead.edits, family.columns)
        number = len(self.lanes)
        self.lanes.append(Lane(lead.ids[: family.columns], edits, (), 0))
        self._columns[number] = self._columns[family.lead][: family.columns]
        shared[number] = shared[family.lead]
        return number

    def _patient(
        self,
        ready: list[int],
        common: list[_Common],
        shared: dict[int, tuple[int, _Node]],
        needed: set[int],
    ) -> list[int]:
        """The lanes that run now when a next round comes anyway: the others share more by then."""
        waits = {
            number
            for family in common
            for number in family.rest
            if number not in needed
            and _common(self._columns[family.lead], self._columns[number], shared[number][0]) > shared[number][0]
        }
        return [number for number in ready if number not in waits]


def _columns(schedule: Schedule, number: int) -> Sequence[Column]:
    lane = schedule.lanes[number]
    edits: dict[int, list[Edit]] = {}
    for edit in lane.edits:
        if edit.frame == "prompt":
            for at in edit.at:
                edits.setdefault(at + edit.after_column, []).append(edit)
        elif 0 in edit.at and not edit.place.component.state:
            edits.setdefault(len(lane.ids) - 1, []).append(edit)
    return [_column(token, tuple(edits[at]), number) if at in edits else token for at, token in enumerate(lane.ids)]


def _column(token: int, edits: tuple[Edit, ...], number: int) -> Column:
    alone = any(edit.place.component.passing for edit in edits)
    return token, edits, number if alone else -1


def _needs(schedule: Schedule, live: list[int]) -> dict[int, set[int]]:
    """The lanes whose values each lane's edits use."""
    published: dict[object, set[int]] = {}
    for (key, _), bound in schedule.bindings.items():
        published.setdefault(key, set()).update(bound)
    needs: dict[int, set[int]] = {}
    for number in live:
        own = needs.setdefault(number, set())
        for edit in schedule.lanes[number].edits:
            if isinstance(edit.argument, LaneValue):
                own.add(edit.argument.lane)
            elif isinstance(edit.argument, PublishedValue):
                own |= published[edit.argument.observe]
    return needs


def _walk(root: _Node, columns: Sequence[Column]) -> tuple[int, _Node]:
    """How many columns have been run, and by whom; the last one is always a lane's own."""
    node, start = root, 0
    for column in columns[:-1]:
        if column not in node.next:
            break
        node, start = node.next[column], start + 1
    return start, node


def _insert(root: _Node, columns: Sequence[Column], lane: int) -> None:
    node = root
    for column in columns:
        node = node.next.setdefault(column, _Node(lane))


def _common(one: Sequence[Column], other: Sequence[Column], start: int) -> int:
    """How many columns two lanes begin with alike, their last ones not counted, if they do up to `start`."""
    end = start
    limit = min(len(one), len(other) - 1)
    while end < limit and one[end] == other[end]:
        end += 1
    return end
