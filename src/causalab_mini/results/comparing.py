"""Two finished runs held against each other: rows joined by example id and point, and what the runs differ in.

Reads what lies open in both directories. Differences are the second's value less the first's.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from causalab_mini.errors import Problem, Refusal, join
from causalab_mini.results.bootstrap import interval
from causalab_mini.results.reader import Cells, Results

GENERATED = ".generated"
RUN_KEYS = (
    "model",
    "data",
    "featurizers",
    "code",
    "versions",
    "engine",
    "device",
    "dtype",
    "attn_implementation",
    "batch_size",
    "generation",
    "overrides",
    "partial",
)
"""What of run.json two runs are compared in, beside the schedule's mode."""
Key = tuple[str, str, int | None]
"""Observe step, metric and layer."""


@dataclass(frozen=True)
class Pair:
    """A metric of one point over the rows that have a value in both runs.

    `first`, `second` and `difference` are means over those `n` rows, None where values are lists or there are none;
    `low` and `high` the 95 % interval of the mean difference. `changed` rows have another value; `largest` is the
    largest difference and `row` where it is. `only_first`, `only_second`: rows with a value in one run alone.
    """

    point: str
    observe: str
    metric: str
    layer: int | None
    n: int
    first: float | None
    second: float | None
    difference: float | None
    low: float | None
    high: float | None
    changed: int
    largest: float | None
    row: str | None
    only_first: int
    only_second: int


@dataclass(frozen=True)
class Said:
    """The continuations of one model at one point: how many rows were generated in both runs, and say other tokens.

    `first_step`: the earliest step at which one differs. `only_first`, `only_second`: rows of one run alone.
    """

    point: str
    observe: str
    value: str
    n: int
    changed: int
    first_step: int | None
    only_first: int
    only_second: int


@dataclass(frozen=True)
class Difference:
    """A place at which two documents, or what two runs come from, differ; None where one has nothing there."""

    path: str
    first: object
    second: object


@dataclass(frozen=True)
class Compared:
    """Everything two runs are compared in. `only_first`, `only_second`: points of one run alone."""

    pairs: tuple[Pair, ...]
    said: tuple[Said, ...]
    document: tuple[Difference, ...]
    run: tuple[Difference, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether every number and token that both have is the same, and neither has more."""
        rows = any(one.changed or one.only_first or one.only_second for one in (*self.pairs, *self.said))
        return not (rows or self.only_first or self.only_second)


def compare(first: Results, second: Results) -> Compared:
    """The runs, joined. Refused where no point or no saved metric or continuation of one is in the other."""
    twins = _twins(first.points, second.points)
    if not twins:
        hint = f"the first has {_listed(first.points)}; the second has {_listed(second.points)}"
        raise Refusal(Problem("", "the two runs have no point in common", hint))
    pairs, said, common = list[Pair](), list[Said](), False
    for one, other in twins:
        ours, theirs = _tables(first, one), _tables(second, other)
        pairs += (_pair((one, *key), ours.get(key, {}), theirs.get(key, {})) for key in dict.fromkeys((*ours, *theirs)))
        spoken, again = _continuations(first, one), _continuations(second, other)
        said += (
            _said((one, *key), spoken.get(key, {}), again.get(key, {})) for key in dict.fromkeys((*spoken, *again))
        )
        common = common or bool(ours.keys() & theirs.keys() or spoken.keys() & again.keys())
    if not common:
        hint = "a step's saves name what is kept row by row: metrics, and a model's .generated"
        raise Refusal(Problem("", "the two runs saved no metric or continuation in common", hint))
    joined = {one for one, _ in twins}, {other for _, other in twins}
    return Compared(
        tuple(pairs),
        tuple(said),
        tuple(differences(first.document, second.document)),
        tuple(differences(_came_from(first.run), _came_from(second.run))),
        tuple(label for label in first.points if label not in joined[0]),
        tuple(label for label in second.points if label not in joined[1]),
    )


def differences(first: object, second: object, path: str = "") -> Iterator[Difference]:
    """Where two JSON values differ, in the order of the first; lists of one length entry by entry."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        one, other = cast(Mapping[str, object], first), cast(Mapping[str, object], second)
        for key in dict.fromkeys((*one, *other)):
            if key in one and key in other:
                yield from differences(one[key], other[key], join(path, key))
            else:
                yield Difference(join(path, key), one.get(key), other.get(key))
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second) and _nested(first):
        for index, (one, other) in enumerate(zip(cast(list[object], first), cast(list[object], second), strict=True)):
            yield from differences(one, other, join(path, index))
    elif first != second or isinstance(first, bool) != isinstance(second, bool):
        yield Difference(path, first, second)


