"""Let other lanes stand for lanes: what every pass that unites lanes does to the rest of the schedule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from causalab_mini.schedule.ir import Edit, Lane, LaneValue, Schedule


def renamed_edits(lane: Lane, same: Mapping[int, int]) -> tuple[Edit, ...]:
    """A lane's edits, their arguments taken from the lanes that stand for the ones they name."""
    return tuple(_edit(edit, same) for edit in lane.edits)


def renamed(schedule: Schedule, same: Mapping[int, int]) -> Schedule:
    """The schedule with `same[lane]` in every place of `lane`; calls are left as they are."""
    if not same:
        return schedule
    return replace(
        schedule,
        lanes=tuple(replace(lane, edits=renamed_edits(lane, same)) for lane in schedule.lanes),
        bindings={key: tuple(same.get(lane, lane) for lane in lanes) for key, lanes in schedule.bindings.items()},
        wanted=frozenset((same.get(lane, lane), keep) for lane, keep in schedule.wanted),
        heard=frozenset(same.get(lane, lane) for lane in schedule.heard),
    )


def _edit(edit: Edit, same: Mapping[int, int]) -> Edit:
    argument = edit.argument
    if isinstance(argument, LaneValue) and argument.lane in same:
        return replace(edit, argument=replace(argument, lane=same[argument.lane]))
    return edit
