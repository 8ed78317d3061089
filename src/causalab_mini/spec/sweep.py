"""Sweeps: one document with `{"sweep": values, "as": axis}` in it becomes labelled points.

Knows JSON and the wrapper; refuses to know what a value means. The number of points is bounded before anything is
copied, and points share every part of the document that their setting does not touch.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from causalab_mini.errors import Problem, SweepRefusal
from causalab_mini.spec.template import Template, template
from causalab_mini.spec.text import Json, JsonObject
from causalab_mini.spec.wrappers import Finder, Wrapper, size

MOST = 10_000
LONGEST = 200
"""Bytes of a label: it is the name of a directory, and file systems stop at 255."""
_OTHER = re.compile(r"[^\w.+-]")


@dataclass(frozen=True)
class Axis:
    """Wrappers that move together."""

    name: str
    wrappers: tuple[Wrapper, ...]

    @property
    def values(self) -> Sequence[Json]:
        """What labels print: the first wrapper's values."""
        return self.wrappers[0].values

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The label part of every setting: `axis=value`."""
        return tuple(f"{clean(self.name)}={clean(printed(value))}" for value in self.values)


@dataclass(frozen=True)
class Point:
    """One setting: its label ("" without a sweep), the axes' values, and the document it is."""

    label: str
    choice: tuple[int, ...]
    axes: tuple[tuple[str, Json], ...]
    value: JsonObject


@dataclass(frozen=True)
class Expansion:
    """A document as its axes and what stays the same.

    `problems` are those of the sweeps themselves; with any, `first` is all that can be had.
    """

    axes: tuple[Axis, ...]
    body: Template
    problems: tuple[Problem, ...] = ()

    @property
    def swept(self) -> bool:
        """Whether there is any sweep."""
        return bool(self.axes)

    @property
    def count(self) -> int:
        """How many points there are."""
        return prod(len(axis.values) for axis in self.axes)

    def first(self) -> JsonObject:
        """The document with every sweep at its first value."""
        return _object(self.body.build((0,) * len(self.axes)))

    def points(self) -> Iterator[Point]:
        """Every point, the first axis slowest."""
        for choice in itertools.product(*(range(len(axis.values)) for axis in self.axes)):
            settings = tuple(zip(self.axes, choice, strict=True))
            yield Point(
                ",".join(axis.parts[index] for axis, index in settings),
                choice,
                tuple((axis.name, axis.values[index]) for axis, index in settings),
                _object(self.body.build(choice)),
            )


def _object(value: Json) -> JsonObject:
    if not isinstance(value, dict):
        raise TypeError("a document is an object")
    return value


def clean(text: str) -> str:
    """`text` with everything but letters, digits, `.`, `+`, `-`, `_` as `_`."""
    return _OTHER.sub("_", text)


def printed(value: Json) -> str:
    """How a value prints in a label, before cleaning."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and len(value) == 1:
        return printed(value[0])
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def expand(document: JsonObject) -> Expansion:
    """The points of `document`; raises `SweepRefusal` with all that is wrong with its sweeps."""
    expansion = survey(document)
    if expansion.problems:
        raise SweepRefusal(expansion.problems)
    return expansion


def survey(document: JsonObject) -> Expansion:
    """The same, with the problems handed back beside what could be made of the rest."""
    finder = Finder()
    body = finder.walk(document, "", "")
    problems = list(finder.problems)
    axes = tuple(_axes(finder.wrappers, problems))
    if not problems:
        problems.extend(_bounded(axes))
    if not problems:
        problems.extend(problem for axis in axes for problem in _labels(axis))
        problems.extend(_long(axes))
    index = {wrapper.path: i for i, axis in enumerate(axes) for wrapper in axis.wrappers}
    return Expansion(axes, template(body, index), tuple(problems))


def _axes(wrappers: Sequence[Wrapper], problems: list[Problem]) -> Iterator[Axis]:
    groups: dict[str, list[Wrapper]] = {}
    for wrapper in wrappers:
        groups.setdefault(wrapper.axis, []).append(wrapper)
    for name, group in groups.items():
        unnamed = [wrapper for wrapper in group if not wrapper.given]
        sizes = [size(wrapper.values) for wrapper in group]
        if unnamed and len(group) > 1:
            places = ", ".join(wrapper.path for wrapper in group)
            for wrapper in unnamed:
                problems.append(
                    Problem(
                        wrapper.path,
                        f"{len(group)} sweeps would be the axis '{name}': {places}",
                        'name this one with "as"; one name for all of them makes them move together',
                    )
                )
        elif len(set(sizes)) > 1:
            counts = ", ".join(f"{wrapper.path} has {size}" for wrapper, size in zip(group, sizes, strict=True))
            problems.append(
                Problem(
                    group[-1].path,
                    f"sweeps on the axis '{name}' move together, and {counts} values",
                    "give each as many",
                )
            )
        yield Axis(name, tuple(group))


def _bounded(axes: Sequence[Axis]) -> Iterator[Problem]:
    sizes = [size(axis.values) for axis in axes]
    if prod(sizes) > MOST:
        largest = axes[sizes.index(max(sizes))]
        counts = " x ".join(f"{axis.name}: {size}" for axis, size in zip(axes, sizes, strict=True))
        yield Problem(
            largest.wrappers[0].path,
            f"the sweeps make {prod(sizes):,} points ({counts}), and a document may have {MOST:,}",
            "sweep fewer values, or split the document",
        )


def _labels(axis: Axis) -> Iterator[Problem]:
    path = axis.wrappers[0].path
    seen: dict[str, Json] = {}
    for part, value in zip(axis.parts, axis.values, strict=True):
        if part in seen:
            both = f"{json.dumps(seen[part], ensure_ascii=False)} and {json.dumps(value, ensure_ascii=False)}"
            yield Problem(
                path,
                f"two values of the axis '{axis.name}' have one label, {part}: {both}",
                "labels name directories: drop one, or sweep values that print differently",
            )
        seen.setdefault(part, value)


def _long(axes: Sequence[Axis]) -> Iterator[Problem]:
    longest = [max(axis.parts, key=lambda part: len(part.encode())) for axis in axes]
    if axes and len(",".join(longest).encode()) > LONGEST:
        worst = max(range(len(axes)), key=lambda i: len(longest[i]))
        length = len(",".join(longest).encode())
        message = f"a label of {length} bytes is too long for a directory name, with {longest[worst][:40]}… in it"
        yield Problem(axes[worst].wrappers[0].path, message, "sweep smaller values, or name the axis shorter")
