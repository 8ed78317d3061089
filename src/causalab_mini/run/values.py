"""What calls have made known so far: kept values, continuations, and the changes writes made.

Values live on the CPU as soon as they are read, in the model's own dtype.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from causalab_mini.schedule.ir import Keep


@dataclass(frozen=True)
class Continuation:
    """What one lane generated: ids [N], each choice's margin over the runner-up, and where it wanted to stop."""

    ids: tuple[int, ...]
    margins: tuple[float, ...]
    stopped_at: int | None


@dataclass
class Change:
    """How often an edit acted on a lane, and the largest change of any entry."""

    firings: int = 0
    largest: float = 0.0


@dataclass
class Values:
    """The store a schedule fills. Keys are lanes; a value is [len(at), w]."""

    kept: dict[tuple[int, Keep], Tensor] = field(default_factory=dict[tuple[int, Keep], Tensor])
    continuations: dict[int, Continuation] = field(default_factory=dict[int, Continuation])
    changes: dict[tuple[int, str], Change] = field(default_factory=dict[tuple[int, str], Change])

    def keep(self, lane: int, keep: Keep, value: Tensor) -> None:
        """Store a value; a generated keep grows by its steps in order."""
        old = self.kept.get((lane, keep))
        self.kept[lane, keep] = value if old is None else torch.cat((old, value))

    def changed(self, lane: int, name: str, firings: int, largest: float) -> None:
        """Count that edit `name` acted on `lane`."""
        change = self.changes.setdefault((lane, name), Change())
        change.firings += firings
        change.largest = max(change.largest, largest) if largest == largest else largest

    def forget(self, lanes: tuple[int, ...]) -> None:
        """Drop everything known of `lanes`."""
        gone = set(lanes)
        for store in (self.kept, self.changes):
            for key in [key for key in store if key[0] in gone]:
                del store[key]  # pyright: ignore[reportArgumentType]
        for lane in gone:
            self.continuations.pop(lane, None)
