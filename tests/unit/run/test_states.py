"""Where a lane's columns are in a cache, which of them are padding, and what a branch takes."""

import pytest
import torch
from tests import fakes
from tests.schedules import call, lane

from causalab_mini.engine.caches import fresh
from causalab_mini.run.states import Parent, State, last_logits, masks, new_ids, taken_over
from causalab_mini.schedule.ir import Call

LONG = lane([3, 4, 5, 6])
SHORT = lane([7, 8])
BEHIND = lane([3, 4, 5, 9, 9], start=3, parent=0)
BEHIND_SHORT = lane([7, 6, 5, 4], start=1, parent=1)
WHOLE = lane([1])
LATER = (BEHIND, BEHIND_SHORT, WHOLE)
CALL = call(LATER, range(3), cached=3)


def filled(columns: int, lanes: int) -> State:
    """A state whose cache holds, at every lane and column, ten times the lane plus the column."""
    network = fakes.network(1)
    cache = fresh(network)
    cells = (10 * torch.arange(lanes)[:, None] + torch.arange(columns)).float()[:, None, :, None]
    cache.update(cells, cells, 0)
    return State(Call(tuple(range(lanes)), columns, ()), (LONG, SHORT), cache)


def test_masks_and_ids_are_padded_in_both_parts() -> None:
    assert masks(CALL, LATER).tolist() == [
        [1, 1, 1, 0, 1, 1],
        [0, 0, 1, 1, 1, 1],
        [0, 0, 0, 0, 0, 1],
    ]
    assert new_ids(CALL, LATER, 2).tolist() == [[2, 9, 9], [6, 5, 4], [2, 2, 1]]


def test_columns_of_a_first_call_lie_to_the_right() -> None:
    state = filled(4, 2)
    assert state.columns(0, 3, 3) == [0, 1, 2]
    assert state.columns(1, 1, 3) == [0, 0, 2]


def test_columns_of_a_later_call_are_in_two_parts() -> None:
    state = State(CALL, LATER, fresh(fakes.network(1)))
    # Three taken columns, one of padding, then its own two.
    assert state.columns(0, 5, 5) == [0, 1, 2, 4, 5]
    # One taken column at the end of the three, then its own.
    assert state.columns(1, 4, 5) == [0, 2, 3, 4, 5]
    assert state.columns(2, 1, 1) == [5]


def test_a_branch_takes_each_lanes_own_columns() -> None:
    state = filled(4, 2)
    parents = [Parent(state, 0), Parent(state, 1), Parent(None, 0)]
    for stored in (True, False):
        cache = taken_over(CALL, LATER, parents, stored=stored)
        assert cache.get_seq_length() == 3
        new = torch.full((3, 1, 3, 1), -1.0)
        keys, _ = cache.update(new, new, 0)
        real = masks(CALL, LATER).bool()
        assert keys[0, 0, :, 0][real[0]].tolist() == [0, 1, 2, -1, -1]
        assert keys[1, 0, :, 0][real[1]].tolist() == [12, -1, -1, -1]
        assert keys[2, 0, :, 0][real[2]].tolist() == [-1]
        assert cache.get_seq_length() == (6 if stored else 3)
    assert state.cache.get_seq_length() == 4


def test_lanes_of_several_states_stand_in_their_order() -> None:
    first, second = filled(4, 2), filled(5, 2)
    lanes = (BEHIND, BEHIND_SHORT, BEHIND)
    parents = [Parent(second, 0), Parent(first, 1), Parent(first, 0)]
    cache = taken_over(call(lanes, range(3), cached=3), lanes, parents, stored=True)
    new = torch.zeros(3, 1, 3, 1)
    found = cache.update(new, new, 0)[0][:, 0, :3, 0]
    # In five columns the four of a lane begin one later.
    assert found[0].tolist() == [1, 2, 3]
    assert found[1, -1] == 12
    assert found[2].tolist() == [0, 1, 2]


def test_logits_to_go_on_from_are_the_parents() -> None:
    state = filled(4, 2)
    with pytest.raises(ValueError, match="last logits"):
        last_logits([Parent(state, 0)])
    state.logits = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert last_logits([Parent(state, 1), Parent(state, 0)]).tolist() == [[3, 4], [1, 2]]
    with pytest.raises(ValueError, match="last logits"):
        last_logits([Parent(None, 0)])
