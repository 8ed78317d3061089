"""What a run says of an observe step beside its values: close choices, what writes did, rows left unwritten.

A decode that nobody is shown counts only as far as the plan needs it, so that every schedule tells the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from causalab_mini.plan.nodes import Observe
from causalab_mini.results.records import NearTie, WriteReport
from causalab_mini.run.values import Values
from causalab_mini.schedule.ir import ObserveKey, Schedule
from causalab_mini.schedule.lower import needed_steps
from causalab_mini.vocabulary.reasons import Reason

NEAR = 1e-3
"""A greedy margin under this is reported: another honest execution may choose otherwise."""


@dataclass(frozen=True)
class Reports:
    """The reports of one observe step whose values are all known."""

    key: ObserveKey
    observe: Observe
    schedule: Schedule
    values: Values

    def near_ties(self) -> Iterator[NearTie]:
        """The greedy choices that were close."""
        for index, forward in enumerate(self.observe.forwards):
            lanes, steps = self.schedule.bindings[self.key, index], needed_steps(self.observe, index)
            for row, (lane, count) in enumerate(zip(lanes, steps, strict=True)):
                if not count or not self.values.continued(lane):
                    continue
                for step, margin in enumerate(self.values.continuation(lane, count).margins):
                    if margin < NEAR:
                        name = f"{forward.model} on {forward.role}"
                        yield NearTie(name, self.observe.example_ids[row], step, margin)

    def writes(self, lacks: Callable[[int], bool]) -> Iterator[WriteReport]:
        """How often every write acted, and how much it changed. What is done in the prefill always counts.

        `lacks`: whether a lane lacked an operand, and need not have acted.
        """
        for index, forward in enumerate(self.observe.forwards):
            lanes, steps = self.schedule.bindings[self.key, index], needed_steps(self.observe, index)
            if not forward.writes:
                continue
            # A lane has the edits of the writes that land on its row, in the same order, one for every layer.
            edits = [iter(self.schedule.lanes[lane].edits) for lane in lanes]
            for write in forward.writes:
                layers = len(write.place.each())
                changes = [
                    None
                    if isinstance(window, Reason)
                    else self.values.change(lane, *islice(own, layers), steps=max(count, 1))
                    for lane, own, window, count in zip(lanes, edits, write.windows, steps, strict=True)
                ]
                yield WriteReport(
                    write.name,
                    forward.model,
                    tuple(0 if change is None else change.firings for change in changes),
                    tuple(None if change is None else change.largest for change in changes),
                    tuple(change is not None and change.still for change in changes),
                    tuple(
                        0 if change is None or lacks(lane) else change.missed
                        for lane, change in zip(lanes, changes, strict=True)
                    ),
                )

    def unmoved(self, writes: Iterable[WriteReport]) -> Iterator[str]:
        """A warning for every write that changed nothing on some rows."""
        for report in writes:
            if still := sum(report.still):
                rows = f"{still} of {len(report.firings)} rows"
                yield f"write '{report.name}' of '{report.model}' changed nothing on {rows}"

    def unwritten(self, lacks: Callable[[int], bool]) -> Iterator[str]:
        """A warning for every model that was left unwritten on some rows; `lacks`: whether a lane lacked an operand."""
        for index, forward in enumerate(self.observe.forwards):
            lanes = self.schedule.bindings[self.key, index]
            if forward.writes and (left := sum(lacks(lane) for lane in lanes)):
                yield f"'{forward.model}' is unwritten on {left} of {len(lanes)} rows: an operand had no value there"
