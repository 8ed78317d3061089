"""A schedule: which calls make a plan's values known. Data only; reads no tensor and knows no engine.

A *lane* is one row of one forward: its tokens, the edits that act on it, the values kept from it. A *call* runs
some lanes together. Lanes are what the promise of the product is about (a row's number depends on nothing but the row),
so a pass may regroup, unite and share lanes as long as every plan read still finds its lane and its value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from causalab_mini.plan.nodes import Place
from causalab_mini.vocabulary.mechanisms import Mechanism

Frame = Literal["prompt", "generated"]


@dataclass(frozen=True)
class Keep:
    """A value of a lane: `place` at columns (prompt frame) or steps (generated frame), [len(at), w]."""

    place: Place
    frame: Frame
    at: tuple[int, ...]


@dataclass(frozen=True)
class LaneValue:
    """An argument that is a value of an earlier lane: the entries `pick` of what was kept, all when None."""

    lane: int
    keep: Keep
    pick: tuple[int, ...] | None = None


@dataclass(frozen=True)
class PublishedValue:
    """An argument that an earlier step of the point published: its observe's key, the output's name, and the row."""

    observe: ObserveKey
    name: str
    row: int


@dataclass(frozen=True)
class Noise:
    """An argument drawn for this row alone."""

    example_id: str


Argument = float | LaneValue | PublishedValue | Noise | None


@dataclass(frozen=True)
class Edit:
    """One write as it acts on one lane: at columns of the prefill, or at steps in the one column each sees."""

    name: str
    place: Place
    frame: Frame
    at: tuple[int, ...]
    mechanism: Mechanism
    argument: Argument
    features: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Lane:
    """One row of one forward. `ids` are its own tokens, prefix included; edits in the order they apply."""

    ids: tuple[int, ...]
    edits: tuple[Edit, ...]
    keeps: tuple[Keep, ...]
    decode: int


@dataclass(frozen=True)
class Call:
    """Lanes that run together, left-padded to `width` columns."""

    lanes: tuple[int, ...]
    width: int


ObserveKey = tuple[str, tuple[str, ...]]
"""Which observe step of which point: the point's label and the step's path."""


@dataclass(frozen=True)
class Schedule:
    """Calls in an order in which every argument is known before it is needed.

    `bindings` says, for every forward of every observe step, which lane stands for each of its rows.
    """

    lanes: tuple[Lane, ...]
    calls: tuple[Call, ...]
    bindings: Mapping[tuple[ObserveKey, int], tuple[int, ...]]

    def last_calls(self) -> dict[str, int]:
        """For every point, the index of the last call that one of its lanes is in."""
        call_of = {lane: index for index, call in enumerate(self.calls) for lane in call.lanes}
        last: dict[str, int] = {}
        for ((label, _), _), lanes in self.bindings.items():
            last[label] = max(last.get(label, 0), *(call_of[lane] for lane in lanes))
        return last

    def lanes_only_of(self, label: str) -> tuple[int, ...]:
        """The lanes that serve the point `label` and no other."""
        mine: set[int] = set()
        others: set[int] = set()
        for ((point, _), _), lanes in self.bindings.items():
            (mine if point == label else others).update(lanes)
        return tuple(sorted(mine - others))
