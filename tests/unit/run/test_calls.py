"""Calls of hand-made schedules: what the engine is asked, what is kept, and what becomes of caches."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from unittest.mock import patch

from tests import fakes
from tests.schedules import DEPTH, STEP, applied, call, edit, keep, lane, logits, naive, play

from causalab_mini.run import calls as calls_module
from causalab_mini.run.calls import CallRunner, Greedy
from causalab_mini.run.states import State
from causalab_mini.run.values import Change, Values
from causalab_mini.schedule.ir import LaneValue, Schedule

GREEDY = Greedy((1,), 2)


def asked(schedule: Schedule) -> list[tuple[int, int, int]]:
    """Lanes, columns and cached columns of every forward."""
    network = fakes.network(DEPTH)
    engine, values = fakes.Fake(network), Values(schedule)
    runner = CallRunner(schedule, network, engine, GREEDY, lambda one, step: 1.0, values)
    for index in range(len(schedule.calls)):
        runner.run(index)
    return [(made.lanes, made.columns, made.past) for made in engine.calls]


def test_a_prefill_and_its_steps() -> None:
    assert asked(naive([lane([3, 4, 5], decode=3), lane([6], decode=3)])) == [(2, 3, 0), (2, 1, 3), (2, 1, 4)]


def test_one_step_is_the_prefill_alone() -> None:
    assert asked(naive([lane([3, 4, 5], decode=1)])) == [(1, 3, 0)]


def test_a_shared_prefill_is_not_run_again() -> None:
    second = lane([3, 4], [], [edit(1, (1,), frame="generated")], 3)
    schedule = applied(naive([lane([3, 4], decode=3)], [second]), "share prefill")
    assert asked(schedule) == [(1, 2, 0), (1, 1, 2), (1, 1, 3), (1, 1, 2), (1, 1, 3)]


def test_a_branch_runs_its_own_columns() -> None:
    lanes = (lane([3, 4, 5], [logits(2)]), lane([3, 4, 6, 7], [logits(3)], start=2, parent=0))
    calls = (call(lanes, [0]), call(lanes, [1], 2))
    schedule = Schedule(lanes, calls, {(STEP, 0): (0, 1)}, frozenset(), frozenset())
    assert asked(schedule) == [(1, 3, 0), (1, 2, 2)]


def test_a_written_value_is_kept_as_written() -> None:
    at = keep("block_output", 1, (1,))
    clean, written = (play(naive([lane([3, 4], [at], edits)])) for edits in ([], [edit(1, (1,), 2.5)]))
    assert (written.value(0, at) - clean.value(0, at)).tolist() == [[2.5] * fakes.WIDTH]


def test_changes_are_told_column_by_column() -> None:
    one = edit(1, (0, 1), 2.5)
    later = edit(0, (1, 2), -0.5, frame="generated")
    values = play(naive([lane([3, 4], [], [one, later], 3), lane([5, 6, 7], decode=3)]))
    assert values.change(0, one) == Change(2, 2.5)
    assert values.change(0, later) == Change(2, 0.5)
    assert values.change(1, one) == Change(0, None, missed=2)


def test_an_argument_of_several_columns_goes_column_by_column() -> None:
    wide = keep("block_output", 1, (0, 2))
    source = lane([3, 4, 5], [wide])
    swap = edit(1, (1, 2), LaneValue(0, wide))
    target = lane([6, 7, 8], [keep("block_output", 1, (1, 2))], [swap])
    clean = play(naive([replace(target, edits=())])).value(0, target.keeps[0])
    values = play(naive([source], [target]))
    assert (values.value(1, target.keeps[0]) - clean).tolist() == values.value(0, wide).tolist()


def test_one_argument_serves_every_column_and_picks_choose() -> None:
    wide = keep("block_output", 1, (0, 2))
    for pick, entry in (((0,), 0), ((1,), 1)):
        swap = edit(1, (1, 2), LaneValue(0, wide, pick))
        target = lane([6, 7, 8], [keep("block_output", 1, (1, 2))], [swap])
        clean = play(naive([replace(target, edits=())])).value(0, target.keeps[0])
        values = play(naive([lane([3, 4, 5], [wide])], [target]))
        added = values.value(1, target.keeps[0]) - clean
        assert added.tolist() == [values.value(0, wide)[entry].tolist()] * 2


def test_caches_live_until_the_last_call_that_starts_from_them() -> None:
    lanes = (
        lane([3, 4, 5], [logits(2)]),
        lane([3, 4, 6], [logits(2)], start=2, parent=0),
        lane([7, 8], [logits(1)]),
        lane([3, 4, 9], [logits(2)], start=2, parent=0),
        lane([3, 4, 6, 5], [logits(3)], start=3, parent=1),
        lane([9], [logits(0)]),
    )
    cached = (0, 2, 0, 2, 3, 0)
    calls = tuple(call(lanes, [number], past) for number, past in enumerate(cached))
    schedule = Schedule(lanes, calls, {(STEP, 0): tuple(range(6))}, frozenset(), frozenset())
    states: list[weakref.ref[State]] = []

    def state(*args: object) -> State:
        made = State(*args)  # type: ignore[arg-type]
        states.append(weakref.ref(made))
        return made

    network = fakes.network(DEPTH)
    runner = CallRunner(schedule, network, fakes.Fake(network), GREEDY, lambda one, step: 1.0, Values(schedule))
    alive: list[int] = []
    with patch.object(calls_module, "State", state):
        for index in range(len(calls)):
            runner.run(index)
            gc.collect()
            alive.append(sum(ref() is not None for ref in states))
    assert alive == [1, 2, 2, 1, 0, 0]


def test_tokens_are_read_without_the_network() -> None:
    prompt = keep("input_ids", None, (0, 2))
    steps = keep("input_ids", None, (0, 1), "generated")
    schedule = naive([lane([3, 4, 5], [prompt, steps], decode=3)], heard=[0])
    values = play(schedule)
    first = values.continuation(0, 3).ids[0]
    assert values.value(0, prompt).flatten().tolist() == [3, 5]
    assert values.value(0, steps).flatten().tolist() == [5, first]
