"""Stack points, sort rows: lanes of one round run together, whatever point, role or step they serve. Promise: last bit.

Lanes of a round are told apart only by how far they decode, by whether they enter in the middle of the network, and by
how many columns they run: few lengths share a call when padding them costs less than a further call.

A lane that goes on from a cache is padded between its taken columns and its own. A sliding window is counted in a
call's columns, padding among them: where one could end inside a call, such lanes share it with none of other lengths.
Nor do they where a state is handed on: padding would go into it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from causalab_mini.schedule.ir import Call, Schedule
from causalab_mini.schedule.limits import Limits, Shape
from causalab_mini.schedule.lower import head_columns


def stack(schedule: Schedule, limits: Limits, shape: Shape) -> Schedule:
    """The rounds of a schedule cut into calls of lanes that fit together, within the limits."""
    calls = tuple(call for round_ in schedule.calls for call in _calls(schedule, round_, limits, shape))
    return replace(schedule, calls=calls)


def _calls(schedule: Schedule, round_: Call, limits: Limits, shape: Shape) -> Iterator[Call]:
    slides = shape.window is not None and _reach(schedule, round_) > shape.window
    narrow = shape.recurrent or slides
    alike: dict[tuple[int, bool, int], list[int]] = {}
    for number in round_.lanes:
        lane = schedule.lanes[number]
        alone = lane.columns if narrow and lane.start else 0
        alike.setdefault((lane.decode, lane.entry is not None, alone), []).append(number)
    for _, numbers in sorted(alike.items()):
        by_width: dict[int, list[int]] = {}
        for number in numbers:
            by_width.setdefault(schedule.lanes[number].columns, []).append(number)
        decode = schedule.lanes[numbers[0]].decode
        for group in _grouped({width: len(found) for width, found in by_width.items()}, shape.price * max(decode, 1)):
            members = sorted(number for width in group for number in by_width[width])
            for chunk in _chunks(schedule, members, max(group), limits, shape):
                yield _call(schedule, chunk)


def _reach(schedule: Schedule, round_: Call) -> int:
    """The most columns a call of a round can come to, generated ones included."""
    lanes = [schedule.lanes[number] for number in round_.lanes]
    return max(lane.start for lane in lanes) + max(lane.columns for lane in lanes) + max(lane.decode for lane in lanes)


def _grouped(counts: dict[int, int], price: int) -> list[list[int]]:
    """Widths cut into runs so that padded columns and calls, each at `price` columns, cost least together."""
    widths = sorted(counts)
    best: list[tuple[int, int]] = [(0, 0)]
    for end in range(1, len(widths) + 1):
        options: list[tuple[int, int]] = []
        for start in range(end):
            lanes = sum(counts[width] for width in widths[start:end])
            options.append((best[start][0] + lanes * widths[end - 1] + price, start))
        best.append(min(options))
    groups: list[list[int]] = []
    end = len(widths)
    while end:
        start = best[end][1]
        groups.append(widths[start:end])
        end = start
    return groups[::-1]


def _chunks(
    schedule: Schedule, members: list[int], width: int, limits: Limits, shape: Shape
) -> Iterator[tuple[int, ...]]:
    """Members in calls of at most what the limits allow, as even as they can be."""
    decode = schedule.lanes[members[0]].decode
    heads = len(head_columns((schedule.lanes[number] for number in members), width))
    cells = shape.cells(heads=heads, width=width, decode=decode)
    size = min(limits.lanes or len(members), limits.cells // cells)
    size = max(1, min(size, len(members)))
    count = -(-len(members) // size)
    even = -(-len(members) // count)
    for start in range(0, len(members), even):
        yield tuple(members[start : start + even])


def _call(schedule: Schedule, numbers: tuple[int, ...]) -> Call:
    # Those that enter lower come first: a block runs the lanes that have entered.
    numbers = tuple(sorted(numbers, key=lambda number: _entry(schedule, number)))
    lanes = [schedule.lanes[number] for number in numbers]
    width = max(lane.columns for lane in lanes)
    return Call(numbers, width, head_columns(lanes, width), cached=max(lane.start for lane in lanes))


def _entry(schedule: Schedule, number: int) -> int:
    entry = schedule.lanes[number].entry
    return 0 if entry is None else entry.layer
