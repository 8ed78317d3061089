"""Let lanes join a call in the middle of the network: blocks run the lanes that have joined so far.

Blocks before the first join hand their input on untouched. A block at a join takes the joining lanes' values in
beside those that come from below, and every tensor argument that has a row for each lane is cut to the lanes there.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import cast

import torch
from torch import Tensor, nn

from causalab_mini.engine.contract import Inputs
from causalab_mini.engine.modules import Network


@contextmanager
def staggered(network: Network, inputs: Inputs) -> Generator[None]:
    """For as long as the block lasts, the network's blocks follow the joins of `inputs`."""
    if not inputs.joins:
        yield
        return
    blocks = cast(nn.ModuleList, network.model.get_submodule(network.family.blocks))
    total = inputs.ids.shape[0]
    # An instance may have a forward of its own already, which hides its class's.
    before_us = [block.__dict__.get("forward") for block in blocks]
    joining = {join.layer: join.hidden for join in inputs.joins}
    present = 0
    try:
        for layer, block in enumerate(blocks):
            entering = joining.get(layer)
            before, present = present, present + (0 if entering is None else entering.shape[0])
            block.forward = _joined(block.forward, entering, before, present, total)
        yield
    finally:
        for block, own in zip(blocks, before_us, strict=True):
            block.__dict__.pop("forward", None)
            if own is not None:
                block.__dict__["forward"] = own


def _joined(
    forward: Callable[..., object], entering: Tensor | None, before: int, present: int, total: int
) -> Callable[..., object]:
    """A block's forward for the `present` lanes of `total`, `before` of which come from below."""

    def run(hidden: Tensor, *args: object, **kwargs: object) -> object:
        if not present:
            return hidden
        if entering is not None:
            hidden = torch.cat((hidden[:before], entering))
        return forward(
            hidden,
            *(_cut(value, present, total) for value in args),
            **{name: _cut(value, present, total) for name, value in kwargs.items()},
        )

    return run


def _cut(value: object, present: int, total: int) -> object:
    """The first `present` of `total` rows of a tensor that has one for each lane, through tuples and mappings."""
    if isinstance(value, Tensor):
        return value[:present] if value.ndim and value.shape[0] == total else value
    if isinstance(value, tuple):
        return tuple(_cut(item, present, total) for item in value)
    if isinstance(value, Mapping):
        return {name: _cut(item, present, total) for name, item in value.items()}
    return value
