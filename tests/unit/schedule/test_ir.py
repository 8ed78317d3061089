"""Who owns a column, and how a kept value falls into parts."""

import pytest
from tests.schedules import call, keep, lane, naive

from causalab_mini.schedule.ir import Schedule

WHOLE = lane([5, 6, 7])
MIDDLE = lane([5, 6, 7, 8, 9], start=2, parent=0)
LAST = lane([5, 6, 7, 8, 9, 3], decode=3, start=4, parent=1)
LANES = (WHOLE, MIDDLE, LAST)
SCHEDULE = Schedule(LANES, tuple(call(LANES, [n]) for n in range(3)), {}, frozenset(), frozenset())


def test_a_column_belongs_to_the_lane_that_runs_it() -> None:
    assert [SCHEDULE.owner(2, "prompt", at) for at in range(6)] == [0, 0, 1, 1, 2, 2]
    assert [SCHEDULE.owner(1, "prompt", at) for at in range(5)] == [0, 0, 1, 1, 1]


def test_step_0_belongs_to_the_last_column_and_later_ones_to_the_lane() -> None:
    forked = lane([5, 6, 7], decode=2, start=3, parent=0)
    schedule = Schedule((WHOLE, forked), (), {}, frozenset(), frozenset())
    assert schedule.owner(1, "generated", 0) == 0
    assert schedule.owner(1, "generated", 1) == 1
    assert SCHEDULE.owner(2, "generated", 0) == 2


def test_a_start_without_a_parent_is_an_error() -> None:
    schedule = Schedule((lane([1, 2], start=1),), (), {}, frozenset(), frozenset())
    with pytest.raises(ValueError, match="no parent"):
        schedule.owner(0, "prompt", 0)


def test_a_value_falls_into_the_parts_of_its_owners() -> None:
    value = keep("block_output", 1, (0, 1, 3, 4, 5))
    assert SCHEDULE.parts(2, value) == [
        (0, keep("block_output", 1, (0, 1))),
        (1, keep("block_output", 1, (3,))),
        (2, keep("block_output", 1, (4, 5))),
    ]
    one = keep("block_output", 1, (2, 3))
    assert SCHEDULE.parts(2, one) == [(1, one)]


def test_steps_are_those_of_the_lanes() -> None:
    schedule = naive([lane([1], decode=3), lane([2], decode=3)], [lane([3])])
    assert [schedule.steps(each) for each in schedule.calls] == [3, 0]
