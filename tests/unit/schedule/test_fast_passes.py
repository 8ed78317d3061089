"""Unique rows, share prefix, skip layers, stack points, window rows: before and after, by shape and by value."""

from dataclasses import replace

import pytest
from tests.schedules import DEPTH, STEP, applied, call, edit, equal, keep, lane, logits, naive, play, sound

from causalab_mini.schedule.cost import cost
from causalab_mini.schedule.ir import Call, Entry, LaneValue, PublishedValue, Schedule
from causalab_mini.schedule.limits import CALL_COLUMNS

TEXT = [3 + n % 7 for n in range(CALL_COLUMNS + 8)]
STREAM = keep("block_output", 1, (1,))


def shared(before: Schedule) -> Schedule:
    """Prefixes shared, the rounds made into calls."""
    after = applied(applied(before, "share prefix"), "stack points")
    equal(before, after)
    return after


# unique rows


def test_unique_rows_run_a_prompt_once_whatever_row_and_role_it_stands_in() -> None:
    source = lane([3, 4, 5], [STREAM])
    before = naive(
        [lane([3, 4, 5], [logits(2)]), lane([6, 7]), lane([3, 4, 5], [logits(2)])],
        [source, lane([8, 9, 3], [STREAM])],
        [lane([6, 7], [logits(1)], [edit(1, (1,), LaneValue(3, STREAM))])],
    )
    after = applied(before, "unique rows")
    assert after.bindings == {(STEP, 0): (0, 1, 0), (STEP, 1): (0, 4), (STEP, 2): (5,)}
    assert [each.lanes for each in after.calls] == [(0, 1), (4,), (5,)]
    assert after.lanes[0].keeps == (logits(2), STREAM)
    assert after.lanes[5].edits[0].argument == LaneValue(0, STREAM)
    equal(before, after)


def test_unique_rows_tell_writes_apart() -> None:
    before = naive([lane([3, 4], [logits(1)], [edit(0, (0,), float(n))]) for n in range(2)])
    assert applied(before, "unique rows") == before


# share prefix


def test_a_text_that_rows_begin_with_runs_once() -> None:
    before = naive([lane([*TEXT, n], [logits(len(TEXT))]) for n in (3, 4, 5)])
    after = shared(before)
    assert sorted(each.columns for each in after.lanes) == [1, 1, len(TEXT) + 1]
    assert [len(each.lanes) for each in after.calls] == [1, 2]
    assert after.calls[1].cached == len(TEXT)
    assert cost(after, DEPTH).token_layers == DEPTH * (len(TEXT) + 3)


def test_a_short_beginning_is_not_worth_a_call() -> None:
    before = naive([lane([3, 4, n], [logits(2)]) for n in (3, 4, 5)])
    after = shared(before)
    assert [each.start for each in after.lanes] == [0, 0, 0]
    assert len(after.calls) == 1


def test_a_written_lane_branches_off_at_its_first_write() -> None:
    source = lane(TEXT, [keep("block_output", 1, (10, 11))])
    written = lane(TEXT, [logits(20)], [edit(1, (10, 11), LaneValue(0, keep("block_output", 1, (10, 11))))])
    after = shared(naive([source], [written]))
    assert (after.lanes[1].start, after.lanes[1].parent) == (10, 0)


def test_lanes_with_the_same_write_share_past_it() -> None:
    source = lane([9, *TEXT], [STREAM])
    write = edit(1, (2,), LaneValue(0, STREAM))
    before = naive([source], [lane([*TEXT, n], [logits(len(TEXT))], [write]) for n in (3, 4)])
    after = shared(before)
    assert after.lanes[2].start == len(TEXT)
    assert after.lanes[2].parent == 1


def test_values_before_the_start_are_handed_up() -> None:
    kept = keep("block_output", 0, (0, 5, len(TEXT)))
    before = naive([lane([*TEXT, n], [kept]) for n in (3, 4)])
    after = shared(before)
    follower = max(range(2), key=lambda number: after.lanes[number].start)
    assert after.lanes[follower].keeps == (keep("block_output", 0, (len(TEXT),)),)
    assert keep("block_output", 0, (0, 5)) in after.lanes[1 - follower].keeps


