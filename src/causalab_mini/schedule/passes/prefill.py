"""Share prefill: calls on one batch whose writes differ only after step 0 have one prefill. Promise: exact.

The later call starts where the earlier one's prefill ended, from a copy of its cache and its last logits.
"""

from __future__ import annotations

from dataclasses import replace

from causalab_mini.schedule.ir import Call, Edit, Lane, Schedule
from causalab_mini.schedule.keeps import handed_up


def share_prefill(schedule: Schedule) -> Schedule:
    """The same lanes; a decoding call whose prefill equals an earlier one's has no columns of its own."""
    lanes = list(schedule.lanes)
    first: dict[object, Call] = {}
    calls: list[Call] = []
    for call in schedule.calls:
        # A prefill that is cut is laid out in another way than a copy of it would be.
        if not schedule.steps(call) or any(edit.after_column for n in call.lanes for edit in lanes[n].edits):
            calls.append(call)
            continue
        key = (call.width, call.head, tuple((lanes[n].ids, at_prefill(lanes[n])) for n in call.lanes))
        kept = first.setdefault(key, call)
        if kept is call:
            calls.append(call)
            continue
        for number, parent in zip(call.lanes, kept.lanes, strict=True):
            lanes[number] = replace(lanes[number], start=len(lanes[number].ids), parent=parent)
        calls.append(Call(call.lanes, 0, (), cached=call.width))
    return handed_up(replace(schedule, lanes=tuple(lanes), calls=tuple(calls)))


def at_prefill(lane: Lane) -> tuple[Edit, ...]:
    """What acts on a lane before its first token is emitted."""
    return tuple(edit for edit in lane.edits if edit.frame == "prompt" or 0 in edit.at)
