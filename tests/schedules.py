"""Schedules put together by hand, run on the arithmetic engine, and what must be true of any schedule.

Imports torch only to run one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from causalab_mini.plan.nodes import Place
from causalab_mini.schedule.ir import (
    Argument,
    Call,
    Edit,
    Frame,
    Keep,
    Lane,
    LaneValue,
    ObserveKey,
    Schedule,
    arguments_of,
)
from causalab_mini.schedule.lower import head_columns
from causalab_mini.vocabulary.components import COMPONENTS
from causalab_mini.vocabulary.mechanisms import AddScaled, Mechanism

if TYPE_CHECKING:
    from torch import Tensor

    from causalab_mini.run.values import Values
    from causalab_mini.schedule.optimize import Pass

PLUS = AddScaled(scale=1.0)
STEP: ObserveKey = ("", ("score",))
DEPTH = 3


def place(name: str, layer: int | None = None) -> Place:
    return Place(COMPONENTS.get(name), layer)


def keep(name: str, layer: int | None = None, at: tuple[int, ...] = (-1,), frame: Frame = "prompt") -> Keep:
    return Keep(place(name, layer), frame, at)


def logits(*at: int) -> Keep:
    return keep("lm_head", None, at)


def edit(
    layer: int | None,
    at: tuple[int, ...],
    argument: Argument = 1.0,
    *,
    name: str = "block_output",
    frame: Frame = "prompt",
    mechanism: Mechanism = PLUS,
) -> Edit:
    return Edit(place(name, layer), frame, at, mechanism, argument)


def lane(
    ids: Iterable[int],
    keeps: Iterable[Keep] = (),
    edits: Iterable[Edit] = (),
    decode: int = 0,
    *,
    start: int = 0,
    parent: int | None = None,
) -> Lane:
    return Lane(tuple(ids), tuple(edits), tuple(keeps), decode, start, parent)


def call(schedule_lanes: Sequence[Lane], numbers: Sequence[int], cached: int = 0) -> Call:
    """A call as wide as its widest lane, the head where its lanes need it."""
    members = [schedule_lanes[number] for number in numbers]
    width = max(member.columns for member in members)
    return Call(tuple(numbers), width, head_columns(members, width), cached)


def naive(
    *forwards: Sequence[Lane],
    wanted: Iterable[tuple[int, Keep]] | None = None,
    heard: Iterable[int] = (),
) -> Schedule:
    """One call for each forward, all of one step; every kept value is wanted unless `wanted` says which are."""
    lanes = [each for forward in forwards for each in forward]
    calls: list[Call] = []
    first = 0
    for forward in forwards:
        calls.append(call(lanes, range(first, first + len(forward))))
        first += len(forward)
    if wanted is None:
        wanted = ((number, kept) for number, each in enumerate(lanes) for kept in each.keeps)
    bindings = {(STEP, index): made.lanes for index, made in enumerate(calls)}
    return Schedule(tuple(lanes), tuple(calls), bindings, frozenset(wanted), frozenset(heard))


def play(schedule: Schedule, depth: int = DEPTH) -> Values:
    """Every value of a schedule, by the arithmetic engine."""
    import torch
    from tests import fakes

    from causalab_mini.run.calls import CallRunner, Greedy
    from causalab_mini.run.values import Values

    network = fakes.network(depth)
    values = Values(schedule)

    def argument(one: Edit, step: int) -> Tensor | float | None:
        if not isinstance(one.argument, LaneValue):
            assert one.argument is None or isinstance(one.argument, float)
            return one.argument
        value = values.value(one.argument.lane, one.argument.keep)
        if one.argument.pick is not None:
            value = value[list(one.argument.pick)]
        assert isinstance(value, torch.Tensor)
        return value[one.at.index(step)][None] if one.frame == "generated" and len(value) > 1 else value

    runner = CallRunner(schedule, network, fakes.Fake(network), Greedy((1,), 2), argument, values)
    for index in range(len(schedule.calls)):
        runner.run(index)
    return values


def equal(before: Schedule, after: Schedule, depth: int = DEPTH) -> None:
    """Both schedules give every row the same values, continuations and changes."""
    sound(before)
    sound(after)
    first, second = play(before, depth), play(after, depth)
    assert before.bindings.keys() == after.bindings.keys()
    for key, lanes in before.bindings.items():
        for number, into in zip(lanes, after.bindings[key], strict=True):
            for kept in [kept for wanted, kept in before.wanted if wanted == number]:
                assert (into, kept) in after.wanted
                assert first.value(number, kept).tolist() == second.value(into, kept).tolist()
            if number in before.heard:
                assert into in after.heard
                steps = before.lanes[number].decode
                assert first.continuation(number, steps) == second.continuation(into, steps)
            own, others = before.lanes[number].edits, after.lanes[into].edits
            for one, other in zip(own, others, strict=True):
                reached = [at for at in one.at if one.frame == "prompt" or at < max(after.lanes[into].decode, 1)]
                if reached == list(one.at):
                    assert first.change(number, one) == second.change(into, other)


def sound(schedule: Schedule) -> None:
    """No value is lost, none computed twice for one lane, and everything is known before it is needed."""
    call_of: dict[int, int] = {}
    for index, each in enumerate(schedule.calls):
        for number in each.lanes:
            assert number not in call_of, f"lane {number} runs twice"
            call_of[number] = index
    for lanes in schedule.bindings.values():
        assert set(lanes) <= call_of.keys(), "a row is bound to a lane that does not run"
    assert {number for number, _ in schedule.wanted} | schedule.heard <= call_of.keys()
    for number, index in call_of.items():
        _sound_lane(schedule, number, index, call_of)
    needed = [*schedule.wanted]
    needed += [(value.lane, value.keep) for number in call_of for value in arguments_of(schedule.lanes[number])]
    for number, kept in needed:
        parts = schedule.parts(number, kept)
        assert sorted(at for _, part in parts for at in part.at) == sorted(kept.at)
        for owner, part in parts:
            assert schedule.lanes[owner].keeps.count(part) == 1, f"{part} of lane {owner} is kept other than once"
            assert owner in call_of
            assert kept.frame == "prompt" or part.at[-1] < max(schedule.lanes[owner].decode, 1)
    for index, each in enumerate(schedule.calls):
        _sound_call(schedule, each)
        assert not {number for number in each.lanes if call_of[number] != index}


def _sound_lane(schedule: Schedule, number: int, index: int, call_of: dict[int, int]) -> None:
    this = schedule.lanes[number]
    assert len(set(this.keeps)) == len(this.keeps)
    for value in arguments_of(this):
        for owner, _ in schedule.parts(value.lane, value.keep):
            assert call_of[owner] < index, "an argument comes too late"
    if this.entry is not None:
        assert call_of[this.entry.twin] < index
        assert schedule.lanes[this.entry.twin].ids[: len(this.ids)] == this.ids
        assert this.decode <= 1
    assert this.start <= len(this.ids)
    assert (this.parent is None) == (this.start == 0)
    if this.parent is not None:
        parent = schedule.lanes[this.parent]
        assert call_of[this.parent] < index, "a parent comes too late"
        assert parent.entry is None, "a parent has no keys and values below its entry"
        assert parent.ids[: this.start] == this.ids[: this.start]
        assert _acting(this, this.start) == _acting(parent, this.start), "a parent is written otherwise"
    for kept in this.keeps:
        assert kept.frame == "generated" or all(this.start <= at < len(this.ids) for at in kept.at)
        # With no column of its own a lane has no step 0 either.
        assert kept.frame == "prompt" or this.columns or 0 not in kept.at


def _acting(this: Lane, end: int) -> list[list[Edit]]:
    """Of each of the first `end` columns, the edits that act there, as if each were of one column."""
    columns: list[list[Edit]] = [[] for _ in range(end)]
    for one in this.edits:
        step_0 = (len(this.ids) - 1,) if 0 in one.at else ()
        for column in one.at if one.frame == "prompt" else step_0:
            if column < end:
                entry = one.at.index(column) if one.frame == "prompt" else 0
                columns[column].append(_entry(one, entry))
    return columns


def _entry(one: Edit, entry: int) -> Edit:
    argument = one.argument
    if isinstance(argument, LaneValue):
        picked = argument.pick or range(len(argument.keep.at))
        chosen = picked[0] if len(picked) == 1 else picked[entry]
        argument = replace(argument, keep=replace(argument.keep, at=(argument.keep.at[chosen],)), pick=None)
    return replace(one, at=(0,), argument=argument)


def _sound_call(schedule: Schedule, this: Call) -> None:
    members = [schedule.lanes[number] for number in this.lanes]
    assert members, "a call of nobody"
    assert len({member.decode for member in members}) == 1
    assert all(member.columns <= this.width and member.start <= this.cached for member in members)
    assert this.width == 0 or set(head_columns(members, this.width)) <= set(this.head)
    assert list(this.head) == sorted(set(this.head))
    entries = [0 if member.entry is None else member.entry.layer for member in members]
    assert entries == sorted(entries)
    assert len({member.entry is None for member in members}) == 1


def applied(schedule: Schedule, name: str, lanes: int | None = None, window: int | None = None) -> Schedule:
    """The schedule after the pass of that name, with a shape that bounds nothing."""
    from causalab_mini.schedule import limits, optimize

    found: Pass = next(step for step in optimize.PASSES if step.name == name)
    shape = limits.Shape(DEPTH, vocab=1, column=1, cache=1, window=window)
    return found.apply(schedule, limits.Limits(lanes=lanes), shape)