def test_the_last_column_is_always_a_lanes_own() -> None:
    # One prompt is a beginning of the other, and one stands twice.
    before = naive([lane(TEXT, [logits(len(TEXT) - 1)]), lane([*TEXT, 3], [logits(len(TEXT))]), lane(TEXT)])
    after = shared(before)
    assert all(each.columns >= 1 for each in after.lanes)


def test_a_write_at_step_0_is_a_write_at_the_last_column() -> None:
    written = lane(TEXT, [logits(len(TEXT) - 1)], [edit(1, (0,), frame="generated")], 1)
    after = shared(naive([written], [lane([*TEXT, 9], [logits(len(TEXT))])], heard=[0]))
    assert after.lanes[1].start == len(TEXT) - 1


def test_lanes_that_wait_for_each_other_are_an_error() -> None:
    lanes = [lane([3, 4], [STREAM], [edit(1, (1,), LaneValue(1 - n, STREAM))]) for n in range(2)]
    with pytest.raises(ValueError, match="wait for each other"):
        applied(naive(*([each] for each in lanes)), "share prefix")


# skip layers


def skipped(*forwards: list) -> Schedule:
    before = naive(*forwards)
    after = applied(applied(applied(before, "share prefix"), "skip layers"), "stack points")
    equal(before, after)
    return after


CLEAN = lane([3, 4, 5], [keep("block_output", 0, (2,)), logits(2)])


def test_a_lane_enters_at_the_block_above_its_first_write() -> None:
    after = skipped([CLEAN], [lane([3, 4, 5], [logits(2)], [edit(0, (2,), LaneValue(0, CLEAN.keeps[0]))])])
    assert after.lanes[1].entry == Entry(1, 0)
    assert after.lanes[1].edits[0].place.spelled() == "block_input[1]"
    assert keep("block_input", 1, (2,)) in after.lanes[0].keeps
    assert cost(after, DEPTH).token_layers == 3 * DEPTH + (DEPTH - 1)


@pytest.mark.parametrize(
    ("name", "layer", "entry"),
    [
        ("mlp_output", 1, 1),
        ("block_input", 2, 2),
        ("block_output", 2, 2),
        ("ln_final", None, 2),
        ("embeddings", None, 0),
    ],
)
def test_where_a_write_lets_a_lane_enter(name: str, layer: int | None, entry: int) -> None:
    write = edit(layer, (2,), LaneValue(0, CLEAN.keeps[0]), name=name)
    after = skipped([CLEAN], [lane([3, 4, 5], [logits(2)], [write])])
    assert after.lanes[1].entry == (Entry(entry, 0) if entry else None)


def test_a_kept_value_holds_the_entry_down() -> None:
    write = edit(1, (2,), LaneValue(0, CLEAN.keeps[0]))
    for kept, entry in ((keep("mlp_output", 1, (2,)), 1), (keep("block_output", 1, (2,)), 1), (logits(2), 2)):
        after = skipped([CLEAN], [lane([3, 4, 5], [kept], [write])])
        assert after.lanes[1].entry == Entry(entry, 0)


def test_without_a_clean_run_of_its_text_a_lane_stays_whole() -> None:
    after = skipped([CLEAN], [lane([3, 4, 6], [logits(2)], [edit(1, (2,), LaneValue(0, CLEAN.keeps[0]))])])
    assert after.lanes[1].entry is None


def test_a_lane_that_goes_on_generating_stays_whole() -> None:
    kept = keep("lm_head", None, (1,), "generated")
    after = skipped([CLEAN], [lane([3, 4, 5], [kept], [edit(1, (2,), LaneValue(0, CLEAN.keeps[0]))], 2)])
    assert all(after.lanes[number].entry is None for each in after.calls for number in each.lanes)


# stack points


def test_lanes_of_one_round_run_together() -> None:
    lanes = [lane([3, 4, n], [logits(2)], [edit(n % 3, (1,))]) for n in range(3, 9)]
    round_ = replace(naive(lanes), calls=(Call(tuple(range(6)), 0, ()),))
    after = applied(round_, "stack points")
    assert after.calls == (Call(tuple(range(6)), 3, (2,)),)
    equal(naive(lanes), after)


