"""Metrics: reads of one token per row, over what the kind needs."""

from __future__ import annotations

from collections.abc import Iterator

from causalab_mini.errors import Problem
from causalab_mini.spec.check import positions
from causalab_mini.spec.check.names import Scope
from causalab_mini.spec.document import Read
from causalab_mini.vocabulary.components import Width
from causalab_mini.vocabulary.featurizers import IDENTITY
from causalab_mini.vocabulary.metric import Metric, Needs
from causalab_mini.vocabulary.metrics import LogitDiff


def check(scope: Scope) -> Iterator[Problem]:
    """Every metric of an intervention."""
    for name, metric in scope.intervention.metrics.items():
        path = f"{scope.path}.metrics.{name}"
        yield from _read(scope, metric, metric.of, f"{path}.of")
        if metric.compared is not None:
            yield from _read(scope, metric, metric.compared, f"{path}.against")
            yield from _alike(scope, metric, metric.compared, f"{path}.against")
        if isinstance(metric, LogitDiff) and metric.a == metric.b:
            message = f"'a' and 'b' are both the column '{metric.a}', so their difference is 0 on every row"
            yield Problem(f"{path}.b", message, "name two columns")


def _read(scope: Scope, metric: Metric, name: str, path: str) -> Iterator[Problem]:
    yield from scope.read(path, name)
    read = scope.intervention.reads.get(name)
    if read is None:
        return
    if metric.needs is Needs.CONTINUATION:
        if not (read.pos.generated and read.pos.all and read.pos.scope is None and read.pos.token == "output"):
            message = f"{metric.keyword} sums over the whole continuation, and '{name}' reads {read.pos.compact()}"
            yield Problem(path, message, 'read {"frame": "generated", "all": true}')
    elif len(read.pos.cuts) == 1 and positions.width(read.pos, scope.decode) not in (1, _unknown(scope, read)):
        message = f"a metric scores one token per row, and '{name}' reads {read.pos.compact()}"
        yield Problem(path, message, 'read one token, as in {"index": -1}')
    yield from _needed(scope, metric, name, read, path)


def _unknown(scope: Scope, read: Read) -> int | None:
    """The width of a position of which nothing can be said yet: every step of a decode that is not well formed."""
    return None if read.pos.generated and read.pos.all and scope.decode is None else 1


def _needed(scope: Scope, metric: Metric, name: str, read: Read, path: str) -> Iterator[Problem]:
    component = scope.here.component(read.site)
    if component is None:
        return
    what = metric.keyword
    if metric.needs is Needs.VECTOR:
        if component.ids:
            message = f"{what} needs a vector, and '{name}' reads {component.ids}"
            yield Problem(path, message, "read the residual stream")
        return
    if scope.space(read.featurizer) != IDENTITY:
        message = f"{what} needs {metric.needs.value}, and '{name}' reads the features of '{read.featurizer}'"
        yield Problem(path, message, "read lm_head, or score the features with cosine")
        return
    projected = read.view != "raw" and component.residual
    if component.width is not Width.VOCABULARY and not projected:
        if read.view == "raw":
            message = f"{what} needs {metric.needs.value}, and '{name}' reads {component.name}"
            view = ', or give the read "view": "logits"' if component.residual else ""
            yield Problem(path, message, f"read lm_head{view}")
    elif metric.needs is Needs.LOGITS and component.distribution:
        yield Problem(path, f"{what} needs logits, and '{name}' is probabilities", "read lm_head")
    elif metric.needs is Needs.LOGITS and read.view == "probs":
        yield Problem(path, f"{what} needs logits, and '{name}' is probabilities", 'give the read "view": "logits"')


def _alike(scope: Scope, metric: Metric, against: str, path: str) -> Iterator[Problem]:
    """Whether both have the same layers, and vectors one layout; distributions over the vocabulary always do."""
    one, other = (scope.intervention.reads.get(name) for name in (metric.of, against))
    if one is None or other is None:
        return
    if scope.stacked(one) and scope.stacked(other) and scope.layers(one) != scope.layers(other):
        message = f"'{metric.of}' and '{against}' are read at different layers"
        yield Problem(path, message, "name the same layers for both, or one layer for one of them")
    if metric.needs is not Needs.VECTOR:
        return
    layouts = [_layout(scope, read) for read in (one, other)]
    if None not in layouts and layouts[0] != layouts[1]:
        message = f"the two vectors have different layouts: '{metric.of}' is {layouts[0]}, '{against}' is {layouts[1]}"
        yield Problem(path, message, "compare reads of one width, view and featurizer")


def _layout(scope: Scope, read: Read) -> str | None:
    component = scope.here.component(read.site)
    if component is None:
        return None
    space = scope.space(read.featurizer)
    if read.view != "raw" or component.distribution:
        return f"{'probs' if component.distribution else read.view} over the vocabulary"
    return scope.layout(read) if space == IDENTITY else f"features of '{space}'"
