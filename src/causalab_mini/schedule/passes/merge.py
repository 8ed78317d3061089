"""Merge: equal calls run once, their values united; a longer decode serves a shorter one. Promise: exact.

Calls are equal when their lanes have the same tokens and the same edits by provenance, in the same padding, and the
head is computed at the same columns.
"""

from __future__ import annotations

from dataclasses import replace

from causalab_mini.schedule.ir import Call, Lane, Schedule
from causalab_mini.schedule.rename import renamed, renamed_edits


def merge(schedule: Schedule) -> Schedule:
    """One call for every set of equal ones, at the place of the first."""
    same: dict[int, int] = {}
    lanes = list(schedule.lanes)
    first: dict[object, Call] = {}
    calls: list[Call] = []
    for call in schedule.calls:
        edits = [renamed_edits(lanes[number], same) for number in call.lanes]
        key = (
            call.width,
            call.head,
            tuple((lanes[n].ids, e, lanes[n].ends) for n, e in zip(call.lanes, edits, strict=True)),
        )
        kept = first.setdefault(key, call)
        if kept is call:
            for number, own in zip(call.lanes, edits, strict=True):
                lanes[number] = replace(lanes[number], edits=own)
            calls.append(call)
            continue
        for number, into in zip(call.lanes, kept.lanes, strict=True):
            same[number] = into
            lanes[into] = united(lanes[into], lanes[number])
    return renamed(replace(schedule, lanes=tuple(lanes), calls=tuple(calls)), same)


def united(lane: Lane, other: Lane) -> Lane:
    """`lane` with what is kept from `other` kept too, decoding as far as either."""
    keeps = tuple(dict.fromkeys((*lane.keeps, *other.keeps)))
    return replace(lane, keeps=keeps, decode=max(lane.decode, other.decode))
