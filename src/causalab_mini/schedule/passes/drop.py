"""Drop: a value nobody scores, saves or writes from is not kept. Promise: exact."""

from __future__ import annotations

from dataclasses import replace

from causalab_mini.schedule.ir import Schedule, arguments_of


def drop(schedule: Schedule) -> Schedule:
    """The same calls, keeping only values that are wanted or that an edit uses as its argument."""
    used = set(schedule.wanted)
    used.update((value.lane, value.keep) for lane in schedule.lanes for value in arguments_of(lane))
    lanes = tuple(
        replace(lane, keeps=tuple(keep for keep in lane.keeps if (number, keep) in used))
        for number, lane in enumerate(schedule.lanes)
    )
    return replace(schedule, lanes=lanes)
