"""What a schedule costs, counted before it runs: calls, and token-layers.

A token-layer is one token column, padding included, through one decoder layer.
"""

from __future__ import annotations

from dataclasses import dataclass

from causalab_mini.schedule.ir import Call, Schedule


@dataclass(frozen=True)
class Cost:
    """Calls (a prefill and the greedy steps after it are one), and token-layers."""

    calls: int = 0
    token_layers: int = 0

    def __add__(self, other: Cost) -> Cost:
        """Both together."""
        return Cost(self.calls + other.calls, self.token_layers + other.token_layers)


def call_cost(schedule: Schedule, call: Call, depth: int) -> Cost:
    """The cost of one call on a model of `depth` layers."""
    later = max(schedule.steps(call) - 1, 0)
    entries = (schedule.lanes[number].entry for number in call.lanes)
    blocks = sum(depth - (0 if entry is None else entry.layer) for entry in entries)
    return Cost(1, blocks * call.width + len(call.lanes) * later * depth)


def cost(schedule: Schedule, depth: int) -> Cost:
    """The cost of all calls of a schedule."""
    return sum((call_cost(schedule, call, depth) for call in schedule.calls), Cost())
