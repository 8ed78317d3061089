"""A schedule: which calls make a plan's values known. Data only; reads no tensor and knows no engine.

A *lane* is one row of one forward: its tokens, the edits that act on it, the values kept from it. A *call* runs some
lanes together. Lanes are what the promise of the product is about (a row's number depends on nothing but the row), so a
pass may regroup, unite and share lanes as long as every plan read still finds its value.

A lane may start in the middle: its columns before `start` are those of its `parent`, which has the same tokens and the
same edits there. Columns always count from the row's first token.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from causalab_mini.plan.nodes import Place, Space
from causalab_mini.spec.document import Sample
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
    """An argument drawn for this row alone; at patterns, over the `keys` of its prompt and those of later steps."""

    example_id: str
    keys: int = 0


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

    @property
    def after_column(self) -> bool:
        """Whether it acts when its columns have run: on what they hand on to the next one."""
        return self.frame == "prompt" and self.place.component.state


@dataclass(frozen=True)
class Entry:
    """Where a lane enters the network: the input of block `layer`, with the values that lane `twin` has there."""

    layer: int
    twin: int


@dataclass(frozen=True)
class Rules:
    """What stands between a lane's raw logits and the token it goes on with.

    `processors`: the settings that change logits, as JSON text; `length`: the steps of the decode, where one of them
    acts at the last. `sample`: how a token is drawn, by `example_id`; None for the most likely one.
    """

    processors: str = "{}"
    length: int | None = None
    sample: Sample | None = None
    example_id: str = ""


@dataclass(frozen=True)
class Ends:
    """How a lane that generates goes on and ends: at its first EOS, or fed with given tokens to their end.

    `rules`: None where the raw logits decide.
    """

    stops: bool = False
    forced: tuple[int, ...] | None = None
    rules: Rules | None = None


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
    def steps(self) -> int:
        """How many tokens it generates at most: no more than it is forced to, and the prefill's where that is none."""
        forced = self.ends.forced
        return self.decode if forced is None else min(self.decode, max(len(forced), 1))

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
        """How many tokens a call's lanes generate at most."""
        return max(self.lanes[lane].steps for lane in call.lanes)

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

    def actor(self, lane: int, edit: Edit, at: int) -> int:
        """The lane in which an edit of `lane` acts at a column or step.

        What is done to a state after its column is done by the lane that goes on from there.
        """
        following = at + edit.after_column
        if following >= len(self.lanes[lane].ids) or (edit.place.component.state and edit.frame == "generated"):
            return lane
        return self.owner(lane, edit.frame, following)

    def holder(self, lane: int, keep: Keep, at: int) -> int:
        """The lane that has an entry of a keep: the one that computes it, or the one that writes it last."""
        own = (edit for edit in self.lanes[lane].edits if edit.place.component.state and keep.place.component.state)
        for edit in own:
            if (edit.place.layer, edit.frame) == (keep.place.layer, keep.frame) and at in edit.at:
                return self.actor(lane, edit, at)
        return self.owner(lane, keep.frame, at)

    def parts(self, lane: int, keep: Keep) -> list[tuple[int, Keep]]:
        """The lanes that have the entries of `keep`, with the part each has, in the order of its entries."""
        owners: dict[int, list[int]] = {}
        for at in keep.at:
            owners.setdefault(self.holder(lane, keep, at), []).append(at)
        return [(owner, keep if len(owners) == 1 else replace(keep, at=tuple(at))) for owner, at in owners.items()]


def edits_before(edits: Iterable[Edit], end: int) -> tuple[Edit, ...]:
    """The edits that decide what the first `end` columns of a prompt compute."""
    return tuple(edit for edit in edits if edit.frame == "prompt" and edit.at[0] + edit.after_column < end)


def arguments_of(lane: Lane) -> Iterator[LaneValue]:
    """The values of other lanes that a lane's edits use."""
    for edit in lane.edits:
        if isinstance(edit.argument, LaneValue):
            yield edit.argument


def before(lane: Lane) -> Iterator[int]:
    """The lanes a lane needs to be run."""
    if lane.parent is not None:
        yield lane.parent
    if lane.entry is not None:
        yield lane.entry.twin
    yield from (value.lane for value in arguments_of(lane))
