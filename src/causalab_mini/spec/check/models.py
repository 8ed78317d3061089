"""Models: writes that are there, once, in an order that makes sense, and operands without a circle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from causalab_mini.errors import Problem, join
from causalab_mini.spec.check import positions
from causalab_mini.spec.check.names import Layers, Scope, common, place
from causalab_mini.spec.document import Write
from causalab_mini.spec.forwards import sources
from causalab_mini.vocabulary.featurizers import FEATURIZERS, IDENTITY
from causalab_mini.vocabulary.mechanisms import MECHANISMS, Argument


def check(scope: Scope) -> Iterator[Problem]:
    """Every model of an intervention."""
    known = scope.intervention.writes
    for name, model in scope.intervention.models.items():
        path = f"{scope.path}.models.{name}"
        yield from scope.role(path, model.input)
        for i, write in enumerate(model.writes):
            at = join(path, "writes", i)
            yield from scope.here.undeclared(at, "write", write, f"{scope.path}.writes", known)
            if write in model.writes[:i]:
                yield Problem(at, f"the write '{write}' stands there twice", "keep one")
        writes = [write for write in dict.fromkeys(model.writes) if write in known]
        yield from _renormalized(scope, writes, f"{path}.writes")
        yield from _contradicting(scope, writes, f"{path}.writes")
    yield from _circles(scope)


def _argument(write: Write) -> Argument | None:
    return MECHANISMS.get(write.mechanism).node.argument if write.mechanism in MECHANISMS else None


def _renormalized(scope: Scope, writes: Sequence[str], path: str) -> Iterator[Problem]:
    known = scope.intervention.writes
    if any(f"{scope.path}.writes.{write}" in scope.here.broken for write in writes):
        return
    for i, name in enumerate(writes):
        where = scope.place(known[name])
        if where is None or _argument(known[name]) is not Argument.BEFORE:
            continue
        before = [other for other in writes[:i] if _site(scope, other) == _site(scope, name)]
        if not _covered(scope.layers(known[name]), [scope.layers(known[other]) for other in before]):
            at = " at every layer" if before else ""
            message = f"'{name}' renormalizes {where.spelled}, and no write before it is there{at}"
            yield Problem(path, message, "list it after the write whose norm it mends")
        for other in writes[i + 1 :]:
            if _site(scope, other) == _site(scope, name) and common(
                scope.layers(known[other]), scope.layers(known[name])
            ):
                message = f"'{name}' renormalizes {where.spelled}, and '{other}' writes there after it"
                yield Problem(path, message, "list it last")


def _covered(layers: Layers, written: Sequence[Layers]) -> bool:
    """Whether every one of `layers` is written; only "all" is sure to be as many as "all"."""
    if "all" in written:
        return True
    return layers != "all" and layers <= frozenset[int | None]().union(*(one for one in written if one != "all"))


def _site(scope: Scope, write: str) -> tuple[str, frozenset[int] | None, bool] | None:
    """The module value a write changes; a block's output and the next one's input are two of them."""
    site = scope.here.document.sites.get(scope.intervention.writes[write].site)
    component = scope.here.component(scope.intervention.writes[write].site)
    if site is None or component is None:
        return None
    passing = scope.intervention.writes[write].reach == "forward"
    return component.identity, place(component, site).parts, passing


def _contradicting(scope: Scope, writes: Sequence[str], path: str) -> Iterator[Problem]:
    known = scope.intervention.writes
    absolute = [name for name in writes if _absolute(known[name])]
    for first, second in combinations(absolute, 2):
        one, other = known[first], known[second]
        here, there = scope.place(one), scope.place(other)
        if here is None or there is None or not here.meets(there):
            continue
        if (one.reach == "forward") != (other.reach == "forward"):
            continue  # One is for this forward, the other for later ones.
        if positions.overlap(one.pos, other.pos) and not _apart(scope, one, other):
            same = here.spelled if here.spelled == there.spelled else f"{here.spelled}, which is {there.spelled}"
            if here.spelled != there.spelled and (scope.stacked(one) or scope.stacked(other)):
                same = f"one value of {here.spelled} and {there.spelled}"
            message = (
                f"'{first}' and '{second}' both set {same}, at {one.pos.compact()} and {other.pos.compact()}: "
                "the second would undo the first"
            )
            yield Problem(path, message, "keep one, or write at different tokens")


def _absolute(write: Write) -> bool:
    return write.mechanism in MECHANISMS and MECHANISMS.get(write.mechanism).node.absolute


def _apart(scope: Scope, one: Write, other: Write) -> bool:
    """Whether two writes are limited to different coordinates of one value, along orthonormal directions."""
    here, there = scope.place(one), scope.place(other)
    parts = (here.parts if here else None, there.parts if there else None)
    if parts[0] is not None and parts[1] is not None and not parts[0] & parts[1]:
        return True
    if parts[0] != parts[1]:
        return False
    if one.features is None or other.features is None:
        return False
    space = scope.space(one.featurizer)
    declared = scope.here.document.featurizers.get(one.featurizer)
    kind = IDENTITY if declared is None else declared.kind
    straight = kind in FEATURIZERS and FEATURIZERS.get(kind).node.orthonormal
    same = straight and space == scope.space(other.featurizer)
    return same and not set(one.features) & set(other.features)


def _circles(scope: Scope) -> Iterator[Problem]:
    """Each circle of models that need each other's reads, once."""
    done: set[str] = set()
    for start in scope.intervention.models:
        yield from _circle(scope, (start,), done)


def _circle(scope: Scope, trail: tuple[str, ...], done: set[str]) -> Iterator[Problem]:
    model = trail[-1]
    if model in done:
        return
    for source in sources(scope.intervention, model):
        if source in trail:
            circle = trail[trail.index(source) :]
            steps = [_step(scope, one, other) for one, other in zip(circle, (*circle[1:], source), strict=True)]
            path = f"{scope.path}.models.{circle[0]}.writes"
            yield Problem(path, f"the models go in a circle: {', '.join(steps)}", "read one of them in 'original'")
        else:
            yield from _circle(scope, (*trail, source), done)
    done.add(model)


def _step(scope: Scope, model: str, source: str) -> str:
    read = sources(scope.intervention, model)[source]
    return f"'{model}' needs its own read '{read}'" if model == source else f"'{model}' needs '{read}' of '{source}'"
