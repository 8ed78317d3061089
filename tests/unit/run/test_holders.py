"""Who still asks for a lane, call by call."""

from dataclasses import replace

from tests.schedules import DEPTH, applied, edit, keep, lane, logits, naive

from causalab_mini.run.holders import Holders
from causalab_mini.schedule.ir import LaneValue, Schedule

KEPT = keep("block_output", 1, (1,))
SOURCE = lane([3, 4, 5], [KEPT])
TARGET = lane([6, 7, 8], [logits(2)], [edit(1, (1,), LaneValue(0, KEPT))])


def of_points(schedule: Schedule, *labels: str) -> Schedule:
    """The schedule with its forwards bound to points of these labels, one after the other."""
    bindings = {((label, ("score",)), index): schedule.calls[index].lanes for index, label in enumerate(labels)}
    return replace(schedule, bindings=bindings)


def told(schedule: Schedule) -> list[tuple[list[str], list[int]]]:
    holders = Holders(schedule)
    return [(holders.finished(index), sorted(set(holders.released(index)))) for index in range(len(schedule.calls))]


def test_a_points_lanes_go_when_it_is_done() -> None:
    schedule = of_points(naive([SOURCE], [TARGET], [lane([9], [logits(0)])]), "a", "a", "b")
    assert told(schedule) == [([], []), (["a"], [0, 1]), (["b"], [2])]


def test_a_source_waits_for_the_edits_that_use_it() -> None:
    schedule = of_points(naive([SOURCE], [TARGET], [TARGET]), "a", "b", "c")
    assert told(schedule) == [(["a"], []), (["b"], [1]), (["c"], [0, 2])]


def test_a_lane_shared_by_points_waits_for_the_last() -> None:
    schedule = naive([SOURCE], [TARGET])
    bindings = {
        (("a", ("s",)), 0): (0,),
        (("b", ("s",)), 0): (0,),
        (("b", ("s",)), 1): (1,),
    }
    assert told(replace(schedule, bindings=bindings)) == [(["a"], []), (["b"], [0, 1])]


def test_a_parent_is_held_for_the_values_it_has_of_others() -> None:
    lanes = [lane([3, 4, 5], [logits(2)]), lane([3, 4, 6], [logits(2)], start=2, parent=0)]
    schedule = naive([replace(lanes[0])], [replace(lanes[1], start=0, parent=None)])
    assert told(of_points(replace(schedule, lanes=tuple(lanes)), "a", "b")) == [(["a"], []), (["b"], [0, 1])]


def test_a_parent_and_a_twin_are_held_by_those_that_stand_on_them() -> None:
    clean = lane([3, 4, 5], [logits(2)])
    written = lane([3, 4, 5], [logits(2)], [edit(0, (2,), LaneValue(0, logits(2)))])
    schedule = applied(applied(naive([clean], [written]), "share prefix"), "skip layers")
    schedule = of_points(applied(schedule, "stack points"), "a", "b")
    assert schedule.lanes[1].entry is not None
    assert schedule.lanes[1].parent == 0
    assert DEPTH == 3
    assert told(schedule) == [(["a"], []), (["b"], [0, 1])]


def test_points_of_one_call_are_finished_together() -> None:
    schedule = naive([lane([3], [logits(0)]), lane([4], [logits(0)])])
    bindings = {(("a", ("s",)), 0): (0,), (("b", ("s",)), 0): (1,)}
    assert told(replace(schedule, bindings=bindings)) == [(["a", "b"], [0, 1])]
