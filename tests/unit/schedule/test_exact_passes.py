"""Drop, trim, merge, share prefill: small schedules before and after, by shape and by value."""

from dataclasses import replace

from tests.schedules import STEP, applied, edit, equal, keep, lane, logits, naive, sound

from causalab_mini.schedule.ir import Call, LaneValue

STREAM = keep("block_output", 1, (1,))
UNUSED = keep("block_output", 0, (0, 2))


# drop


def test_drop_leaves_what_is_wanted_and_what_is_an_argument() -> None:
    source = lane([3, 4, 5], [UNUSED, STREAM, logits(2)])
    target = lane([6, 7, 8], [logits(2), UNUSED], [edit(1, (1,), LaneValue(0, STREAM))])
    before = naive([source], [target], wanted=[(0, logits(2)), (1, logits(2))])
    after = applied(before, "drop")
    assert after.lanes == (replace(source, keeps=(STREAM, logits(2))), replace(target, keeps=(logits(2),)))
    assert after.calls == before.calls
    equal(before, after)


def test_drop_of_everything_still_runs_the_call() -> None:
    before = naive([lane([3, 4, 5], [UNUSED])], wanted=[])
    after = applied(before, "drop")
    assert after.lanes[0].keeps == ()
    assert after.calls == before.calls
    equal(before, after)


def test_drop_has_nothing_to_do() -> None:
    before = naive([lane([3, 4, 5], [STREAM])])
    assert applied(before, "drop") == before


# trim

AT_1 = keep("block_output", 0, (1,), "generated")
AT_02 = keep("block_output", 0, (0, 2), "generated")


def test_trim_ends_after_the_last_step_that_is_kept() -> None:
    before = naive([lane([3, 4], [AT_1], decode=5), lane([5], [AT_02], decode=5)])
    after = applied(before, "trim")
    assert [each.decode for each in after.lanes] == [3, 3]
    assert after.calls == before.calls
    equal(before, after)


def test_trim_spares_a_call_of_which_one_lane_is_heard() -> None:
    before = naive([lane([3, 4], [AT_1], decode=5), lane([5], [AT_02], decode=5)], heard=[1])
    assert applied(before, "trim") == before


def test_trim_of_a_decode_nobody_looks_at_leaves_the_prefill() -> None:
    before = naive([lane([3, 4, 5], [STREAM, logits(0)], decode=4)])
    after = applied(before, "trim")
    assert after.lanes[0].decode == 0
    assert before.calls[0].head == (0, 2)
    assert after.calls[0].head == (0,)
    equal(before, after)


# merge


def test_merge_runs_equal_calls_once_and_unites_what_is_kept() -> None:
    rows = [[3, 4, 5], [6, 7]]
    before = naive(
        [lane(ids, [keep("block_output", 1, (1,))]) for ids in rows],
        [lane(ids, [keep("block_output", 1, (1,)), keep("mlp_output", 2, (0,))]) for ids in rows],
    )
    after = applied(before, "merge")
    assert after.calls == before.calls[:1]
    assert after.bindings == {(STEP, 0): (0, 1), (STEP, 1): (0, 1)}
    assert after.lanes[0].keeps == (keep("block_output", 1, (1,)), keep("mlp_output", 2, (0,)))
    equal(before, after)


def test_merge_follows_arguments_through_chains() -> None:
    source = lane([3, 4, 5], [STREAM])
    first, second = (lane([6, 7, 8], [logits(2)], [edit(1, (1,), LaneValue(n, STREAM))]) for n in (0, 2))
    before = naive([source], [first], [source], [second])
    after = applied(before, "merge")
    assert after.calls == before.calls[:2]
    assert after.bindings == {(STEP, 0): (0,), (STEP, 1): (1,), (STEP, 2): (0,), (STEP, 3): (1,)}
    equal(before, after)


def test_merge_lets_a_longer_decode_serve_a_shorter_one() -> None:
    before = naive([lane([3, 4], [AT_1], decode=2)], [lane([3, 4], [AT_02], decode=4)], heard=[0, 1])
    after = applied(before, "merge")
    assert len(after.calls) == 1
    assert after.lanes[0].decode == 4
    assert after.heard == {0}
    equal(before, after)


def test_merge_needs_the_same_rows_writes_padding_and_head() -> None:
    one, other = edit(1, (0,)), edit(1, (0,), 2.0)
    clean = lane([3, 4], [logits(1)])
    for second in (
        [lane([3, 5], [logits(1)])],
        [lane([3, 4], [logits(1)], [one])],
        [clean, lane([5, 6, 7], [logits(2)])],
        [lane([3, 4], [logits(0)])],
    ):
        before = naive([clean], second)
        assert applied(before, "merge") == before
    before = naive([lane([3, 4], [logits(1)], [one, other])], [lane([3, 4], [logits(1)], [other, one])])
    assert applied(before, "merge") == before


# share prefill


def test_share_prefill_copies_the_cache_where_writes_differ_later() -> None:
    push = edit(1, (1, 2), frame="generated")
    before = naive(
        [lane([3, 4, 5], [AT_02], decode=3), lane([6], [AT_02], decode=3)],
        [lane([3, 4, 5], [AT_02, STREAM], [push], 3), lane([6], [AT_02], [push], 3)],
        heard=range(4),
    )
    after = applied(before, "share prefill")
    assert after.calls == (before.calls[0], Call((2, 3), 0, (), cached=3))
    assert [(each.start, each.parent) for each in after.lanes] == [(0, None), (0, None), (3, 0), (1, 1)]
    # Step 0 and the prompt's columns are now the parents' to keep.
    assert after.lanes[2].keeps == (keep("block_output", 0, (2,), "generated"),)
    assert set(after.lanes[0].keeps) == {AT_02, keep("block_output", 0, (0,), "generated"), STREAM}
    equal(before, after)


def test_share_prefill_needs_equal_writes_up_to_step_0() -> None:
    for one in (edit(1, (0, 1), frame="generated"), edit(1, (1,))):
        before = naive([lane([3, 4], [AT_1], decode=2)], [lane([3, 4], [AT_1], [one], 2)])
        assert applied(before, "share prefill") == before


def test_share_prefill_leaves_calls_without_a_decode() -> None:
    before = naive([lane([3, 4], [logits(1)])], [lane([3, 4], [logits(1)])])
    assert applied(before, "share prefill") == before
    sound(before)
