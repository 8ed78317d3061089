"""Window rows: a call of many lanes becomes several of at most `size`. Promise: last bit."""

from __future__ import annotations

from dataclasses import replace

from causalab_mini.schedule.ir import Schedule


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
