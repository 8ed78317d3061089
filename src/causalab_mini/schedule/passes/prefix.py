"""Share prefix, share text: columns that lanes begin with alike are run once. Promise: last bit.

In a causal model what a column computes depends on the tokens up to it and on the writes that act there, so lanes that
agree column by column, in tokens and in writes, agree in value. One rule serves every case: the clean prefix before
the first written position of a sweep, a template that all rows begin with, families of rows inside it.

Lanes run in rounds. In each, a lane takes the longest beginning it shares with a lane of an earlier round; lanes that
could share still more with each other wait for the next round behind one of them, when that saves more columns than a
further call costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from causalab_mini.schedule.ir import Call, Edit, LaneValue, PublishedValue, Schedule
from causalab_mini.schedule.keeps import handed_up
from causalab_mini.schedule.limits import CALL_COLUMNS

Column = int | tuple[int, tuple[Edit, ...]]
"""What a column computes: its token, and the edits that act there."""


@dataclass
class _Node:
    """A beginning that has been run, and the lane that ran its last column."""

    lane: int
    next: dict[Column, _Node] = field(default_factory=dict[Column, "_Node"])


def share_prefix(schedule: Schedule) -> Schedule:
    """The same lanes, each starting where an earlier one has not been; one call for every round."""
    live = [number for call in schedule.calls for number in call.lanes]
    columns = {number: _columns(schedule, number) for number in live}
    needs = _needs(schedule, live)
    root = _Node(-1)
    lanes = list(schedule.lanes)
    calls: list[Call] = []
    done: set[int] = set()
    waiting = live
    while waiting:
        ready = [number for number in waiting if needs[number] <= done]
        if not ready:
            raise ValueError("lanes wait for each other")
        shared = {number: _walk(root, columns[number]) for number in ready}
        later = [number for number in waiting if not needs[number] <= done]
        needed = {source for number in later for source in needs[number]}
        chosen = _chosen(ready, shared, columns, needed if later else None)
        if later:
            # The clean run of a written lane's tokens lets it enter higher up, if it comes in an earlier round.
            running = {schedule.lanes[number].ids for number in chosen if not schedule.lanes[number].edits}
            chosen = [n for n in chosen if n in needed or not schedule.lanes[n].edits or lanes[n].ids not in running]
        for number in chosen:
            start, node = shared[number]
            lanes[number] = replace(lanes[number], start=start, parent=node.lane if start else None)
        for number in chosen:
            _insert(root, columns[number], number)
        done.update(chosen)
        waiting = [number for number in waiting if number not in done]
        calls.append(Call(tuple(chosen), 0, ()))
    return handed_up(replace(schedule, lanes=tuple(lanes), calls=tuple(calls)))


def _columns(schedule: Schedule, number: int) -> Sequence[Column]:
    lane = schedule.lanes[number]
    edits: dict[int, list[Edit]] = {}
    for edit in lane.edits:
        if edit.frame == "prompt":
            for at in edit.at:
                edits.setdefault(at, []).append(edit)
        elif 0 in edit.at:
            edits.setdefault(len(lane.ids) - 1, []).append(edit)
    return [(token, tuple(edits[at])) if at in edits else token for at, token in enumerate(lane.ids)]


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


def _chosen(
    ready: list[int],
    shared: dict[int, tuple[int, _Node]],
    columns: dict[int, Sequence[Column]],
    needed: set[int] | None,
) -> list[int]:
    """The lanes to run now: all that are ready, less those that had better wait behind one of their family.

    `needed`: the lanes whose values the lanes that are not ready use, None when all are ready. Waiting costs a call,
    unless there will be a next round anyway and nothing in it asks for the lane.
    """
    first = needed or set[int]()
    leaders: dict[tuple[int, Column], int] = {}
    savings: dict[int, int] = {}
    for number in sorted(ready, key=lambda number: number not in first):
        start, node = shared[number]
        leader = leaders.setdefault((id(node), columns[number][start]), number)
        if leader != number:
            savings[number] = _common(columns[leader], columns[number], start) - start
    if sum(savings.values()) >= CALL_COLUMNS:
        return [number for number in ready if number not in savings]
    patient = {number for number, saved in savings.items() if saved and needed is not None and number not in needed}
    return [number for number in ready if number not in patient]


def _common(one: Sequence[Column], other: Sequence[Column], start: int) -> int:
    """How many columns two lanes begin with alike, their last ones not counted, if they do up to `start`."""
    end = start
    limit = min(len(one), len(other) - 1)
    while end < limit and one[end] == other[end]:
        end += 1
    return end