def test_limits_cut_a_round_evenly() -> None:
    lanes = [lane([3, 4, n], [logits(2)]) for n in range(3, 10)]
    after = applied(naive(lanes), "stack points", lanes=3)
    assert [len(each.lanes) for each in after.calls] == [3, 3, 1]
    equal(naive(lanes), after)


def test_lengths_far_apart_do_not_share_a_call() -> None:
    short, long = [[3, 4, n] for n in range(3, 9)], [[*TEXT, n] for n in range(3, 9)]
    before = naive([lane(ids, [logits(len(ids) - 1)]) for ids in [*short, *long, *short, *long]])
    after = applied(before, "stack points")
    assert [each.width for each in after.calls] == [3, len(TEXT) + 1]
    equal(before, after)


def test_few_lanes_of_near_lengths_share_a_call() -> None:
    before = naive([lane([3, 4], [logits(1)]), lane([3, 4, 5], [logits(2)])])
    after = applied(before, "stack points")
    assert after.calls == (Call((0, 1), 3, (2,)),)
    equal(before, after)


def test_only_lanes_that_decode_as_far_share_a_call() -> None:
    before = naive([lane([3, 4], [logits(1)])], [lane([5, 6], decode=2)], [lane([7, 8], decode=2)], heard=[1, 2])
    round_ = replace(before, calls=(Call((0, 1, 2), 0, ()),))
    after = applied(round_, "stack points")
    assert sorted(each.lanes for each in after.calls) == [(0,), (1, 2)]
    equal(before, after)


def test_those_that_enter_lower_come_first() -> None:
    source = CLEAN.keeps[0]
    writes = [edit(layer, (2,), LaneValue(0, source)) for layer in (1, 0, 1, 0)]
    after = skipped([CLEAN], *([lane([3, 4, 5], [logits(2)], [one])] for one in writes))
    assert [after.lanes[number].entry for number in after.calls[1].lanes] == [Entry(1, 0)] * 2 + [Entry(2, 0)] * 2


# window rows


def test_windows_have_at_most_so_many_lanes() -> None:
    before = naive([lane([3, 4, n], [logits(2)]) for n in range(3, 8)], [lane([3, 4], [logits(1)])])
    after = applied(before, "window rows", lanes=2)
    assert [each.lanes for each in after.calls] == [(0, 1), (2, 3), (4,), (5,)]
    assert [each.width for each in after.calls] == [3, 3, 3, 2]
    equal(before, after)
    assert applied(before, "window rows") == before


# together


def test_a_stacked_point_does_not_see_anothers_rows() -> None:
    source = keep("block_output", 0, (2,))
    texts = ([3, 4, 5], [6, 7, 8])
    writes = [edit(0, (2,), LaneValue(n, source)) for n in range(2)]

    def stacked(factor: float) -> Schedule:
        last = replace(writes[1], argument=factor)
        return naive(
            [lane(text, [source, logits(2)]) for text in texts],
            [lane(text, [logits(2)], [writes[0]]) for text in texts],
            [lane(text, [logits(2)], [last]) for text in texts],
        )

    def found(schedule: Schedule) -> list:
        after = applied(applied(applied(schedule, "share prefix"), "skip layers"), "stack points")
        assert len(after.calls) == 2
        sound(after)
        values = play(after)
        return [values.value(number, logits(2)).tolist() for number in range(6)]

    one, other = found(stacked(1.0)), found(stacked(-7.0))
    assert one[:4] == other[:4]
    assert one[4] != other[4]
    assert one[5] != other[5]


