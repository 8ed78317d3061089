"""What is left of a schedule when some of its points are known: the calls that the others need, each as it was.

A call keeps all its lanes, those of known points too, since the last bit of a row may hang on what it shares a call
with: points that are run later come out as they would have.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from causalab_mini.schedule.ir import Lane, PublishedValue, Schedule, before


def rest(schedule: Schedule, known: Collection[str]) -> Schedule:
    """The schedule without the points `known`, by label, and without the calls that only they need.

    A known point stays where a lane in one of these calls uses what it published.
    """
    of_point: dict[str, list[int]] = {}
    for ((label, _), _), lanes in schedule.bindings.items():
        of_point.setdefault(label, []).extend(lanes)
    call_of = {lane: index for index, call in enumerate(schedule.calls) for lane in call.lanes}
    points, needed = set[str](), set[int]()
    labels = [label for label in of_point if label not in known]
    waiting: list[int] = []
    while labels or waiting:
        if labels:
            label = labels.pop()
            if label not in points:
                points.add(label)
                waiting += of_point[label]
            continue
        index = call_of[waiting.pop()]
        if index not in needed:
            needed.add(index)
            for lane in schedule.calls[index].lanes:
                waiting += before(schedule.lanes[lane])
                labels += _publishers(schedule.lanes[lane])
    bindings = {key: lanes for key, lanes in schedule.bindings.items() if key[0][0] in points}
    bound = {lane for lanes in bindings.values() for lane in lanes}
    return replace(
        schedule,
        calls=tuple(call for index, call in enumerate(schedule.calls) if index in needed),
        bindings=bindings,
        wanted=frozenset((lane, keep) for lane, keep in schedule.wanted if lane in bound),
        heard=schedule.heard & bound,
    )


def _publishers(lane: Lane) -> Iterator[str]:
    """The points whose outputs a lane uses."""
    yield from (edit.argument.observe[0] for edit in lane.edits if isinstance(edit.argument, PublishedValue))
