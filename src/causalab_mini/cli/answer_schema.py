"""The JSON Schemas of what `run`, `check` and `compare` answer with --json, refusals and failures included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NotRequired

from pydantic import ConfigDict, JsonValue, TypeAdapter
from typing_extensions import TypedDict

from causalab_mini.cli.document_schema import DIALECT, Schema


class _Closed(TypedDict):
    """No other key than those that are named."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # pyright: ignore


class Problem(_Closed):
    """One thing that is wrong."""

    path: str
    line: int | None
    message: str
    hint: str | None


class Refused(_Closed):
    """What stopped the verb, or kept it from beginning."""

    ok: Literal[False]
    problems: list[Problem]


class Helped(_Closed):
    """The text of --help."""

    ok: Literal[True]
    help: str


class Count(_Closed):
    """How many of the points that were asked for were run, and kept from before."""

    run: int
    kept: int


class Complete(_Closed):
    """How many of all points are complete."""

    complete: int
    all: int


class Partial(_Closed):
    """What a run leaves out."""

    rows: int | None
    points: Complete


class Line(TypedDict):
    """A line of the summary; the axes are keys, too."""

    __pydantic_config__ = ConfigDict(extra="allow")  # pyright: ignore
    point: str
    observe: str
    metric: str
    layer: NotRequired[int | None]
    mean: float | None
    sd: float | None
    low: float | None
    high: float | None
    n_scored: int
    n_rows: int


class Ran(_Closed):
    """What a run left."""

    ok: bool
    digest: str
    out: str
    points: Count
    partial: Partial | None
    files: list[str]
    summary: list[Line]
    warnings: list[str]
    unscored: list[str]
    non_finite: list[str]
    idle_writes: list[str]


class Planned(_Closed):
    """A point of --dry-run."""

    point: str
    runs: bool
    reason: str


class Foretold(_Closed):
    """What --dry-run tells."""

    ok: Literal[True]
    dry_run: Literal[True]
    points: list[Planned]
    run: int
    skip: int


class Looked(_Closed):
    """The points that were checked, of how many."""

    checked: list[str]
    all: int


class Apart(_Closed):
    """A row that differs in kind."""

    point: str
    observe: str
    what: str
    example_id: str


class Gap(Apart):
    """A difference; null where it is not finite."""

    difference: float | None
    size: float


class Comparison(_Closed):
    """Two executions held against each other; without a bound, to the bit."""

    name: str
    ok: bool
    bound: float | None
    values: int
    largest: list[Gap]
    apart: list[Apart]
    near_ties: int


class Row(_Closed):
    """What a write did to a row."""

    example_id: str
    firings: int
    at_site: float | None
    at_reads: dict[str, float | None]


class Written(_Closed):
    """What a write did."""

    point: str
    observe: str
    write: str
    model: str
    role: str
    rows: list[Row]


class Checked(_Closed):
    """What a check found."""

    ok: bool
    points: Looked
    dtype: str
    device: str
    comparisons: list[Comparison]
    writes: list[Written]


class Pair(_Closed):
    """A metric of both runs."""

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


class Said(_Closed):
    """A continuation of both runs."""

    point: str
    observe: str
    value: str
    n: int
    changed: int
    first_step: int | None
    only_first: int
    only_second: int


class Difference(_Closed):
    """A place at which the runs differ; null where one has nothing there."""

    path: str
    first: JsonValue
    second: JsonValue


class Compared(_Closed):
    """Two runs held against each other."""

    ok: Literal[True]
    same: bool
    pairs: list[Pair]
    said: list[Said]
    document: list[Difference]
    run: list[Difference]
    only_first: list[str]
    only_second: list[str]


ANSWERS: Mapping[str, TypeAdapter[object]] = {
    "run": TypeAdapter(Ran | Foretold | Refused | Helped),
    "check": TypeAdapter(Checked | Refused | Helped),
    "compare": TypeAdapter(Compared | Refused | Helped),
}


def answer_schema(verb: str) -> Schema:
    """The schema of a verb's answers."""
    return {"$schema": DIALECT, "title": f"What {verb} --json answers", **ANSWERS[verb].json_schema()}
