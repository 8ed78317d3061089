"""Cut at states: where lanes are parted, who begins with whom, and which lane writes and keeps a state."""

from dataclasses import replace

from tests.schedules import edit, keep, lane, logits, naive

from causalab_mini.schedule.cost import cost
from causalab_mini.schedule.ir import Edit, Keep, Schedule
from causalab_mini.schedule.limits import Limits, Shape
from causalab_mini.schedule.passes.cut import cut
from causalab_mini.schedule.passes.prefix import share_prefix
from causalab_mini.schedule.passes.stack import stack

SHAPE = Shape(3, 12, 16, 4, price=2, recurrent=True, enters=False)
STEPS = replace(SHAPE, resumes=False, stepwise=True)
TEXT = [3, 4, 5, 6, 7, 8]


def write(*at: int, argument: float = 1.0, layer: int = 1) -> Edit:
    return edit(layer, at, argument, name="linear_attention_state")


def state(*at: int, layer: int = 1) -> Keep:
    return keep("linear_attention_state", layer, at)


def starts(schedule: Schedule) -> list[tuple[int, int, int | None]]:
    """Of every lane that runs: the columns it runs, and the lane it begins with."""
    live = sorted(number for call in schedule.calls for number in call.lanes)
    return [(schedule.lanes[n].start, len(schedule.lanes[n].ids), schedule.lanes[n].parent) for n in live]


def test_a_lane_ends_where_its_state_is_written() -> None:
    after = cut(naive([lane(TEXT, [logits(0), state(1), state(4)], [write(2)], decode=2)]), SHAPE)
    assert starts(after) == [(3, 6, 1), (0, 3, None)]
    assert [(call.lanes, call.width, call.cached, call.head) for call in after.calls] == [
        ((1,), 3, 0, (0,)),
        ((0,), 3, 3, (2,)),
    ]
    assert after.lanes[0].keeps == (state(4),)
    assert after.lanes[1].keeps == (logits(0), state(1))
    # The write acts on what the second part goes on from; the first one does not know it.
    assert (after.lanes[0].edits, after.lanes[1].edits) == ((write(2),), ())
    assert after.actor(0, write(2), 2) == 0


def test_a_state_that_is_written_is_kept_by_who_writes_it() -> None:
    after = cut(naive([lane(TEXT, [state(2)], [write(2)])]), SHAPE)
    assert (after.lanes[0].keeps, after.lanes[1].keeps) == ((state(2),), ())
    unwritten = cut(naive([lane(TEXT, [state(2)], [write(2, layer=0), write(3)])]), SHAPE)
    assert [each.keeps for each in unwritten.lanes] == [(), (state(2),), ()]


def test_a_write_after_the_last_token_needs_no_parts() -> None:
    before = naive([lane(TEXT, [logits(5)], [write(5)], decode=3)])
    assert cut(before, SHAPE) is before
    assert before.actor(0, write(5), 5) == 0


def test_every_token_of_a_span_is_an_end() -> None:
    after = cut(naive([lane(TEXT, [], [write(1, 2)])]), SHAPE)
    assert starts(after) == [(3, 6, 2), (0, 2, None), (2, 3, 1)]
    assert [call.lanes for call in after.calls] == [(1,), (2,), (0,)]
    # The part in the middle knows the write before it.
    assert after.lanes[2].edits == (write(1, 2),)


def test_parts_of_unequal_length_run_apart_and_beginnings_together() -> None:
    after = cut(
        naive([lane(TEXT, [], [write(1)]), lane(TEXT[:5], [], [write(1)]), lane(TEXT[1:], [], [write(2)])]), SHAPE
    )
    assert [(call.lanes, call.width) for call in after.calls] == [((3, 4, 5), 3), ((0,), 4), ((1,), 3), ((2,), 2)]


def test_a_family_that_resumes_token_by_token_runs_so_after_a_write() -> None:
    after = cut(naive([lane(TEXT, [], [write(2)])]), STEPS)
    assert starts(after) == [(5, 6, 3), (0, 3, None), (3, 4, 1), (4, 5, 2)]


def test_points_that_write_at_one_token_share_what_comes_before_it() -> None:
    points = [[lane(TEXT, [logits(5)], [write(2, argument=float(n))], decode=2)] for n in range(6)]
    before = naive(*points)
    rounds = share_prefix(before, SHAPE)
    after = cut(stack(rounds, Limits(), SHAPE), SHAPE)
    # One beginning of three columns, and six lanes that go on from its state, each with its own write.
    assert [(len(call.lanes), call.width) for call in after.calls] == [(1, 3), (6, 3)]
    parent = after.calls[0].lanes[0]
    assert all(after.lanes[number].parent == parent for number in after.calls[1].lanes)
    assert after.lanes[parent].edits == ()
    assert cost(after, 3).token_layers == 3 * (3 + 6 * 3 + 6)


def test_lanes_begin_only_where_another_one_ends() -> None:
    long = [lane([*TEXT, n], [logits(6)]) for n in (3, 4, 5)]
    after = cut(stack(share_prefix(naive(long), SHAPE), Limits(), SHAPE), SHAPE)
    for number in (number for call in after.calls for number in call.lanes):
        own = after.lanes[number]
        assert own.parent is None or len(after.lanes[own.parent].ids) == own.start


def test_without_states_nothing_is_cut() -> None:
    before = naive([lane(TEXT, [logits(5)])])
    assert cut(before, replace(SHAPE, recurrent=False)) is before
    assert cut(before, SHAPE) is before
