"""Trim: a decode whose continuation nobody shows ends after the last step that is kept. Promise: exact."""

from __future__ import annotations

from dataclasses import replace

from causalab_mini.schedule.ir import Call, Ends, Lane, Schedule
from causalab_mini.schedule.lower import head_columns


def trim(schedule: Schedule) -> Schedule:
    """The same calls, each decoding no further than its lanes are heard or kept from."""
    lanes = list(schedule.lanes)
    calls: list[Call] = []
    for call in schedule.calls:
        needed = max(_needed(schedule, number) for number in call.lanes)
        if needed == schedule.steps(call):
            calls.append(call)
            continue
        for number in call.lanes:
            lane = replace(lanes[number], decode=needed)
            lanes[number] = lane if needed else replace(lane, ends=Ends())
        head = call.head if needed else head_columns((lanes[number] for number in call.lanes), call.width)
        calls.append(replace(call, head=head))
    return replace(schedule, lanes=tuple(lanes), calls=tuple(calls))


def _needed(schedule: Schedule, number: int) -> int:
    lane: Lane = schedule.lanes[number]
    if number in schedule.heard:
        return lane.decode
    return max((keep.at[-1] + 1 for keep in lane.keeps if keep.frame == "generated"), default=0)
