"""The plain engine: torch's own forward hooks, placed for one call and removed after it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn

from causalab_mini.engine.contract import Inputs, Visit
from causalab_mini.engine.mixers import looked_into
from causalab_mini.engine.modules import Network
from causalab_mini.engine.stagger import staggered
from causalab_mini.engine.taps import opened
from causalab_mini.engine.values import Value, arguments, border, check, stop
from causalab_mini.errors import EngineFailure


class Hooks:
    """An engine of forward hooks on `network`'s modules."""

    def __init__(self, network: Network) -> None:
        self.device = network.device
        self._network = network
        self._model = network.model

    def forward(self, inputs: Inputs, visits: Sequence[Visit]) -> dict[str, Tensor]:
        """Run one call with `visits` in forward order; returns what they keep, by name."""
        check(visits)
        kept: dict[str, Tensor] = {}
        order: list[Visit] = []
        with (
            border(),
            torch.inference_mode(),
            opened(self._model, inputs, visits),
            looked_into(self._model, self._network.family, inputs, visits),
            staggered(self._network, inputs),
            ExitStack() as hooks,
        ):
            for visit in visits:
                hooks.enter_context(
                    _placed(self._model.get_submodule(visit.module), visit, kept, order.append, inputs.ids.shape[1])
                )
            self._model(**arguments(inputs, attends=bool(self._network.family.attention)))
        if order != list(visits):
            raise EngineFailure(
                "the model came to "
                + ", ".join(f"{visit.module} {visit.side}" for visit in order)
                + " where the call asked for "
                + ", ".join(f"{visit.module} {visit.side}" for visit in visits)
            )
        return kept


@contextmanager
def _placed(
    module: nn.Module, visit: Visit, kept: dict[str, Tensor], arrived: Callable[[Visit], None], columns: int
) -> Generator[None]:
    """A hook on `module` for as long as the block lasts, acting as `visit` says each time the module runs."""

    def before(
        _: nn.Module, args: tuple[Value, ...], kwargs: dict[str, Value]
    ) -> tuple[tuple[Value, ...], dict[str, Value]] | None:
        arrived(visit)
        first = args[0] if args else next(iter(kwargs.values()))
        replacement = stop(visit, first, kept, columns)
        if replacement is None:
            return None
        if args:
            return (replacement, *args[1:]), kwargs
        return args, {**kwargs, next(iter(kwargs)): replacement}

    def after(_: nn.Module, args: tuple[Value, ...], value: Value) -> Value | None:
        arrived(visit)
        return stop(visit, value, kept, columns)

    if visit.side == "input":
        handle = module.register_forward_pre_hook(before, with_kwargs=True)
    else:
        handle = module.register_forward_hook(after)
    try:
        yield
    finally:
        handle.remove()