def _nested(values: object) -> bool:
    return any(isinstance(value, dict) for value in cast(list[object], values))


def _twins(first: Sequence[str], second: Sequence[str]) -> list[tuple[str, str]]:
    """Points of one label; where each run has but one point, those two."""
    if len(first) == len(second) == 1:
        return [(first[0], second[0])]
    return [(label, label) for label in first if label in set(second)]


def _listed(labels: Sequence[str]) -> str:
    shown = ", ".join(label or "one without a label" for label in labels[:3])
    return shown + (f" and {len(labels) - 3} more" if len(labels) > 3 else "")


def _came_from(run: Cells) -> Cells:
    schedule = cast(Cells, run.get("schedule") or {})
    return {**{key: run.get(key) for key in RUN_KEYS}, "schedule": {"mode": schedule.get("mode")}}


def _tables(results: Results, point: str) -> dict[Key, dict[str, Cells]]:
    """The rows of every saved table of a point, by example id."""
    found: dict[Key, dict[str, Cells]] = {}
    if not any(saved.path.suffix == ".json" for saved in results.saved(point)):
        return found
    for row in results.rows(point=point):
        # A column of this name may be an axis, too.
        own = "axis.layer" in row or "layer" not in results.axes
        layer = cast(int | None, row.get("layer")) if own else None
        key = (str(row["observe"]), str(row["metric"]), layer)
        found.setdefault(key, {})[str(row["example_id"])] = row
    return found


def _pair(key: tuple[str, str, str, int | None], ours: Mapping[str, Cells], theirs: Mapping[str, Cells]) -> Pair:
    scored = {row for row, cells in ours.items() if cells["eligible"]}
    again = {row for row, cells in theirs.items() if cells["eligible"]}
    both = [row for row in ours if row in scored & again]
    values = [(ours[row]["value"], theirs[row]["value"]) for row in both]
    changed = sum(a != b for a, b in values)
    numbers = [(float(a), float(b)) for a, b in values if isinstance(a, int | float) and isinstance(b, int | float)]
    pair = Pair(
        *key,
        *(len(both), None, None, None, None, None, changed, None, None),
        *(len(scored - again), len(again - scored)),
    )
    if not numbers or len(numbers) < len(both):
        return pair
    gaps = [b - a for a, b in numbers]
    one, other = (statistics.fmean(side) for side in zip(*numbers, strict=True))
    sure = interval(gaps)
    largest, row = max(zip(gaps, both, strict=True), key=lambda gap: abs(gap[0]))
    return replace(
        pair,
        first=one,
        second=other,
        difference=statistics.fmean(gaps),
        low=None if sure is None else sure.low,
        high=None if sure is None else sure.high,
        largest=largest,
        row=row,
    )


def _continuations(results: Results, point: str) -> dict[tuple[str, str], dict[str, list[int]]]:
    """What every row generated, of every saved continuation of a point."""
    return {
        (saved.observe, saved.value): _ids(results, point, saved.observe, saved.value)
        for saved in results.saved(point)
        if saved.value.endswith(GENERATED)
    }


def _said(key: tuple[str, str, str], ours: Mapping[str, list[int]], theirs: Mapping[str, list[int]]) -> Said:
    both = [row for row in ours if row in theirs]
    steps = [_step(ours[row], theirs[row]) for row in both if ours[row] != theirs[row]]
    alone = len(ours) - len(both), len(theirs) - len(both)
    return Said(*key, len(both), len(steps), min(steps, default=None), *alone)


def _ids(results: Results, point: str, observe: str, name: str) -> dict[str, list[int]]:
    """What every row generated."""
    rows = cast(list[list[int]], results.tensor(name, point, observe).tolist())
    metadata = results.metadata(name, point, observe)
    ids = cast(list[str], json.loads(metadata["example_ids"]))
    lengths = [len(row) for row in rows]
    if f"{name}.lengths" in results.tensors(point):
        lengths = cast(list[int], results.tensor(f"{name}.lengths", point, observe).tolist())
    return {row: said[:length] for row, said, length in zip(ids, rows, lengths, strict=True)}


def _step(ours: Sequence[int], theirs: Sequence[int]) -> int:
    """The first step at which two continuations differ, one that ends there included."""
    pairs = zip(ours, theirs, strict=False)
    return next((step for step, (a, b) in enumerate(pairs) if a != b), min(len(ours), len(theirs)))
