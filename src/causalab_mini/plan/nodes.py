"""The plan: what must be known and written, with every position resolved to windows. Frozen, hashable, torch-free.

A plan is a tree. Its leaves are `Observe` steps; an inner node is a `Plan`. A *point* is a plan that stands for one
setting of the sweep. Prompt windows are columns of a row's own tokens (prefix included, padding not); generated
windows are steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from causalab_mini.checkpoint.text import Text
from causalab_mini.frames.window import Window
from causalab_mini.plan.place import Place
from causalab_mini.spec.document import Sample
from causalab_mini.spec.generation import Setting
from causalab_mini.spec.positions import Position
from causalab_mini.vocabulary.featurizers import IDENTITY, Featurizer
from causalab_mini.vocabulary.generation import Json
from causalab_mini.vocabulary.mechanisms import Mechanism
from causalab_mini.vocabulary.metric import Metric
from causalab_mini.vocabulary.reasons import Reason


@dataclass(frozen=True)
class Batch:
    """The rows of one (dataset, field), as tokens. `width` is the padded width every forward on it has."""

    ref: str
    field: str
    rows: tuple[Text, ...]

    @property
    def width(self) -> int:
        """The longest row, prefix included."""
        return max(len(row.ids) for row in self.rows)


@dataclass(frozen=True)
class Space:
    """A featurizer at its site: its kind, the width `d` of the value and `k` of the features.

    `tensors` are (slot, name in the file) pairs. Two spaces are one when they compute the same: names and paths do
    not tell them apart, contents do.
    """

    name: str = field(compare=False)
    node: Featurizer
    d: int
    k: int
    sha256: str | None = None
    path: Path | None = field(default=None, compare=False)
    tensors: tuple[tuple[str, str], ...] = ()
    stamped: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Seen:
    """What one query sees: so many keys, as the text's token number `query`, prefix included."""

    keys: int
    query: int


SeenRows = tuple[tuple[Seen, ...] | Reason, ...]
"""What the queries of every row's window see, or why there are none."""


@dataclass(frozen=True)
class Read:
    """A value to keep.

    `windows`, one per row: columns in the prompt frame, steps in the generated one. A deferred read (a cut only the
    finished continuation can locate) has every step as its window; `frames.continuation` cuts it afterwards with
    `texts`, the rows' values of the scope's variable (None in a row without one). `seen` is there for patterns: of all
    steps where only the continuation can say which they are.
    """

    name: str
    place: Place
    pos: Position
    windows: tuple[Window, ...]
    view: str = "raw"
    space: Space | None = None
    texts: tuple[str | None, ...] | None = None
    seen: SeenRows = ()

    @property
    def featurizer(self) -> str:
        """The name of its space."""
        return IDENTITY if self.space is None else self.space.name


@dataclass(frozen=True)
class ReadOperand:
    """The value of another read of the same intervention."""

    read: str


@dataclass(frozen=True)
class OutputOperand:
    """A tensor an earlier step of the point published: the path of its observe step, and the output's name."""

    path: tuple[str, ...]
    name: str


Operand = float | ReadOperand | OutputOperand | None


@dataclass(frozen=True)
class Write:
    """A value to change. A row whose window is a Reason is left alone (`missing: skip`)."""

    name: str
    place: Place
    pos: Position
    windows: tuple[Window, ...]
    mechanism: Mechanism
    operand: Operand
    space: Space | None = None
    features: tuple[int, ...] | None = None
    skips: bool = False

    @property
    def featurizer(self) -> str:
        """The name of its space."""
        return IDENTITY if self.space is None else self.space.name


