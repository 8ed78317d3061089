"""What runs is what was planned, counted by hooks on the model itself, and leaves nothing behind."""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager
from unittest.mock import patch

import pytest
import torch
from tests.desk import ENGINES, Desk
from tests.worlds import DOCUMENTS, at_home, document, fitted, home, moves, on_rows, thinned
from torch import nn

from causalab_mini.engine.modules import Network
from causalab_mini.plan.nodes import Experiment
from causalab_mini.run import calls as calls_module
from causalab_mini.run import runner as runner_module
from causalab_mini.run.runner import Run
from causalab_mini.run.states import State
from causalab_mini.run.values import Values
from causalab_mini.schedule.cost import Cost
from causalab_mini.schedule.optimize import Mode

NAMES = sorted(f"v2/{path.stem}" for path in (DOCUMENTS / "v2").glob("*.json"))
WAYS: tuple[tuple[Mode, int | None], ...] = (("fast", None), ("naive", None), ("exact", None), ("fast", 3))
RUN: tuple[Mode, ...] = ("naive", "exact", "fast")
ONE_PROMPT = ("v2/forced_continuation",)
"""Whose points differ in what they are fed alone: exact shares their prefill, fast stacks them whole in fewer calls."""
OWN = [name for name in NAMES if at_home(name)]

Random = Callable[[str, int], Desk]
Shipped = Callable[[str], Desk]
DeskFor = Callable[[str, str], Desk]


class Counter:
    """Counts, at every block's attention, calls of the model and lanes × columns."""

    def __init__(self) -> None:
        self.token_layers = 0
        self.forwards = 0

    def attention(self, module: nn.Module, args: tuple, kwargs: dict) -> None:
        hidden = args[0] if args else kwargs["hidden_states"]
        self.token_layers += hidden.shape[0] * hidden.shape[1]

    def model(self, module: nn.Module, args: tuple, kwargs: dict) -> None:
        self.forwards += 1


def mixing(block: nn.Module, network: Network) -> nn.Module:
    """A block's attention, or what stands in its place."""
    return getattr(block, network.family.attention, None) or block.get_submodule(network.family.mixer)


@contextmanager
def counted(network: Network) -> Generator[Counter]:
    counter = Counter()
    blocks = network.model.get_submodule(network.family.blocks)
    hooks = [
        mixing(block, network).register_forward_pre_hook(counter.attention, with_kwargs=True)
        for block in blocks.children()
    ]
    hooks.append(network.model.register_forward_pre_hook(counter.model, with_kwargs=True))
    try:
        yield counter
    finally:
        for hook in hooks:
            hook.remove()


@pytest.fixture
def desk_for(random_world: Random, shipped: Shipped) -> DeskFor:
    """`desk_for(name, model_type)`: a random model, or the shipped one where only its words are the rows' answers."""

    def at(name: str, model: str) -> Desk:
        desk = shipped(home(name)) if name in OWN else random_world(model, 16)
        return desk.under(document(name)["model"].get("attn_implementation"))

    return at


def asked(desk: Desk, name: str, uneven: bool) -> Experiment:
    given = thinned(fitted(document(name), desk.checkpoint.depth))
    return desk.compile(on_rows(given, "weekdays/data#test") if uneven and name not in OWN and moves(name) else given)


@pytest.mark.parametrize("name", NAMES)
def test_what_runs_is_what_was_planned(name: str, desk_for: DeskFor) -> None:
    for (model, uneven), engine in itertools.product((("llama", False), ("gpt2", True)), ENGINES):
        desk = desk_for(name, model)
        experiment = asked(desk, name, uneven)
        for mode, size in WAYS if uneven else WAYS[:2]:
            job = Run(experiment, desk.checkpoint, desk.network, desk.engines[engine], size, mode)
            with counted(desk.network) as counter:
                results = list(job.results())
            assert len(results) == len(experiment.points)
            schedule = job.prepared.schedule
            forwards = sum((call.width > 0) + max(schedule.steps(call) - 1, 0) for call in schedule.calls)
            assert (counter.token_layers, counter.forwards) == (job.prepared.planned.token_layers, forwards)
            assert job.done == job.prepared.planned
            assert job.halved == 0


@pytest.mark.parametrize("name", NAMES)
def test_no_mode_runs_more_than_naive(name: str, desk_for: DeskFor) -> None:
    desk = desk_for(name, "llama")
    experiment = asked(desk, name, True)
    naive, exact, fast = (
        Run(experiment, desk.checkpoint, desk.network, desk.engines["hooks"], None, mode).prepared.planned
        for mode in RUN
    )
    assert exact.token_layers <= naive.token_layers
    assert exact.calls <= naive.calls
    if name in ONE_PROMPT:
        assert fast.token_layers <= naive.token_layers
        assert fast.calls < exact.calls
    else:
        assert fast.token_layers <= exact.token_layers


def test_the_probe_runs_two_calls_where_naive_has_six(random_world: Random) -> None:
    desk = random_world("llama", 16)
    experiment = desk.compile(fitted(document("v2/generate_probe"), desk.checkpoint.depth))
    found = {mode: Run(experiment, desk.checkpoint, desk.network, desk.engines["hooks"], None, mode) for mode in RUN}
    assert [found[mode].prepared.planned.calls for mode in RUN[:2]] == [6, 2]
    assert found["exact"].prepared.naive == found["naive"].prepared.planned


@pytest.mark.parametrize("mode", RUN)
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_left_behind(name: str, mode: Mode, desk_for: DeskFor) -> None:
    desk = desk_for(name, "llama")
    stores: list[Values] = []
    states: list[weakref.ref[State]] = []

    class Watched(Values):
        def __init__(self, *args: object) -> None:
            super().__init__(*args)  # type: ignore[arg-type]
            stores.append(self)

    def state(*args: object) -> State:
        made = State(*args)  # type: ignore[arg-type]
        states.append(weakref.ref(made))
        return made

    job = Run(asked(desk, name, True), desk.checkpoint, desk.network, desk.engines["hooks"], None, mode)
    with patch.object(runner_module, "Values", Watched), patch.object(calls_module, "State", state):
        alive = [sum(ref() is not None for ref in states) for _ in job.results()]
    (values,) = stores
    assert not [name for name, held in vars(values).items() if name != "_schedule" and held]
    gc.collect()
    assert [ref() for ref in states if ref() is not None] == []
    # When the last point is handed out there is no later call for which to keep a cache.
    assert alive[-1] == 0


def test_values_are_let_go_as_points_finish(random_world: Random) -> None:
    """Under exact a sweep's points come one after the other, and never more than a few values live."""
    desk = random_world("llama", 16)
    given = document("v2/entity_patching")
    given["sites"]["residual"]["layers"] = {"sweep": [0, 1, 2], "as": "layer"}
    given["interventions"]["interchange"]["metrics"]["more"] = {"kind": "entropy", "of": "logits"}
    most: list[int] = []

    class Watched(Values):
        def keep(self, lane: int, keep: object, value: torch.Tensor) -> None:
            super().keep(lane, keep, value)  # type: ignore[arg-type]
            most.append(sum(len(held) for held in self._kept.values()))

    rows = 42
    job = Run(desk.compile(given), desk.checkpoint, desk.network, desk.engines["hooks"], None, "naive")
    with patch.object(runner_module, "Values", Watched):
        for _ in job.results():
            pass
    assert max(most) == 2 * rows
    assert job.done == Cost(6, job.prepared.naive.token_layers)
