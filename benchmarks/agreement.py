"""What is held against each other before anything is timed: numbers, ids, and the work that blocks really did."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from torch import Tensor, nn

from benchmarks.common import Outcome

SIZE = 20.0
LARGEST_DIFFERENCE = 1e-4
"""What two programs' numbers may lie apart where they are of `SIZE` or smaller; larger ones in proportion."""


def apart(one: Outcome, other: Outcome) -> float:
    """The largest difference of two outcomes, scaled to numbers of `SIZE`; infinite when an id or shape differs."""
    if one.keys() != other.keys() or any(one[name].shape != other[name].shape for name in one):
        return float("inf")
    whole = [name for name in one if not one[name].is_floating_point()]
    if not all(one[name].equal(other[name]) for name in whole):
        return float("inf")
    return max(_scaled(one[name], other[name]) for name in one.keys() - whole)


def _scaled(one: Tensor, other: Tensor) -> float:
    largest = max(SIZE, other.abs().max().item())
    return (one - other).abs().max().item() * SIZE / largest


@contextmanager
def token_layers(model: nn.Module) -> Generator[list[int]]:
    """Counts the columns every block of `model` computes: one number for each time a block runs.

    A block that hands on its very input is one that no lane has joined yet.
    """
    counted: list[int] = []

    def count(_: nn.Module, args: tuple[Tensor, ...], value: Tensor) -> None:
        if value is not args[0]:
            counted.append(value.shape[:2].numel())

    blocks = model.get_submodule("model.layers").children()
    handles = [block.register_forward_hook(count) for block in blocks]
    try:
        yield counted
    finally:
        for handle in handles:
            handle.remove()