@dataclass(frozen=True)
class Decoding:
    """How a forward goes on after its prefill: at most `steps` tokens.

    `stops`: a row ends at its first EOS, which is otherwise never picked. `forced`: the tokens fed to each row instead
    of the most likely ones, by the column `column` (EMPTY_CELL where its cell is empty). `settings` are the generation
    settings that hold, by key; `ignored` what the checkpoint's own would have set, None where they have their say.
    """

    steps: int
    stops: bool = False
    column: str | None = None
    forced: tuple[tuple[int, ...] | Reason, ...] | None = None
    sample: Sample | None = None
    settings: tuple[Setting, ...] = ()
    ignored: tuple[str, ...] | None = ()

    @property
    def processors(self) -> dict[str, Json]:
        """The settings that change which token comes next."""
        return {setting.key: setting.value for setting in self.settings if setting.acts}

    @property
    def chosen(self) -> bool:
        """Whether the token emitted may be another one than the raw logits' most likely, but for held-off EOS."""
        return self.forced is None and (self.sample is not None or any(setting.acts for setting in self.settings))

    def length(self, row: int) -> int | Reason:
        """How many tokens `row` has at most, or why it has none."""
        if self.forced is None:
            return self.steps
        forced = self.forced[row]
        return forced if isinstance(forced, Reason) else len(forced)

    def fed(self, row: int) -> tuple[int, ...]:
        """The tokens that are known to follow in `row` before anything is run."""
        forced = None if self.forced is None else self.forced[row]
        return () if forced is None or isinstance(forced, Reason) else forced

    @property
    def uneven(self) -> bool:
        """Whether rows may end at different steps."""
        return self.stops or self.forced is not None


@dataclass(frozen=True)
class Forward:
    """One model on one role: a prefill, and greedy steps when `decoding` has any. Writes in the model's order."""

    model: str
    role: str
    batch: Batch
    decoding: Decoding
    writes: tuple[Write, ...]
    reads: tuple[Read, ...]

    @property
    def decode(self) -> int:
        """How many tokens it generates at most; 0 for a prefill alone."""
        return self.decoding.steps


@dataclass(frozen=True)
class Score:
    """A metric to compute: its node, and the answer id of every row (or the reason there is none) per answer field."""

    name: str
    metric: Metric
    answers: tuple[tuple[str, tuple[int | Reason, ...]], ...] = ()


@dataclass(frozen=True)
class Publish:
    """A tensor published from a read: `reduce` is none, mean or pca (of `k` directions, stamped with `stamp`)."""

    name: str
    read: str
    reduce: str
    k: int | None = None
    stamp: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Save:
    """A produced value and the file, relative to the point's directory, it goes to."""

    value: str
    file_path: str


@dataclass(frozen=True)
class Observe:
    """One intervention on one set of rows. `path` are the plan names from the point down to this step."""

    name: str
    step: str
    intervention: str
    path: tuple[str, ...]
    example_ids: tuple[str, ...]
    forwards: tuple[Forward, ...]
    scores: tuple[Score, ...]
    outputs: tuple[Publish, ...]
    saves: tuple[Save, ...]

    @property
    def generated(self) -> tuple[str, ...]:
        """What the continuation of each forward is called, "" for one that does not decode.

        `<model>.generated`, or `<model>@<role>.generated` where one model runs on several roles.
        """
        models = [forward.model for forward in self.forwards]
        return tuple(
            ""
            if not forward.decode
            else f"{forward.model}.generated"
            if models.count(forward.model) == 1
            else f"{forward.model}@{forward.role}.generated"
            for forward in self.forwards
        )


@dataclass(frozen=True)
class Plan:
    """An inner node: a point of the sweep, a list of interventions, or the root."""

    name: str
    children: tuple[Plan | Observe, ...]

    def observes(self) -> Iterator[Observe]:
        """Every leaf, in order."""
        for child in self.children:
            if isinstance(child, Plan):
                yield from child.observes()
            else:
                yield child


@dataclass(frozen=True)
class Point:
    """One setting of the sweep: its label ("" without a sweep), axes, digest, lowered document and plan."""

    label: str
    axes: tuple[tuple[str, object], ...]
    digest: str
    document: str
    plan: Plan


@dataclass(frozen=True)
class Experiment:
    """All points of a document, and the facts of data and model they share."""

    digest: str
    points: tuple[Point, ...]
    tables: tuple[tuple[str, str], ...] = field(default=())
    warnings: tuple[str, ...] = ()
    spaces: tuple[Space, ...] = ()

    @property
    def root(self) -> Plan:
        """The tree `explain` prints."""
        if len(self.points) == 1 and not self.points[0].label:
            return Plan("<root>", self.points[0].plan.children)
        return Plan("<root>", tuple(Plan(point.label, point.plan.children) for point in self.points))
