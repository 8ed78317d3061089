"""The arithmetic engine keeps the promises of the real ones, so that what passes on it means something."""

import pytest
import torch
from tests import fakes, plain
from tests.cached import decode, positions
from torch import Tensor

from causalab_mini.engine.caches import Source, branch, fresh
from causalab_mini.engine.contract import Engine, Inputs, Visit
from causalab_mini.errors import EngineFailure

ROWS = [[3, 4, 5, 6], [7, 8], [9, 1, 2]]
IDS, MASK = plain.pad(ROWS)
NETWORK = fakes.network()
PLACES = [
    ("embed", "output"),
    *[
        (f"blocks.{layer}{part}", side)
        for layer in (0, 1)
        for part, side in (("", "input"), (".attention", "output"), (".mlp", "output"), ("", "output"))
    ],
    ("norm", "output"),
    ("", "output"),
]


def moved(vector: Tensor) -> Tensor:
    return vector + torch.arange(len(vector))


def everything(step: int) -> list[Visit]:
    return [Visit(module, side, None, {f"{module}/{side}": lambda t: t[:, -1]}) for module, side in PLACES]


def test_it_is_an_engine() -> None:
    engine: Engine = fakes.Fake(NETWORK)
    assert engine.device == NETWORK.device


def test_a_number_by_hand() -> None:
    kept = fakes.Fake(NETWORK).forward(
        Inputs(torch.tensor([[2]]), torch.tensor([[1]]), torch.tensor([[0]]), torch.tensor([0])), everything(0)
    )
    assert kept["embed/output"].tolist() == [[3, 5, 0, 2]]
    assert kept["blocks.0/input"].tolist() == [[4, 7, 0, 3]]
    assert kept["blocks.0.attention/output"].tolist() == [[4, 2, 0, 3]]
    assert kept["blocks.0.mlp/output"].tolist() == [[0, 3, 0, 2]]
    assert kept["blocks.0/output"].tolist() == [[8, 12, 0, 8]]
    assert kept["norm/output"].shape == (1, fakes.WIDTH)
    assert kept["/output"].shape == (1, fakes.VOCABULARY)


def test_a_lane_is_its_row_alone_to_the_bit() -> None:
    together = decode(fakes.Fake(NETWORK), NETWORK, IDS, MASK, 4, everything)
    for lane, row in enumerate(ROWS):
        alone = decode(fakes.Fake(NETWORK), NETWORK, *plain.pad([row]), 4, everything)
        assert together.ids[lane].tolist() == alone.ids[0].tolist()
        for step in range(4):
            assert torch.equal(together.logits[step][lane], alone.logits[step][0])
            for name, value in alone.kept[step].items():
                assert torch.equal(together.kept[step][name][lane], value[0])
    assert len({tuple(ids) for ids in together.ids.tolist()}) == len(ROWS)


def test_the_cache_is_what_a_whole_forward_sees() -> None:
    engine = fakes.Fake(NETWORK)
    whole = _logits(engine, IDS, MASK, None)
    cache = fresh(NETWORK)
    _logits(engine, IDS[:, :2], MASK[:, :2], cache)
    lanes = torch.arange(3)
    rest = branch([Source(cache, lanes, lanes, torch.tensor([[0, 1]] * 3))], stored=True)
    assert torch.equal(_logits(engine, IDS[:, 2:], MASK, rest), whole)
    assert [called.past for called in engine.calls] == [0, 0, 2]


def _logits(engine: Engine, ids: Tensor, mask: Tensor, cache: object) -> Tensor:
    width = ids.shape[1]
    inputs = Inputs(ids, mask, positions(mask, width), torch.tensor([width - 1]), cache)  # type: ignore[arg-type]
    return engine.forward(inputs, [Visit("", "output", None, {"logits": lambda t: t})])["logits"]


@pytest.mark.parametrize("place", PLACES)
def test_an_edit_is_kept_and_moves_the_rest(place: tuple[str, str]) -> None:
    def edit(t: Tensor) -> Tensor:
        new = t.clone()
        new[0, -1] = moved(t[0, -1])
        return new

    def at(now: int) -> list[Visit]:
        visits = everything(now)
        index = PLACES.index(place)
        if now == 1:
            visits[index] = Visit(*place, edit, visits[index].keep)
        return visits

    clean = decode(fakes.Fake(NETWORK), NETWORK, IDS, MASK, 3, everything)
    written = decode(fakes.Fake(NETWORK), NETWORK, IDS, MASK, 3, at)
    name = "/".join(place)
    assert torch.equal(written.logits[0], clean.logits[0])
    assert torch.equal(written.logits[1][1:], clean.logits[1][1:])
    if place[0]:
        assert torch.equal(written.kept[1][name][0], moved(clean.kept[1][name][0]))
    assert not torch.equal(written.logits[1][0], clean.logits[1][0])


def test_visits_out_of_order_are_an_error() -> None:
    inputs = Inputs(IDS, MASK, positions(MASK, 4), torch.tensor([3]))
    with pytest.raises(EngineFailure, match="never came to embed"):
        fakes.Fake(NETWORK).forward(inputs, [Visit("norm", "output"), Visit("embed", "output")])


def test_unembed_is_the_norm_and_the_head() -> None:
    decoded = decode(fakes.Fake(NETWORK), NETWORK, IDS, MASK, 1, everything)
    assert torch.equal(NETWORK.unembed(decoded.kept[0]["blocks.1/output"]), decoded.logits[0])
