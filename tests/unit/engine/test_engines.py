"""What both engines promise beside numbers: order, ownership, errors, and a model left as it was."""

import gc
import weakref
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from causalab_mini.engine.contract import Engine, Inputs, Visit
from causalab_mini.engine.hooks import Hooks
from causalab_mini.engine.modules import Network
from causalab_mini.engine.traced import Traced
from causalab_mini.errors import DataRefusal, EngineFailure, OutOfMemory, Problem

IDS = torch.tensor([[5, 6, 7], [8, 9, 10]])
INPUTS = Inputs(IDS, torch.ones_like(IDS), torch.arange(3).expand(2, 3), torch.tensor([2]))
ROOT = Visit("", "output", None, {"logits": lambda t: t})


@pytest.fixture
def network(family_network: Callable[..., Network]) -> Network:
    return family_network("llama", 16)


@pytest.fixture(params=[Hooks, Traced])
def engine(request: pytest.FixtureRequest, network: Network) -> Engine:
    return request.param(network)


def block(network: Network, layer: int, **parts: object) -> Visit:
    place = network.locate("block_output", layer)
    return Visit(place.path, place.side, **parts)  # type: ignore[arg-type]


def plain_logits(network: Network) -> Tensor:
    with torch.no_grad():
        return network.model(input_ids=IDS, use_cache=False, logits_to_keep=1).logits


def hooks_on(network: Network) -> int:
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in network.model.modules())


def fail(error: BaseException) -> Callable[[Tensor], Tensor]:
    def edit(t: Tensor) -> Tensor:
        raise error

    return edit


def test_edits_come_before_keeps(engine: Engine, network: Network) -> None:
    visit = block(network, 1, edit=torch.zeros_like, keep={"a": lambda t: t, "b": lambda t: t + 1})
    kept = engine.forward(INPUTS, [visit])
    assert kept["a"].abs().sum() == 0
    assert (kept["b"] == 1).all()


def test_kept_values_are_memory_of_their_own(engine: Engine, network: Network) -> None:
    seen: list[Tensor] = []

    def watch(t: Tensor) -> Tensor:
        seen.append(t)
        return t[0]

    kept = engine.forward(INPUTS, [block(network, 0, keep={"view": watch, "whole": lambda t: t})])
    for name in ("view", "whole"):
        assert kept[name].untyped_storage().data_ptr() != seen[0].untyped_storage().data_ptr()
        assert not kept[name].requires_grad


def test_a_keep_that_is_memory_of_its_own_is_not_copied_again(engine: Engine, network: Network) -> None:
    made: list[Tensor] = []

    def fresh(t: Tensor) -> Tensor:
        made.append(t[:, 0] + 0)
        return made[0]

    assert engine.forward(INPUTS, [block(network, 0, keep={"a": fresh})])["a"] is made[0]


def test_no_visits_and_no_head_is_a_call(engine: Engine) -> None:
    inputs = Inputs(INPUTS.ids, INPUTS.mask, INPUTS.positions, torch.empty(0, dtype=torch.int64))
    assert engine.forward(inputs, []) == {}
    assert engine.forward(inputs, [ROOT])["logits"].shape == (2, 0, 320)


def test_visits_in_another_order_are_an_error(engine: Engine, network: Network) -> None:
    visits = [block(network, 1, keep={"late": lambda t: t}), block(network, 0, keep={"early": lambda t: t})]
    with pytest.raises(EngineFailure):
        engine.forward(INPUTS, visits)
    assert engine.forward(INPUTS, visits[::-1]).keys() == {"late", "early"}


def test_two_visits_at_one_place_are_an_error(engine: Engine, network: Network) -> None:
    with pytest.raises(EngineFailure, match="two visits"):
        engine.forward(INPUTS, [block(network, 1), block(network, 1)])
    with pytest.raises(EngineFailure, match="one name"):
        engine.forward(INPUTS, [block(network, i, keep={"a": lambda t: t}) for i in (0, 1)])


def test_a_module_that_is_not_there(engine: Engine) -> None:
    with pytest.raises(EngineFailure):
        engine.forward(INPUTS, [Visit("model.layers.9", "output")])


@pytest.mark.parametrize(
    "edit", [lambda t: t[:1], lambda t: t.double(), lambda t: t.to("meta")], ids=["shape", "dtype", "device"]
)
def test_an_edit_keeps_shape_dtype_and_device(
    engine: Engine, network: Network, edit: Callable[[Tensor], Tensor]
) -> None:
    with pytest.raises(EngineFailure, match=r"an edit at the output of 'model.layers.1' turned \(2, 3, 16\)"):
        engine.forward(INPUTS, [block(network, 1, edit=edit)])


