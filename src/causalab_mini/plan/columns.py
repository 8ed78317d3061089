"""Columns that no row has, looked for in a document that is refused for other reasons: so that all come at once.

Looks at the document as written, and passes over whatever is not in the shape it expects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from causalab_mini.data import tables
from causalab_mini.data.fields import FieldPath
from causalab_mini.data.rows import cells_of
from causalab_mini.errors import DataRefusal, Problem, join
from causalab_mini.vocabulary.metric import AnswerMetric
from causalab_mini.vocabulary.metrics import METRICS

BASE = "base"
Json = Mapping[str, object]


def unknown_columns(raw: object, root: Path) -> list[Problem]:
    """The misspelt columns of roles, metrics and forced decodes, under the data root `root`."""
    return list(dict.fromkeys(_all(_object(raw), root)))


def _all(document: Json, root: Path) -> Iterator[Problem]:
    for name, step in _objects(document.get("steps")):
        rows = {role: ref for role, ref in _object(step.get("rows")).items() if isinstance(ref, str)}
        for role, node in _objects(document.get("roles")):
            yield from _looked_up(rows.get(role), node.get("field"), join("roles", role, "field"), root)
        used = step.get("interventions", step.get("intervention"))
        for body, path in _bodies(document, used, join("steps", name, "interventions")):
            yield from _intervention(body, path, rows, root)


def _bodies(document: Json, used: object, path: str) -> Iterator[tuple[Json, str]]:
    declared = _object(document.get("interventions"))
    if used is None:
        used = list(declared)
    if isinstance(used, list):
        for number, one in enumerate(cast("list[object]", used)):
            yield from _bodies(document, one, join(path, number))
    elif isinstance(used, str):
        yield _object(declared.get(used)), join("interventions", used)
    else:
        yield _object(used), path


def _intervention(body: Json, path: str, rows: Mapping[str, str], root: Path) -> Iterator[Problem]:
    reads = _object(body.get("reads"))
    for name, metric in _objects(body.get("metrics")):
        kind, of = metric.get("kind"), metric.get("of")
        node = METRICS.get(kind).node if isinstance(kind, str) and kind in METRICS.names() else None
        if node is None or not issubclass(node, AnswerMetric) or not isinstance(of, str):
            continue
        role = _object(reads.get(of)).get("input")
        ref = rows.get(BASE) or (rows.get(role) if isinstance(role, str) else None)
        for answer in node.answers:
            yield from _looked_up(ref, metric.get(answer), join(path, "metrics", name, answer), root)
    force = _object(body.get("decode")).get("force")
    yield from _looked_up(rows.get(BASE), force, join(path, "decode.force"), root)


def _looked_up(ref: str | None, column: object, path: str, root: Path) -> Iterator[Problem]:
    if ref is None or not isinstance(column, str):
        return
    try:
        table = tables.load(ref, root)
        field = FieldPath.parse(column)
    except DataRefusal:
        return
    try:
        cells_of(table, field)
    except DataRefusal as refusal:
        yield from (problem.within(path) for problem in refusal.problems)


def _object(value: object) -> Json:
    return cast(Json, value) if isinstance(value, dict) else {}


def _objects(value: object) -> Iterator[tuple[str, Json]]:
    yield from ((name, _object(one)) for name, one in _object(value).items())
