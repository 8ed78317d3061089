"""The engine on nnsight: one plain trace per call, visits in the order in which the model comes to them.

The only file that imports nnsight.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol, cast

import torch
from nnsight import NNsight
from torch import Tensor

from causalab_mini.engine.contract import Inputs, Visit
from causalab_mini.engine.mixers import looked_into
from causalab_mini.engine.modules import Network
from causalab_mini.engine.stagger import staggered
from causalab_mini.engine.taps import opened
from causalab_mini.engine.values import Value, arguments, border, check, stop


class _Envoy(Protocol):
    """What is used of nnsight's window on a module; inside a trace, its values wait for the model to come there."""

    input: Value
    output: Value

    def get(self, path: str) -> _Envoy: ...

    def trace(self, **call: object) -> AbstractContextManager[object]: ...


class Traced:
    """An engine of nnsight traces on `network`; the model is wrapped once."""

    def __init__(self, network: Network) -> None:
        self.device = network.device
        self._network = network
        self._root = cast(_Envoy, NNsight(network.model))

    def forward(self, inputs: Inputs, visits: Sequence[Visit]) -> dict[str, Tensor]:
        """Run one call with `visits` in forward order; returns what they keep, by name."""
        check(visits)
        kept: dict[str, Tensor] = {}
        root = self._root
        call, columns = arguments(inputs, attends=bool(self._network.family.attention)), inputs.ids.shape[1]
        with (
            border(),
            torch.inference_mode(),
            opened(self._network.model, inputs, visits),
            looked_into(self._network.model, self._network.family, inputs, visits),
            staggered(self._network, inputs),
        ):
            stops = [(visit, root.get(visit.module) if visit.module else root) for visit in visits]
            # nnsight reads this statement's source and runs its body beside the forward: one item, plain names.
            with root.trace(**call):
                for visit, envoy in stops:
                    _act(visit, envoy, kept, columns)
        return kept


def _act(visit: Visit, envoy: _Envoy, kept: dict[str, Tensor], columns: int) -> None:
    """Wait for the model to come to `envoy`'s side, and act as `visit` says."""
    if visit.side == "input":
        replacement = stop(visit, envoy.input, kept, columns)
        if replacement is not None:
            envoy.input = replacement
    else:
        replacement = stop(visit, envoy.output, kept, columns)
        if replacement is not None:
            envoy.output = replacement
