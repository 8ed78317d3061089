"""When a point is finished, and when a lane's values are needed no more.

A lane is held by the points whose rows are bound to it or begin with it, and by the calls whose edits use its values.
"""

from __future__ import annotations

from collections import Counter

from causalab_mini.schedule.ir import Schedule, arguments_of


class Holders:
    """Counts, for every lane, who still asks for it."""

    def __init__(self, schedule: Schedule) -> None:
        call_of = {lane: index for index, call in enumerate(schedule.calls) for lane in call.lanes}
        lanes_of: dict[str, set[int]] = {}
        for ((label, _), _), lanes in schedule.bindings.items():
            lanes_of.setdefault(label, set()).update(lanes)
        self._points: dict[int, list[str]] = {}
        self._lanes_of: dict[str, set[int]] = {}
        self._holds: Counter[int] = Counter()
        self._used_by_call: dict[int, set[int]] = {}
        self._calls = schedule.calls
        for label, lanes in lanes_of.items():
            self._points.setdefault(max(call_of[lane] for lane in lanes), []).append(label)
            self._lanes_of[label] = {owner for lane in lanes for owner in _family(schedule, lane)}
            self._holds.update(self._lanes_of[label])
        for index, call in enumerate(schedule.calls):
            used = {value.lane for lane in call.lanes for value in arguments_of(schedule.lanes[lane])}
            used |= {entry.twin for lane in call.lanes if (entry := schedule.lanes[lane].entry) is not None}
            self._used_by_call[index] = {owner for lane in used for owner in _family(schedule, lane)}
            self._holds.update(self._used_by_call[index])

    def finished(self, index: int) -> list[str]:
        """The points whose last call is `index`."""
        return self._points.get(index, [])

    def released(self, index: int) -> list[int]:
        """The lanes that nobody asks for once call `index` is done and its points are scored."""
        free = [lane for lane in self._calls[index].lanes if lane not in self._holds]  # nobody ever asks for these
        for held in (*(self._lanes_of[label] for label in self.finished(index)), self._used_by_call[index]):
            self._holds.subtract(held)
            free += [lane for lane in held if self._holds[lane] == 0]
        return free


def _family(schedule: Schedule, lane: int) -> list[int]:
    """A lane and those it begins with."""
    found: list[int] = []
    current: int | None = lane
    while current is not None:
        found.append(current)
        current = schedule.lanes[current].parent
    return found
