"""Caches: a fork's lanes are the ones chosen, and no two caches share what a later call writes."""

from collections.abc import Callable

import pytest
import torch
from tests import families
from torch import Tensor

from causalab_mini.engine.caches import fork, fresh
from causalab_mini.engine.contract import Inputs, Visit
from causalab_mini.engine.hooks import Hooks
from causalab_mini.engine.modules import Network

ROOT = Visit("", "output", None, {"logits": lambda t: t[:, -1]})
IDS = torch.tensor([[5, 6, 7, 8], [9, 10, 11, 12]])


@pytest.fixture(params=families.FAMILIES)
def network(request: pytest.FixtureRequest, family_network: Callable[..., Network]) -> Network:
    return family_network(request.param, 64)


def step(network: Network, cache: object, ids: Tensor, past: int) -> Tensor:
    lanes, width = ids.shape
    inputs = Inputs(
        ids,
        torch.ones(lanes, past + width, dtype=torch.int64),
        torch.arange(past, past + width).expand(lanes, width),
        torch.tensor([width - 1]),
        cache,  # type: ignore[arg-type]
    )
    return Hooks(network).forward(inputs, [ROOT])["logits"]


def test_a_fork_goes_on_like_its_lane_to_the_bit(network: Network) -> None:
    cache = fresh(network)
    step(network, cache, IDS, 0)
    forked = fork(cache, torch.tensor([0, 1]))
    token = torch.tensor([[3], [4]])
    assert torch.equal(step(network, forked, token, 4), step(network, cache, token, 4))
    assert torch.equal(step(network, forked, token, 5), step(network, cache, token, 5))


def test_lanes_are_chosen_with_repeats(network: Network) -> None:
    cache = fresh(network)
    step(network, cache, IDS, 0)
    token = torch.tensor([[3], [4]])
    lanes = torch.tensor([1, 0, 0, 1, 1])
    many = step(network, fork(cache, lanes), token[lanes], 4)
    two = step(network, cache, token, 4)
    assert (many - two[lanes]).abs().max() < 1e-5


def test_a_prefix_row_becomes_many_lanes(network: Network) -> None:
    cache = fresh(network)
    step(network, cache, IDS[:1], 0)
    expanded = fork(cache, torch.zeros(3, dtype=torch.int64))
    tails = torch.tensor([[3, 4], [5, 6], [7, 8]])
    found = step(network, expanded, tails, 4)
    whole = step(network, fresh(network), torch.cat((IDS[:1].expand(3, 4), tails), dim=1), 0)
    assert (found - whole).abs().max() < 1e-4


def test_neither_sees_what_the_other_goes_on_with(network: Network) -> None:
    cache = fresh(network)
    step(network, cache, IDS, 0)
    keys = [layer.keys.clone() for layer in cache.layers]
    forked = fork(cache, torch.tensor([1, 0]))
    step(network, forked, torch.tensor([[3], [4]]), 4)
    assert cache.get_seq_length() == 4
    assert forked.get_seq_length() == 5
    for layer, before in zip(cache.layers, keys, strict=True):
        assert torch.equal(layer.keys, before)
    with torch.inference_mode():
        for ours, theirs in zip(cache.layers, forked.layers, strict=True):
            theirs.keys.zero_()
            assert ours.keys.abs().sum() > 0


def test_a_fork_of_an_empty_cache_is_empty(network: Network) -> None:
    cache = fresh(network)
    forked = fork(cache, torch.tensor([0]))
    step(network, forked, IDS, 0)
    assert (forked.get_seq_length(), cache.get_seq_length()) == (4, 0)


def test_lanes_are_a_list(network: Network) -> None:
    with pytest.raises(ValueError, match=r"\[n\]"):
        fork(fresh(network), torch.zeros(1, 1, dtype=torch.int64))


def test_a_fork_shares_no_memory_and_copies_it_once(network: Network) -> None:
    cache = fresh(network)
    step(network, cache, IDS, 0)
    forked = fork(cache, torch.tensor([0, 1]))
    for ours, theirs in zip(cache.layers, forked.layers, strict=True):
        assert type(ours) is type(theirs)
        for mine, other in ((ours.keys, theirs.keys), (ours.values, theirs.values)):
            assert mine.data_ptr() != other.data_ptr()
            assert torch.equal(mine, other)
