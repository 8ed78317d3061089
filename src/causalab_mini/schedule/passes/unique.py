"""Unique rows: a prompt with the same writes in several rows, roles or points is run once. Promise: last bit."""

from __future__ import annotations

from dataclasses import replace

from causalab_mini.schedule.ir import Edit, Ends, Schedule
from causalab_mini.schedule.passes.merge import united
from causalab_mini.schedule.rename import renamed, renamed_edits


def unique_rows(schedule: Schedule) -> Schedule:
    """One lane for all that have the same tokens and the same edits, in the call of the first."""
    same: dict[int, int] = {}
    lanes = list(schedule.lanes)
    first: dict[tuple[tuple[int, ...], tuple[Edit, ...], Ends], int] = {}
    calls = []
    for call in schedule.calls:
        own: list[int] = []
        for number in call.lanes:
            edits = renamed_edits(lanes[number], same)
            into = first.setdefault((lanes[number].ids, edits, lanes[number].ends), number)
            if into == number:
                lanes[number] = replace(lanes[number], edits=edits)
                own.append(number)
            else:
                same[number] = into
                lanes[into] = united(lanes[into], lanes[number])
        if own:
            calls.append(replace(call, lanes=tuple(own)))
    return renamed(replace(schedule, lanes=tuple(lanes), calls=tuple(calls)), same)
