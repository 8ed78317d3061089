"""Writes: places that can be written, parameters of the mechanism, operands of the right kind and width."""

from __future__ import annotations

from collections.abc import Iterator

from causalab_mini.errors import Problem, suggest
from causalab_mini.spec import mechanisms
from causalab_mini.spec.check import positions
from causalab_mini.spec.check.names import Scope
from causalab_mini.spec.check.sites import counted
from causalab_mini.spec.document import Read, Write
from causalab_mini.vocabulary.components import Width
from causalab_mini.vocabulary.mechanisms import MECHANISMS, Argument

LARGEST = {"fp32": 3.4028234663852886e38, "bf16": 3.3895313892515355e38, "fp16": 65504.0}
"""The largest finite number of each dtype."""


def check(scope: Scope) -> Iterator[Problem]:
    """Every write of an intervention."""
    for name, write in scope.intervention.writes.items():
        path = f"{scope.path}.writes.{name}"
        yield from scope.site(path, write)
        yield from scope.featurizer(path, write)
        component = scope.here.component(write.site)
        if component is not None and not component.writable:
            yield Problem(f"{path}.site", f"'{component.name}' can be read and not written", "write another component")
        yield from positions.check_written(write.pos, f"{path}.pos", scope.decode)
        yield from _mechanism(scope, write, path)
        yield from counted(write.features, "feature", f"{path}.features")
        if component is not None and component.pattern and write.features is not None:
            message = f"{component.name} has a number for each key and head, and no features"
            yield Problem(f"{path}.features", message, "leave it out, or limit the site by 'heads'")
        if write.reach is not None and component is not None and not component.lasting:
            message = f"'reach' is about attention keys and values, and the site is {component.name}"
            yield Problem(f"{path}.reach", message, "leave 'reach' out")


def _mechanism(scope: Scope, write: Write, path: str) -> Iterator[Problem]:
    if (named := write.operand_read) is not None:
        yield from scope.read(f"{path}.operand", named)
        read = scope.intervention.reads.get(named)
        if read is not None:
            yield from operand(scope, write, named, read, path, positions.width(read.pos, scope.decode))
    if write.mechanism not in MECHANISMS:
        hint = suggest(write.mechanism, MECHANISMS.names(), "mechanisms")
        yield Problem(f"{path}.mechanism", f"there is no mechanism '{write.mechanism}'", hint)
        return
    yield from mechanisms.parameter_problems(write, path)
    yield from _fitting(scope, write, path)
    needed = MECHANISMS.get(write.mechanism).node.argument is Argument.OPERAND
    if needed and write.operand is None:
        yield Problem(f"{path}.operand", f"'{write.mechanism}' needs an operand, and there is none", "name a read")
    if not needed and write.operand is not None:
        yield Problem(f"{path}.operand", f"'{write.mechanism}' takes no operand, and one was found", "leave it out")


def _fitting(scope: Scope, write: Write, path: str) -> Iterator[Problem]:
    """Whether the numbers of a write fit the dtype the model computes in."""
    dtype = scope.here.document.model.dtype
    given = {"operand": write.operand, **{f"params.{name}": value for name, value in write.params.items()}}
    for where, value in given.items():
        if isinstance(value, int | float) and where != "params.seed" and abs(value) > LARGEST[dtype]:
            message = f"{value} does not fit {dtype}, whose largest number is {LARGEST[dtype]:g}"
            yield Problem(f"{path}.{where}", message, "use a smaller number, or a wider dtype")


def operand(
    scope: Scope, write: Write, name: str, read: Read, path: str, width: int | None, space: str | None = None
) -> Iterator[Problem]:
    """Whether the value of `read`, called `name`, fits a write as its operand.

    `width` is how many tokens the operand has, None where only the rows know. `space` is its featurizer's, where
    the read belongs to another intervention.
    """
    path = f"{path}.operand"
    component = scope.here.component(read.site)
    if read.view != "raw":
        yield Problem(path, f"'{name}' is a {read.view} view, which is no operand", 'read it with "view": "raw"')
    elif component is not None and component.width is Width.VOCABULARY:
        yield Problem(path, f"'{name}' is as wide as the vocabulary, which is no operand", "read the residual stream")
    elif component is not None and component.ids:
        yield Problem(path, f"'{name}' holds {component.ids}, which are no operand", "read 'embeddings' instead")
    elif scope.stacked(read):
        message = f"'{name}' is read at several layers, which is no operand"
        yield Problem(path, message, 'read it at one layer, as in "layers": 0')
    else:
        written = scope.here.component(write.site)
        if (
            component is not None
            and written is not None
            and written.writable
            and scope.layout(read) != scope.layout(write)
        ):
            message = f"'{name}' is {scope.layout(read)}, and the write at {written.name} is {scope.layout(write)}"
            yield Problem(path, message, "read and write values of one width")
    theirs, ours = space or scope.space(read.featurizer), scope.space(write.featurizer)
    if theirs != ours:
        message = f"'{name}' is read through the featurizer '{theirs}', and the write is through '{ours}'"
        yield Problem(path, message, "use one featurizer for both")
    written_width = positions.width(write.pos, scope.decode)
    if width is not None and written_width is not None and width not in (1, written_width):
        message = f"'{name}' has {width} tokens, and the write at {write.pos.compact()} has {written_width}"
        yield Problem(path, message, "let the operand have one token, or as many as the write")
