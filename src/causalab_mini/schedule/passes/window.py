"""Window rows: a call of many lanes becomes several of at most `size`. Rows alone: every lane runs by itself, without
padding. Promise: last bit.
"""

from __future__ import annotations

from dataclasses import replace

from causalab_mini.schedule.ir import Call, Schedule
from causalab_mini.schedule.lower import head_columns


def window_rows(schedule: Schedule, size: int | None) -> Schedule:
    """No call with more than `size` lanes; every lane where it was. `None` leaves all as it is."""
    if size is None:
        return schedule
    calls = tuple(
        replace(call, lanes=call.lanes[start : start + size])
        for call in schedule.calls
        for start in range(0, len(call.lanes), size)
    )
    return replace(schedule, calls=calls)


def rows_alone(schedule: Schedule) -> Schedule:
    """A call for every lane, as wide as the lane is."""

    def alone(number: int) -> Call:
        lane = schedule.lanes[number]
        return Call((number,), lane.columns, head_columns((lane,), lane.columns), cached=lane.start)

    return replace(schedule, calls=tuple(alone(number) for call in schedule.calls for number in call.lanes))
