"""Reads: declared names, a position that exists, a view where there is something to project."""

from __future__ import annotations

from collections.abc import Iterator

from causalab_mini.errors import Problem
from causalab_mini.spec.check import positions
from causalab_mini.spec.check.names import Scope
from causalab_mini.spec.document import Read
from causalab_mini.vocabulary.components import Width
from causalab_mini.vocabulary.featurizers import IDENTITY


def check(scope: Scope) -> Iterator[Problem]:
    """Every read of an intervention."""
    for name, read in scope.intervention.reads.items():
        path = f"{scope.path}.reads.{name}"
        yield from scope.site(path, read)
        yield from scope.featurizer(path, read)
        yield from scope.role(path, read.input)
        yield from scope.model(path, read.model)
        yield from positions.check(read.pos, f"{path}.pos", scope.decode)
        yield from _view(scope, read, f"{path}.view")
        yield from _last(scope, read, f"{path}.pos")
        yield from _entering(scope, read, f"{path}.pos")


def _view(scope: Scope, read: Read, path: str) -> Iterator[Problem]:
    component = scope.here.component(read.site)
    if read.view == "raw" or component is None:
        return
    if scope.space(read.featurizer) != IDENTITY:
        message = (
            f"'{read.view}' projects the residual stream, and the features of '{read.featurizer}' are no part of it"
        )
        yield Problem(path, message, "leave 'view' or 'featurizer' out")
        return
    if component.residual:
        return
    if component.distribution:
        hint = "leave 'view' out: it is a distribution already"
    elif component.width is Width.VOCABULARY:
        hint = "leave 'view' out: metrics take the logits themselves"
    else:
        hint = "read a value of the residual stream, such as block_output"
    yield Problem(path, f"'{read.view}' projects the residual stream, and '{component.name}' is no part of it", hint)


def _last(scope: Scope, read: Read, path: str) -> Iterator[Problem]:
    """What is there after the last position is read there."""
    component = scope.here.component(read.site)
    if component is None or not component.distribution or read.pos.generated:
        return
    pos = read.pos
    if pos.scope is None and (pos.index == -1 or pos.last == 1):
        return
    message = f"'{component.name}' is there at the last token of the prompt, and {pos.compact()} was found"
    yield Problem(path, message, 'read {"index": -1}; elsewhere, lm_head')


def _entering(scope: Scope, read: Read, path: str) -> Iterator[Problem]:
    """What a step begins with is read at a step that follows another one."""
    component = scope.here.component(read.site)
    if component is None or not component.state or component.writable:
        return
    pos = read.pos
    if pos.generated and pos.scope is None and ((pos.index or 0) > 0 or (pos.span is not None and pos.span[0] > 0)):
        return
    message = f"'{component.name}' is there from step 1 on, and {pos.compact()} was found"
    yield Problem(path, message, 'name such steps, as in {"frame": "generated", "span": [1, 3]}')
