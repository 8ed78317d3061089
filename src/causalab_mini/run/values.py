"""What calls have made known so far: kept values, continuations, and the changes writes made.

Values live on the CPU as soon as they are read, in the model's own dtype. Each is stored with the lane that computed
it and found from the lane a row is bound to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from causalab_mini.run import patterns
from causalab_mini.schedule.ir import Edit, Keep, Schedule


@dataclass(frozen=True)
class Continuation:
    """What one lane generated: its ids to its own end, each choice's margin over the runner-up (none where ids were
    given), the steps at which it wanted to stop, and the raw logits' most likely ids.
    """

    ids: tuple[int, ...]
    margins: tuple[float, ...]
    stops: tuple[int, ...]
    wants: tuple[int, ...] = ()

    def upto(self, steps: int) -> Continuation:
        """The first `steps` tokens of it."""
        stops = tuple(step for step in self.stops if step < steps)
        return Continuation(self.ids[:steps], self.margins[:steps], stops, self.wants[:steps])

    @property
    def stopped_at(self) -> int | None:
        """The first step whose raw argmax was an EOS id."""
        return self.stops[0] if self.stops else None


NOTHING = 1e-5
"""A change is none when it is at most this part of the value's largest entry: what other calls round otherwise."""


@dataclass(frozen=True)
class Change:
    """How often edits acted on a lane and the largest change of any entry (None where none did), which may be none.

    `missed`: how often they were to act and did not.
    """

    firings: int
    largest: float | None
    still: bool = False
    missed: int = 0


class Values:
    """The store a schedule fills."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._kept: dict[int, dict[Keep, list[Tensor]]] = {}
        self._changes: dict[int, dict[tuple[Edit, int], tuple[float, float]]] = {}
        self._continuations: dict[int, Continuation] = {}

    def keep(self, lane: int, keep: Keep, value: Tensor) -> None:
        """Store a value of `lane`, [n, w]; a generated keep grows by its steps in order."""
        self._kept.setdefault(lane, {}).setdefault(keep, []).append(value)

    def value(self, lane: int, keep: Keep) -> Tensor:
        """What `keep` is of the row bound to `lane`: [len(at), w], or patterns [len(at), H, keys].

        A lane that is shared may have another's keys, too, which none of these queries sees.
        """
        found = [part for owner, own in self._schedule.parts(lane, keep) for part in self._came(owner, own)]
        if keep.place.component.pattern and keep.frame == "prompt":
            found = [patterns.over(part, len(self._schedule.lanes[lane].ids)) for part in found]
        found = patterns.together(found)
        return found[0] if len(found) == 1 else torch.cat(found)

    def _came(self, lane: int, keep: Keep) -> list[Tensor]:
        """What a lane has of `keep`: nothing of steps that it ended before."""
        said = self._continuations.get(lane)
        over = keep.frame == "generated" and said is not None and keep.at[0] >= max(1, len(said.ids))
        return [] if over else self._kept[lane][keep]

    def changed(self, lane: int, edit: Edit, at: int, largest: float, size: float) -> None:
        """Note that `edit` acted on `lane` at one column or step, where the largest entry was `size`."""
        self._changes.setdefault(lane, {})[edit, at] = (largest, size)

    def change(self, lane: int, *edits: Edit, steps: int | None = None) -> Change:
        """What the edits of one write, one for each of its layers, did to the row bound to `lane`.

        `steps`: how many steps of a decode count; None for all.
        """
        acts = (
            (edit, at, self._schedule.actor(lane, edit, at))
            for edit in edits
            for at in edit.at
            if edit.frame == "prompt" or at < self._ran(lane, steps)
        )
        found = [self._changes.get(owner, {}).get((edit, at)) for edit, at, owner in acts]
        acted = [change for change, _ in filter(None, found)]
        still = bool(acted) and all(change <= NOTHING * size for change, size in filter(None, found))
        # A change that is not a number is the largest there can be.
        strange = next((size for size in acted if size != size), None)
        largest = strange if strange is not None else max(acted, default=None)
        return Change(len(acted), largest, still, len(found) - len(acted))

    def _ran(self, lane: int, steps: int | None) -> int:
        """How many of the first `steps` steps a lane took before it ended; the prefill is one."""
        took = max(1, len(self._continuations[lane].ids)) if lane in self._continuations else 1
        return took if steps is None else min(took, steps)

    def generated(self, lane: int, continuation: Continuation) -> None:
        """Store what `lane` generated."""
        self._continuations[lane] = continuation

    def continuation(self, lane: int, steps: int) -> Continuation:
        """The first `steps` tokens of what the row bound to `lane` generated."""
        return self._continuations[lane].upto(steps)

    def continued(self, lane: int) -> bool:
        """Whether it is known what `lane` generated."""
        return lane in self._continuations

    def forget(self, lanes: Iterable[int]) -> None:
        """Drop everything known of `lanes`."""
        for lane in lanes:
            self._kept.pop(lane, None)
            self._changes.pop(lane, None)
            self._continuations.pop(lane, None)
