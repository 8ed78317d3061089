"""Give every value to the lane that computes it: what a pass that moves the start of lanes does last."""

from __future__ import annotations

from dataclasses import replace

from causalab_mini.schedule.ir import Keep, Schedule


def handed_up(schedule: Schedule) -> Schedule:
    """The schedule with each lane's keeps at the lanes that own their columns."""
    keeps: list[dict[Keep, None]] = [{} for _ in schedule.lanes]
    for number, lane in enumerate(schedule.lanes):
        for keep in lane.keeps:
            for owner, part in schedule.parts(number, keep):
                keeps[owner][part] = None
    lanes = tuple(replace(lane, keeps=tuple(own)) for lane, own in zip(schedule.lanes, keeps, strict=True))
    return replace(schedule, lanes=lanes)
