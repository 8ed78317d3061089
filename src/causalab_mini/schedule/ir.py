"""A schedule: which calls make a plan's values known. Data only; reads no tensor and knows no engine.

A *lane* is one row of one forward: its tokens, the edits that act on it, the values kept from it. A *call* runs some
lanes together. Lanes are what the promise of the product is about (a row's number depends on nothing but the row), so a
pass may regroup, unite and share lanes as long as every plan read still finds its value.

A lane may start in the middle: its columns before `start` are those of its `parent`, which has the same tokens and the
same edits there. Columns always count from the row's first token.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from causalab_mini.plan.nodes import Place, Space
from causalab_mini.vocabulary.mechanisms import Mechanism

Frame = Literal["prompt", "generated"]

ObserveKey = tuple[str, tuple[str, ...]]
"""Which observe step of which point: the point's label and the step's path."""


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
    """One write as it acts on one lane: at columns of the prefill, or at steps in the one column each sees.

    With a `space`, the mechanism, its argument and `features` are of the features there. A `LaneValue` is the value
    itself all the same, to be taken into the space by whoever runs the edit.
    """

    place: Place
    frame: Frame
    at: tuple[int, ...]
    mechanism: Mechanism
    argument: Argument
    features: tuple[int, ...] | None = None
    space: Space | None = None


@dataclass(frozen=True)
class Entry:
    """Where a lane enters the network: the input of block `layer`, with the values that lane `twin` has there."""

    layer: int
    twin: int


@dataclass(frozen=True)
class Ends:
    """How a lane that generates goes on and ends: at its first EOS, or fed with given tokens to their end."""

    stops: bool = False
    forced: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Lane:
    """One row of one forward.

    `ids` are all its tokens, prefix included; `edits` come in the order they apply. Of `keeps`, those in the prompt
    frame are at columns from `start` on. `start` is `len(ids)` for a lane that only goes on generating where the
    parent's prefill ended. A lane with an `entry` leaves out the blocks below it in its own columns.
    """

    ids: tuple[int, ...]
    edits: tuple[Edit, ...]
    keeps: tuple[Keep, ...]
    decode: int
    start: int = 0
    parent: int | None = None
    entry: Entry | None = None
    ends: Ends = Ends()

    @property
    def columns(self) -> int:
        """How many prompt columns it runs itself."""
        return len(self.ids) - self.start


@dataclass(frozen=True)
class Call:
    """Lanes that run together: `width` new columns, left-padded, after `cached` columns of their parents', left-padded.

    `head` are the columns of `width` whose logits are computed. All lanes decode the same number of steps.
    """

    lanes: tuple[int, ...]
    width: int
    head: tuple[int, ...]
    cached: int = 0


@dataclass(frozen=True)
class Schedule:
    """Calls in an order in which every argument and every parent is known before it is needed.

    `bindings` says, for every forward of every observe step, which lane stands for each of its rows. `wanted` are the
    values that tables and outputs are made of, and `heard` the lanes whose continuation they show: what no pass may
    lose. Both are given with the lane a row is bound to, whoever of its parents has the value.
    """

    lanes: tuple[Lane, ...]
    calls: tuple[Call, ...]
    bindings: Mapping[tuple[ObserveKey, int], tuple[int, ...]]
    wanted: frozenset[tuple[int, Keep]]
    heard: frozenset[int]

    def steps(self, call: Call) -> int:
        """How many tokens a call's lanes generate."""
        return max(self.lanes[lane].decode for lane in call.lanes)

    def owner(self, lane: int, frame: Frame, at: int) -> int:
        """The lane that computes column (or step) `at` of `lane`: itself, or one of its parents.

        Step 0 is computed with the last column.
        """
        column = at if frame == "prompt" else len(self.lanes[lane].ids) - 1
        if frame == "generated" and at > 0:
            return lane
        while column < self.lanes[lane].start:
            parent = self.lanes[lane].parent
            if parent is None:
                raise ValueError(f"lane {lane} starts at column {self.lanes[lane].start} and has no parent")
            lane = parent
        return lane

    def parts(self, lane: int, keep: Keep) -> list[tuple[int, Keep]]:
        """The lanes that have the entries of `keep`, with the part each has, in the order of its entries."""
        owners: dict[int, list[int]] = {}
        for at in keep.at:
            owners.setdefault(self.owner(lane, keep.frame, at), []).append(at)
        return [(owner, keep if len(owners) == 1 else replace(keep, at=tuple(at))) for owner, at in owners.items()]


def arguments_of(lane: Lane) -> Iterator[LaneValue]:
    """The values of other lanes that a lane's edits use."""
    for edit in lane.edits:
        if isinstance(edit.argument, LaneValue):
            yield edit.argument
