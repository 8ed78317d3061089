"""Peaks of resident memory: the command beside the plain script, and a sweep of 200 points beside one of them."""

from __future__ import annotations

from math import ceil

from benchmarks.documents import depth_of, fitted, grid
from benchmarks.processes import Ground, Line, ground, tell

POINTS = 200


def sweep(ground: Ground) -> Line:
    """The layer sweep, from nothing to its files."""
    document = fitted("layer_sweep", depth_of(ground.weights))
    return _line("peak of the layer sweep / plain script", ground.run(document).peak, ground.script().peak, 1.05)


def long_grid(depth: int) -> dict:
    """At least 200 points of layer × position."""
    layers = {"sweep": {"range": [0, depth]}, "as": "layer"}
    return grid(layers, {"sweep": {"range": [-ceil(POINTS / depth), 0]}, "as": "position"})


def long_sweep(ground: Ground) -> Line:
    """The long grid beside one point of it."""
    depth = depth_of(ground.weights)
    many, one = ground.run(long_grid(depth)).peak, ground.run(grid(depth // 2, -1)).peak
    return _line(f"peak of {depth * ceil(POINTS / depth)} points / one point", many, one, 1.1)


def _line(name: str, one: float, other: float, wanted: float) -> Line:
    return Line(name, one / other, wanted, f"MiB {one:.0f} / {other:.0f}")


def measure(ground: Ground) -> list[Line]:
    """Everything about memory."""
    return [sweep(ground), long_sweep(ground)]


if __name__ == "__main__":
    with ground("Memory: peaks of whole processes.") as (here, as_json):
        tell(measure(here), as_json=as_json)
