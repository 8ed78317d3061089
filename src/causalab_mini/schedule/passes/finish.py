"""Finish points: a point's calls run before those of points after it. Promise: exact.

Rounds hold lanes of all points, so in the order of rounds all points of a sweep would be done at the very end, and a
run that is killed would have nothing to keep. The calls stay as they are, and with them every bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from causalab_mini.schedule.ir import ObserveKey, PublishedValue, Schedule, before


def finish(schedule: Schedule) -> Schedule:
    """The same calls, each point's as early as what they need allows, point by point."""
    needs = _needs(schedule)
    call_of = {lane: index for index, call in enumerate(schedule.calls) for lane in call.lanes}
    order: dict[int, None] = {}
    for lanes in schedule.bindings.values():
        waiting = sorted({call_of[lane] for lane in lanes}, reverse=True)
        while waiting:
            index = waiting[-1]
            missing = [] if index in order else [need for need in needs[index] if need not in order]
            if missing:
                waiting += missing
            else:
                order[waiting.pop()] = None
    rest = (index for index in range(len(schedule.calls)) if index not in order)
    return replace(schedule, calls=tuple(schedule.calls[index] for index in (*order, *rest)))


def _needs(schedule: Schedule) -> list[list[int]]:
    """The calls that each call needs to have been run, the last one first."""
    call_of = {lane: index for index, call in enumerate(schedule.calls) for lane in call.lanes}
    lanes_of: dict[ObserveKey, list[int]] = {}
    for (key, _), lanes in schedule.bindings.items():
        lanes_of.setdefault(key, []).extend(lanes)
    publishing = {key: {call_of[lane] for lane in lanes} for key, lanes in lanes_of.items()}

    def of(index: int) -> Iterator[int]:
        for number in schedule.calls[index].lanes:
            lane = schedule.lanes[number]
            yield from (call_of[other] for other in before(lane))
            for key in {edit.argument.observe for edit in lane.edits if isinstance(edit.argument, PublishedValue)}:
                yield from publishing[key]

    return [sorted(set(of(index)) - {index}, reverse=True) for index in range(len(schedule.calls))]
