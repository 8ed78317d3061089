"""Cut: a lane ends where its recurrent state is written or taken over. Promise: exact, since every mode cuts.

A state is what a recurrent mixer hands from one column to the next. A write to it acts between two columns, so the
columns before and those after are two lanes, the second begun from the first one's state. And where a family keeps a
state instead of its columns, a lane can only go on from where another one ended.

A family that resumes step by step runs every column after a cut by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from causalab_mini.schedule.ir import Call, Lane, Schedule, edits_before
from causalab_mini.schedule.keeps import handed_up
from causalab_mini.schedule.limits import Shape
from causalab_mini.schedule.lower import head_columns


def cut(schedule: Schedule, shape: Shape) -> Schedule:
    """The same calls, those with lanes that are cut run in parts, one after the other."""
    if not shape.recurrent:
        return schedule
    starts = _starts(schedule, step_by_step=shape.stepwise)
    if not any(starts.values()):
        return schedule
    lanes = list(schedule.lanes)
    parts: dict[int, tuple[int, ...]] = {}
    ended: dict[tuple[int, int], int] = {}
    for number, columns in starts.items():
        own: list[int] = []
        start, parent = lanes[number].start, lanes[number].parent
        whole = lanes[number]
        for column in columns:
            own.append(len(lanes))
            ended[number, column] = len(lanes)
            lanes.append(_part(whole, column, start, parent))
            start, parent = column, own[-1]
        lanes[number] = replace(whole, start=start, parent=parent)
        parts[number] = (*own, number)
    for number in starts:
        # The first part of a lane that goes on from another one's columns begins where a part of that one ends.
        first = parts[number][0]
        lane = lanes[first]
        if lane.parent is not None and (lane.parent, lane.start) in ended:
            lanes[first] = replace(lane, parent=ended[lane.parent, lane.start])
    after = handed_up(replace(schedule, lanes=tuple(lanes)))
    calls = tuple(part for call in schedule.calls for part in _calls(call, after.lanes, parts))
    return replace(after, calls=calls)


def _starts(schedule: Schedule, *, step_by_step: bool) -> dict[int, tuple[int, ...]]:
    """For every lane, the columns inside it at which a further part starts."""
    live = [number for call in schedule.calls for number in call.lanes]
    found: dict[int, set[int]] = {number: set() for number in live}
    for number in live:
        lane = schedule.lanes[number]
        found[number].update(at + 1 for edit in lane.edits if edit.after_column for at in edit.at)
        if lane.parent is not None:
            found[lane.parent].add(lane.start)
    cuts: dict[int, tuple[int, ...]] = {}
    for number, columns in found.items():
        lane = schedule.lanes[number]
        inside = sorted(column for column in columns if lane.start < column < len(lane.ids))
        if step_by_step and inside:
            inside = list(range(inside[0], len(lane.ids)))
        cuts[number] = tuple(inside)
    return cuts


def _part(lane: Lane, end: int, start: int, parent: int | None) -> Lane:
    """The columns of a lane from `start` to `end`, with what acts there."""
    return Lane(lane.ids[:end], edits_before(lane.edits, end), (), 0, start, parent)


def _calls(call: Call, lanes: Sequence[Lane], parts: dict[int, tuple[int, ...]]) -> Iterable[Call]:
    """The parts of a call's lanes: first parts together, the others with those that are as long."""
    if all(len(parts[number]) == 1 for number in call.lanes):
        yield call
        return
    for rank in range(max(len(parts[number]) for number in call.lanes)):
        alike: dict[tuple[bool, int], list[int]] = {}
        for number in call.lanes:
            if rank < len(parts[number]):
                part = parts[number][rank]
                alike.setdefault((part == number, lanes[part].columns if lanes[part].start else 0), []).append(part)
        for numbers in alike.values():
            own = [lanes[part] for part in numbers]
            width = max(lane.columns for lane in own)
            cached = max(lane.start for lane in own)
            yield Call(tuple(numbers), width, head_columns(own, width), cached)
