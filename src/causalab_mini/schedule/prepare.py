"""From points to the schedule that will run, and what it costs beside the naive one. Needs no weights and no torch."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.checkpoint.families import Resume
from causalab_mini.plan.nodes import Point
from causalab_mini.schedule.cost import Cost, cost
from causalab_mini.schedule.ir import Call, Schedule
from causalab_mini.schedule.limits import Limits, Shape, call_columns
from causalab_mini.schedule.lower import lower
from causalab_mini.schedule.optimize import Mode, Pass, Promise, optimize
from causalab_mini.schedule.passes.cut import cut
from causalab_mini.schedule.rest import rest

BLOCK_WIDTHS = 16
"""How many vectors of the hidden width a block holds for a column: the residual stream, its norms, the MLP's inside."""


@dataclass(frozen=True)
class Prepared:
    """The calls that make `points` known: the schedule, its mode and passes, its cost and the naive one's."""

    points: tuple[Point, ...]
    schedule: Schedule
    mode: Mode
    passes: tuple[Pass, ...]
    planned: Cost
    naive: Cost
    shape: Shape

    def bytes(self, call: Call, item: int = 4) -> int:
        """About how much memory a call takes beside the weights, at `item` bytes a number."""
        cells = self.shape.cells(heads=len(call.head), width=call.width, decode=self.schedule.steps(call))
        return len(call.lanes) * cells * item

    @property
    def promise(self) -> Promise:
        """What the passes together do to the numbers."""
        return max((step.promise for step in self.passes), key=list(Promise).index, default=Promise.EXACT)


def prepare(
    points: Iterable[Point],
    checkpoint: Checkpoint,
    mode: Mode,
    limits: Limits | None = None,
    known: Collection[str] = (),
) -> Prepared:
    """The schedule of `points` under a mode that is settled (not `auto`), without what only points `known` need."""
    chosen = tuple(points)
    lowered = lower((point.label, point.plan) for point in chosen)
    depth, family = checkpoint.depth, checkpoint.config.capability
    shape = Shape(
        depth,
        checkpoint.vocab,
        BLOCK_WIDTHS * checkpoint.hidden,
        2 * depth * checkpoint.kv_heads * checkpoint.head_dim,
        price=call_columns(checkpoint.hidden),
        resumes=family is not None and family.chunk_resume is Resume.CHUNK,
        stepwise=family is not None and family.chunk_resume is Resume.STEPS,
        recurrent=checkpoint.config.recurrent is not None,
        enters=family is not None and family.enters,
        window=checkpoint.config.window,
    )
    schedule, passes = optimize(lowered, mode, limits or Limits(), shape)
    if known:
        schedule = rest(schedule, known)
        labels = {key[0] for key, _ in schedule.bindings}
        chosen = tuple(point for point in chosen if point.label in labels)
        lowered = lower((point.label, point.plan) for point in chosen if point.label not in known)
    return Prepared(chosen, schedule, mode, passes, cost(schedule, depth), cost(cut(lowered, shape), depth), shape)
