"""Caches: a branch begins with the columns it was given, and no cache sees what another goes on with."""

from collections.abc import Callable

import pytest
import torch
from tests import families
from torch import Tensor
from transformers.cache_utils import Cache

from causalab_mini.engine.caches import Source, branch, fresh
from causalab_mini.engine.contract import Inputs, Visit
from causalab_mini.engine.hooks import Hooks
from causalab_mini.engine.modules import Network
from causalab_mini.errors import EngineFailure

ROOT = Visit("", "output", None, {"logits": lambda t: t[:, -1]})
IDS = torch.tensor([[5, 6, 7, 8], [9, 10, 11, 12]])
NEXT = torch.tensor([[3], [4]])


@pytest.fixture(params=[*families.FAMILIES, *families.VARIANTS])
def network(request: pytest.FixtureRequest, family_network: Callable[..., Network]) -> Network:
    return family_network(request.param, 64)


def step(network: Network, cache: Cache, ids: Tensor, past: int) -> Tensor:
    """Logits [L, V] after one call on `ids` [L, T] that follow `past` columns."""
    lanes, width = ids.shape
    inputs = Inputs(
        ids,
        torch.ones(lanes, past + width, dtype=torch.int64),
        torch.arange(past, past + width).expand(lanes, width),
        torch.tensor([width - 1]),
        cache,
    )
    return Hooks(network).forward(inputs, [ROOT])["logits"]


def filled(network: Network, ids: Tensor) -> Cache:
    cache = fresh(network)
    step(network, cache, ids, 0)
    return cache


def taken(cache: Cache, slots: list[int], columns: list[list[int]], lanes: list[int] | None = None) -> Source:
    lanes = list(range(len(slots))) if lanes is None else lanes
    return Source(cache, torch.tensor(lanes), torch.tensor(slots), torch.tensor(columns))


ALL = [[0, 1, 2, 3]]


@pytest.mark.parametrize("stored", [True, False])
def test_a_branch_of_everything_goes_on_like_its_source_to_the_bit(network: Network, stored: bool) -> None:
    cache = filled(network, IDS)
    other = branch([taken(cache, [0, 1], ALL * 2)], stored=stored)
    assert torch.equal(step(network, other, NEXT, 4), step(network, cache, NEXT, 4))
    if stored:
        assert torch.equal(step(network, other, NEXT, 5), step(network, cache, NEXT, 5))


@pytest.mark.parametrize("stored", [True, False])
def test_lanes_are_chosen_with_repeats(network: Network, stored: bool) -> None:
    cache = filled(network, IDS)
    slots = [1, 0, 0, 1, 1]
    many = step(network, branch([taken(cache, slots, ALL * 5)], stored=stored), NEXT[slots], 4)
    assert (many - step(network, cache, NEXT, 4)[slots]).abs().max() < 1e-5


@pytest.mark.parametrize("stored", [True, False])
def test_a_prefix_of_one_row_becomes_many_lanes(network: Network, stored: bool) -> None:
    cache = filled(network, IDS[:1])
    tails = torch.tensor([[3, 4], [5, 6], [7, 8]])
    found = step(network, branch([taken(cache, [0] * 3, [[0, 1]] * 3)], stored=stored), tails, 2)
    whole = step(network, fresh(network), torch.cat((IDS[:1, :2].expand(3, 2), tails), dim=1), 0)
    assert (found - whole).abs().max() < 1e-4


@pytest.mark.parametrize("stored", [True, False])
def test_lanes_of_two_sources_stand_where_they_were_put(network: Network, stored: bool) -> None:
    first, second = filled(network, IDS[:1]), filled(network, IDS[1:])
    other = branch([taken(first, [0], ALL, [1]), taken(second, [0], ALL, [0])], stored=stored)
    wanted = step(network, filled(network, IDS.flip(0)), NEXT, 4)
    assert (step(network, other, NEXT, 4) - wanted).abs().max() < 1e-5


@pytest.mark.parametrize("stored", [True, False])
def test_a_source_stays_as_it_is(network: Network, stored: bool) -> None:
    cache = filled(network, IDS)
    before = [(layer.keys.clone(), layer.values.clone()) for layer in cache.layers]
    other = branch([taken(cache, [1, 0], ALL * 2)], stored=stored)
    step(network, other, NEXT, 4)
    assert cache.get_seq_length() == 4
    assert other.get_seq_length() == (5 if stored else 4)
    for layer, (keys, values) in zip(cache.layers, before, strict=True):
        assert torch.equal(layer.keys, keys)
        assert torch.equal(layer.values, values)


@pytest.mark.parametrize("stored", [True, False])
def test_a_source_that_goes_on_does_not_move_its_branch(network: Network, stored: bool) -> None:
    cache = filled(network, IDS)
    wanted = step(network, branch([taken(cache, [0, 1], ALL * 2)], stored=stored), NEXT, 4)
    other = branch([taken(cache, [0, 1], ALL * 2)], stored=stored)
    step(network, cache, NEXT.flip(0), 4)
    assert torch.equal(step(network, other, NEXT, 4), wanted)


def test_a_branch_of_a_stored_branch_begins_with_all_its_columns(network: Network) -> None:
    middle = branch([taken(filled(network, IDS), [0, 1], ALL * 2)], stored=True)
    step(network, middle, NEXT, 4)
    last = branch([taken(middle, [1, 0], [[0, 1, 2, 3, 4]] * 2)], stored=False)
    longer = filled(network, torch.cat((IDS, NEXT), dim=1).flip(0))
    assert (step(network, last, NEXT, 5) - step(network, longer, NEXT, 5)).abs().max() < 1e-5


@pytest.mark.parametrize("stored", [True, False])
def test_a_branch_of_an_empty_cache_is_an_error(network: Network, stored: bool) -> None:
    other = branch([taken(fresh(network), [0], [[0]])], stored=stored)
    with pytest.raises(EngineFailure, match="filled"):
        step(network, other, NEXT[:1], 1)