def test_a_hand_made_tree_of_prefixes() -> None:
    lanes = (
        lane([3, 4, 5], [logits(2)]),
        lane([3, 4, 6, 7], [logits(3), keep("block_output", 1, (2,))], start=2, parent=0),
        lane([3, 4, 6, 8, 9], [logits(4)], start=3, parent=1),
        lane([9], [logits(0)]),
    )
    calls = (call(lanes, [0]), call(lanes, [1], 2), call(lanes, [3, 2], 3))
    bindings = {(STEP, 0): (0, 1, 2, 3)}
    wanted = {(number, logits(len(each.ids) - 1)) for number, each in enumerate(lanes)}
    wanted |= {(2, keep("block_output", 1, (2,)))}
    tree = Schedule(lanes, calls, bindings, frozenset(wanted), frozenset())
    plain = [replace(each, start=0, parent=None) for each in lanes]
    plain[2] = replace(plain[2], keeps=(*plain[2].keeps, keep("block_output", 1, (2,))))
    equal(replace(naive(plain), wanted=frozenset(wanted)), tree)


# sliding windows


def test_a_window_is_not_widened_by_padding_after_the_cache() -> None:
    lanes = (
        lane([3, 4, 5, 6], [logits(3)]),
        lane([3, 4, 5, 6, 7], [logits(4)], start=4, parent=0),
        lane([3, 4, 5, 8, 9], [logits(4)], start=3, parent=0),
        lane([9], [logits(0)]),
    )
    bindings = {(STEP, 0): (0, 1, 2, 3)}
    wanted = frozenset((number, each.keeps[0]) for number, each in enumerate(lanes))
    rounds = (Call((0,), 0, ()), Call((1, 2, 3), 0, ()))
    before = Schedule(lanes, rounds, bindings, wanted, frozenset())
    wide, narrow = (applied(before, "stack points", window=window) for window in (6, 5))
    assert [each.lanes for each in wide.calls] == [(0,), (1, 2, 3)]
    assert [each.lanes for each in narrow.calls] == [(0,), (3,), (1,), (2,)]
    for after in (wide, narrow):
        sound(after)


# finish points


def test_a_point_is_done_before_those_after_it() -> None:
    """Two sources and what is written from them, in the order of rounds: the calls of point a, then those of b."""
    sources = [lane([3, 4, n], [STREAM]) for n in (5, 6)]
    written = [lane([7, 8, 9], [logits(2)], [edit(1, (1,), LaneValue(n, STREAM))]) for n in range(2)]
    before = naive([sources[0]], [sources[1]], [written[0]], [written[1]])
    keys = ("a", "b", "a", "b")
    bindings = {((label, ("score",)), index): (index,) for index, label in enumerate(keys)}
    after = applied(replace(before, bindings=dict(sorted(bindings.items()))), "finish points")
    assert [each.lanes for each in after.calls] == [(0,), (2,), (1,), (3,)]
    assert {each.lanes: each for each in after.calls} == {each.lanes: each for each in before.calls}


def test_nothing_runs_before_what_it_starts_from_enters_with_or_is_given() -> None:
    """Whatever order the points come in."""
    clean = lane([*TEXT, 5], [logits(len(TEXT)), STREAM])
    written = [lane([*TEXT, 5], [logits(len(TEXT))], [edit(n, (len(TEXT),), 0.5)]) for n in range(DEPTH)]
    given = lane([*TEXT, 6], [logits(len(TEXT))], [edit(1, (1,), LaneValue(0, STREAM))])
    before = naive([clean], *([each] for each in written), [given])
    rounds = applied(applied(before, "share prefix"), "skip layers")
    calls = applied(rounds, "stack points", lanes=1)
    turned = {((str(n), ("score",)), 0): calls.bindings[STEP, n] for n in reversed(range(DEPTH + 2))}
    after = applied(replace(calls, bindings=turned), "finish points")
    sound(after)
    assert after.calls != calls.calls
    assert set(after.calls) == set(calls.calls)


def test_what_uses_a_published_mean_runs_after_all_rows_of_it() -> None:
    rows = [lane([3, 4, n], [STREAM]) for n in (5, 6)]
    given = lane([7, 8, 9], [logits(2)], [edit(1, (1,), PublishedValue(("b", ("harvest",)), "mean", 0))])
    before = naive([given], [rows[0]], [rows[1]])
    bindings = {(("b", ("score",)), 0): (0,), (("b", ("harvest",)), 0): (1, 2)}
    after = applied(replace(before, bindings=bindings), "finish points")
    assert [each.lanes for each in after.calls] == [(1,), (2,), (0,)]
