"""How one part of a document is read: its node, or all that is wrong with its shape.

A misspelt key is reported and read as what it was meant to be, or left out. A part that cannot be had is *broken*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from causalab_mini.errors import Problem, join, nearest
from causalab_mini.spec import messages
from causalab_mini.spec.messages import describe
from causalab_mini.spec.planned import Sifted
from causalab_mini.spec.text import Json, JsonObject

T = TypeVar("T")


@dataclass(frozen=True)
class Parsed(Generic[T]):
    """A part: its node if there is one, its problems, and the paths that are broken; all relative to the part.

    `misspelt`: paths as they were read, and as they are written.
    """

    node: T | None
    problems: tuple[Problem, ...] = ()
    broken: frozenset[str] = frozenset()
    misspelt: tuple[tuple[str, str], ...] = ()

    def written(self, problem: Problem) -> Problem:
        """A problem where it stands in the text: under the keys as they are written."""
        path = problem.path
        for read, written in sorted(self.misspelt, key=lambda pair: -len(pair[0])):
            if path == read or path.startswith((f"{read}.", f"{read}[")):
                path = written + path[len(read) :]
        return replace(problem, path=path)


class Gathered:
    """Problems and broken paths of the parts of one object, on their way up."""

    __slots__ = ("broken", "misspelt", "problems")

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.broken: set[str] = set()
        self.misspelt: list[tuple[str, str]] = []

    def take(self, parsed: Parsed[T], *at: str | int) -> T | None:
        """The node of a part that stands at `at`; what is wrong with it is remembered."""
        if parsed.problems or parsed.broken or parsed.node is None:
            prefix = join(*at)
            self.problems += [problem.within(prefix) for problem in parsed.problems]
            self.broken |= {join(prefix, path) for path in parsed.broken}
            self.misspelt += [(join(prefix, read), join(prefix, written)) for read, written in parsed.misspelt]
            if parsed.node is None:
                self.broken.add(prefix)
        return parsed.node

    def done(self, node: T | None) -> Parsed[T]:
        """The object itself, with all that was gathered."""
        if not self.problems:
            return Parsed(node)
        return Parsed(node, tuple(self.problems), frozenset(self.broken), tuple(self.misspelt))


@dataclass(frozen=True)
class Shape(Generic[T]):
    """A kind of part: how pydantic reads it, whose fields its keys are, and what of it is not built."""

    name: str
    adapter: TypeAdapter[T]
    node: Callable[[JsonObject], type[BaseModel]]
    sift: Callable[[JsonObject], Sifted] = Sifted

    def keys(self, raw: Json) -> type[BaseModel]:
        """The node whose fields the keys of `raw` should be."""
        return self.node(raw) if isinstance(raw, dict) else BaseModel


def closed(raw: JsonObject, node: type[BaseModel], here: Gathered) -> JsonObject:
    """`raw` with keys of `node` only: a misspelt one is reported, and read as what it was meant to be."""
    known = messages.fields(node, ())
    for key in [key for key in raw if key not in known]:
        here.problems.append(messages.unknown_key(key, key, known))
        if meant := _meant(raw, key, known):
            here.misspelt.append((meant, key))
        raw = _mended(raw, key, known)
    return raw


def _meant(raw: Mapping[str, Json], key: str, known: Iterable[str]) -> str | None:
    return nearest(key, [name for name in known if name not in raw])


def _mended(raw: Mapping[str, Json], key: str, known: Iterable[str]) -> JsonObject:
    meant = _meant(raw, key, known)
    renamed = {meant if name == key and meant else name: item for name, item in raw.items()}
    return {name: item for name, item in renamed.items() if name != key}


def misfit(needed: str, raw: Json) -> Parsed[T]:
    """A part of another type than it needs."""
    return Parsed(None, (Problem("", f"{needed} is needed, and {describe(raw)} was found"),))


def sifted(raw: JsonObject, sift: Callable[[JsonObject], Sifted], here: Gathered) -> JsonObject | None:
    """`raw` without what is not built yet, which is reported; None where nothing is left of it."""
    found = sift(raw)
    here.problems += found.problems
    here.broken |= set(found.broken)
    return found.rest


def fit(shape: Shape[T], raw: Json) -> Parsed[T]:
    """Validate one part. A misspelt key is reported and read as what it was meant to be, or left out."""
    here = Gathered()
    if isinstance(raw, dict):
        rest = sifted(raw, shape.sift, here)
        if rest is None:
            return here.done(None)
        raw = rest
    try:
        return here.done(shape.adapter.validate_python(raw))
    except ValidationError as error:
        errors = error.errors(include_url=False)
    unknown = [error for error in errors if error["type"] == "extra_forbidden"]
    if unknown:
        here.problems += messages.problems(unknown, raw, shape.keys(raw))
        for loc in [messages.located(error, raw) for error in unknown]:
            known = messages.fields(shape.keys(raw), loc[:-1])
            if meant := _meant(_object_at(raw, loc[:-1]), str(loc[-1]), known):
                here.misspelt.append((join(*loc[:-1], meant), join(*loc)))
            raw = _mended_at(raw, loc, known)
        errors = _errors(shape, raw)
    if errors:
        here.problems += messages.problems(errors, raw, shape.keys(raw))
        return here.done(None)
    return here.done(shape.adapter.validate_python(raw))


def _errors(shape: Shape[T], raw: Json) -> list[ErrorDetails]:
    try:
        shape.adapter.validate_python(raw)
    except ValidationError as error:
        return error.errors(include_url=False)
    return []


def _object_at(raw: Json, loc: messages.Loc) -> JsonObject:
    for part in loc:
        raw = raw[part] if isinstance(raw, dict | list) else None  # type: ignore[index, call-overload]
    return raw if isinstance(raw, dict) else {}


def _mended_at(raw: Json, loc: messages.Loc, known: Iterable[str]) -> Json:
    if isinstance(raw, list):
        return [_mended_at(item, loc[1:], known) if i == loc[0] else item for i, item in enumerate(raw)]
    if not isinstance(raw, dict):
        return raw
    if len(loc) == 1:
        return _mended(raw, str(loc[0]), known)
    return {name: _mended_at(item, loc[1:], known) if name == loc[0] else item for name, item in raw.items()}