def test_a_foreign_error_is_wrapped_once_with_its_cause(engine: Engine, network: Network) -> None:
    with pytest.raises(EngineFailure, match="KeyError") as caught:
        engine.forward(INPUTS, [block(network, 1, edit=fail(KeyError("there")))])
    assert isinstance(caught.value.__cause__, KeyError)
    assert not isinstance(caught.value, OutOfMemory)


def test_an_error_of_this_package_passes_as_it_is(engine: Engine, network: Network) -> None:
    refusal = DataRefusal(Problem("there", "says so"))
    with pytest.raises(DataRefusal) as caught:
        engine.forward(INPUTS, [block(network, 1, edit=fail(refusal))])
    assert caught.value is refusal


def test_an_interrupt_passes_as_it_is(engine: Engine, network: Network) -> None:
    with pytest.raises(KeyboardInterrupt):
        engine.forward(INPUTS, [block(network, 1, edit=fail(KeyboardInterrupt()))])
    assert torch.equal(engine.forward(INPUTS, [ROOT])["logits"], plain_logits(network))


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory: you tried …"),
        RuntimeError("MPS backend out of memory (MPS allocated: 1.00 GB)"),
    ],
)
def test_running_out_of_memory_is_recognised(engine: Engine, network: Network, error: Exception) -> None:
    with pytest.raises(OutOfMemory):
        engine.forward(INPUTS, [block(network, 1, edit=fail(error))])


def test_the_cpu_allocator_running_out_is_recognised(engine: Engine, network: Network) -> None:
    with pytest.raises(OutOfMemory):
        engine.forward(INPUTS, [block(network, 1, keep={"a": lambda t: torch.empty(1 << 60, dtype=torch.uint8)})])


def test_a_wrong_input_is_an_engine_failure(engine: Engine) -> None:
    with pytest.raises(EngineFailure):
        engine.forward(Inputs(IDS + 1000, INPUTS.mask, INPUTS.positions, INPUTS.head), [])


@pytest.mark.parametrize("error", [None, KeyError("there")])
def test_the_model_is_left_as_it_was(engine: Engine, network: Network, error: Exception | None) -> None:
    before = plain_logits(network)
    visits = [block(network, 0, edit=torch.zeros_like), block(network, 1, edit=fail(error) if error else None)]
    if error is None:
        engine.forward(INPUTS, visits)
    else:
        with pytest.raises(EngineFailure):
            engine.forward(INPUTS, visits)
    assert hooks_on(network) == 0
    assert torch.equal(plain_logits(network), before)
    assert torch.equal(engine.forward(INPUTS, [ROOT])["logits"], before)


def test_nothing_is_held_after_a_call(engine: Engine, network: Network) -> None:
    seen: list[weakref.ref[Tensor]] = []

    def watch(t: Tensor) -> Tensor:
        seen.append(weakref.ref(t))
        return t * 1

    gc.disable()
    try:
        kept = engine.forward(INPUTS, [block(network, 1, edit=watch, keep={"a": watch}), ROOT])
        assert seen[0]() is None
        del kept
        assert all(ref() is None for ref in seen)
    finally:
        gc.enable()


def test_engines_share_a_model(network: Network) -> None:
    hooks, traced = Hooks(network), Traced(network)
    again = Traced(network)
    visits = [block(network, 1, edit=lambda t: t * 2), ROOT]
    logits = [engine.forward(INPUTS, visits)["logits"] for engine in (hooks, traced, again, hooks)]
    assert all(torch.equal(logits[0], other) for other in logits[1:])
    assert not torch.equal(logits[0], plain_logits(network))


def test_the_input_side_of_a_module(engine: Engine, network: Network) -> None:
    place = network.locate("block_input", 1)
    kept = engine.forward(
        INPUTS,
        [
            block(network, 0, keep={"out": lambda t: t}),
            Visit(place.path, place.side, torch.zeros_like, {"in": lambda t: t}),
            ROOT,
        ],
    )
    assert kept["in"].abs().sum() == 0
    assert kept["out"].abs().sum() > 0
    same = engine.forward(INPUTS, [block(network, 0, edit=torch.zeros_like), ROOT])
    assert torch.equal(kept["logits"], same["logits"])


def test_an_edit_of_the_logits_is_what_is_kept(engine: Engine) -> None:
    kept = engine.forward(INPUTS, [Visit("", "output", lambda t: t + 1, {"logits": lambda t: t})])
    plain = engine.forward(INPUTS, [ROOT])
    assert torch.equal(kept["logits"], plain["logits"] + 1)
