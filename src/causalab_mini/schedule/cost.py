"""What a schedule costs, counted before it runs: calls, and token-layers.

A token-layer is one token column through one decoder layer.
"""

from __future__ import annotations

from dataclasses import dataclass

from causalab_mini.schedule.ir import Schedule


@dataclass(frozen=True)
class Cost:
    """Forward calls of the model, decode steps included, and token-layers, padding columns included."""

    calls: int = 0
    token_layers: int = 0

    def __add__(self, other: Cost) -> Cost:
        """Both together."""
        return Cost(self.calls + other.calls, self.token_layers + other.token_layers)


def cost(schedule: Schedule, depth: int) -> Cost:
    """The cost of running `schedule` on a model of `depth` layers."""
    total = Cost()
    for call in schedule.calls:
        steps = max(schedule.lanes[lane].decode for lane in call.lanes)
        later = max(steps - 1, 0)
        total += Cost(1 + later, len(call.lanes) * (call.width + later) * depth)
    return total
