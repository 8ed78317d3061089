"""Which passes a mode applies, in order: the whole optimizer.

`naive` runs every planned forward. `exact` applies the passes that change no bit. `fast` applies all; `auto` is fast
in fp32 and exact in half precision. `alone` is for checks: naive, every row by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from causalab_mini.schedule.ir import Schedule
from causalab_mini.schedule.limits import Limits, Shape
from causalab_mini.schedule.passes.cut import cut
from causalab_mini.schedule.passes.drop import drop
from causalab_mini.schedule.passes.finish import finish
from causalab_mini.schedule.passes.layers import skip_layers
from causalab_mini.schedule.passes.merge import merge
from causalab_mini.schedule.passes.prefill import share_prefill
from causalab_mini.schedule.passes.prefix import share_prefix
from causalab_mini.schedule.passes.stack import stack
from causalab_mini.schedule.passes.trim import trim
from causalab_mini.schedule.passes.unique import unique_rows
from causalab_mini.schedule.passes.window import rows_alone, window_rows

Mode = Literal["auto", "fast", "exact", "naive", "alone"]
MODES: tuple[Mode, ...] = ("auto", "fast", "exact", "naive")
"""What a run may be asked for."""


class Promise(Enum):
    """What a pass does to the numbers."""

    EXACT = "exact"
    LAST_BIT = "last bit"


@dataclass(frozen=True)
class Pass:
    """One rewrite: a pure function of the schedule, the limits and the model's shape."""

    name: str
    promise: Promise
    modes: frozenset[Mode]
    apply: Callable[[Schedule, Limits, Shape], Schedule]


BOTH: frozenset[Mode] = frozenset(("exact", "fast"))
FAST: frozenset[Mode] = frozenset(("fast",))
EXACT: frozenset[Mode] = frozenset(("exact",))
UNSTACKED: frozenset[Mode] = frozenset(("naive", "exact"))
ALONE: frozenset[Mode] = frozenset(("alone",))
ALL: frozenset[Mode] = frozenset(("naive", "exact", "fast", "alone"))

PASSES: tuple[Pass, ...] = (
    Pass("drop", Promise.EXACT, BOTH, lambda schedule, limits, shape: drop(schedule)),
    Pass("trim", Promise.EXACT, BOTH, lambda schedule, limits, shape: trim(schedule)),
    Pass("merge", Promise.EXACT, BOTH, lambda schedule, limits, shape: merge(schedule)),
    Pass("share prefill", Promise.EXACT, EXACT, lambda schedule, limits, shape: share_prefill(schedule)),
    Pass("unique rows", Promise.LAST_BIT, FAST, lambda schedule, limits, shape: unique_rows(schedule)),
    Pass("share prefix", Promise.LAST_BIT, FAST, lambda schedule, limits, shape: share_prefix(schedule, shape)),
    Pass("skip layers", Promise.LAST_BIT, FAST, lambda schedule, limits, shape: skip_layers(schedule, shape)),
    Pass("stack points", Promise.LAST_BIT, FAST, stack),
    Pass(
        "window rows", Promise.LAST_BIT, UNSTACKED, lambda schedule, limits, shape: window_rows(schedule, limits.lanes)
    ),
    Pass("rows alone", Promise.LAST_BIT, ALONE, lambda schedule, limits, shape: rows_alone(schedule)),
    Pass("cut at states", Promise.EXACT, ALL, lambda schedule, limits, shape: cut(schedule, shape)),
    Pass("finish points", Promise.EXACT, FAST, lambda schedule, limits, shape: finish(schedule)),
)


def settled(mode: Mode, *, half: bool) -> Mode:
    """What `auto` means in full precision or in `half`."""
    if mode != "auto":
        return mode
    return "exact" if half else "fast"


def optimize(schedule: Schedule, mode: Mode, limits: Limits, shape: Shape) -> tuple[Schedule, tuple[Pass, ...]]:
    """The schedule after every pass of `mode`, and the passes that changed it; none where nothing came of them."""
    lowered, applied = schedule, list[Pass]()
    for step in PASSES:
        if mode not in step.modes:
            continue
        rewritten = step.apply(schedule, limits, shape)
        if rewritten != schedule:
            applied.append(step)
        schedule = rewritten
    return schedule, tuple(applied) if schedule != lowered else ()
