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

from causalab_mini.errors import Problem, SweepRefusal, join, suggest
from causalab_mini.spec.template import Pick, Template, template
from causalab_mini.spec.text import Json, JsonObject
from causalab_mini.vocabulary.node import NAME_PATTERN

MOST = 10_000
LONGEST = 200
UNSWEPT = ("model", "header")
NAMINGS = (
    "roles",
    "sites",
    "featurizers",
    "interventions",
    "steps",
    "reads",
    "writes",
    "models",
    "metrics",
    "rows",
    "outputs",
)
_OTHER = re.compile(r"[^\w.+-]")


@dataclass(frozen=True)
class Wrapper:
    """One `{"sweep": …}` of a document: where, on which axis, and what it stands for."""

    path: str
    axis: str
    given: bool
    values: Sequence[Json]


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
    finder = _Finder()
    body = finder.walk(document, "", "")
    problems = list(finder.problems)
    axes = tuple(_axes(finder.wrappers, problems))
    if not problems:
        problems.extend(_bounded(axes))
    if not problems:
        problems.extend(problem for axis in axes for problem in _labels(axis))
    index = {wrapper.path: i for i, axis in enumerate(axes) for wrapper in axis.wrappers}
    return Expansion(axes, template(body, index), tuple(problems))


class _Finder:
    """Finds wrappers in reading order and puts a `Pick` in place of each."""

    def __init__(self) -> None:
        self.wrappers: list[Wrapper] = []
        self.problems: list[Problem] = []

    def walk(self, value: Json, path: str, key: str) -> Json | Pick:
        if isinstance(value, dict):
            if is_wrapper(value, path, key):
                return self.wrapper(value, path, key)
            walked = {name: self.walk(item, join(path, name), name) for name, item in value.items()}
            return _same(value, walked)
        if isinstance(value, list):
            items = [self.walk(item, join(path, i), key) for i, item in enumerate(value)]
            return value if all(a is b for a, b in zip(value, items, strict=True)) else _mixed(items)
        return value

    def wrapper(self, value: JsonObject, path: str, key: str) -> Json | Pick:
        problems = list(_wrapper_problems(value, path, key))
        self.problems.extend(problems)
        values = _values(value["sweep"])
        if problems:
            return values[0] if values else None
        given = value.get("as")
        self.wrappers.append(Wrapper(path, given if isinstance(given, str) else key, "as" in value, values or ()))
        return Pick(path, values or ())


def _same(value: JsonObject, walked: dict[str, Json | Pick]) -> Json:
    same = all(value[name] is item for name, item in walked.items())
    return value if same else _mixed(walked)


def _mixed(value: object) -> Json:
    # A tree that holds `Pick`s stands for JSON until `template` has compiled them away.
    return value  # type: ignore[return-value]


def is_wrapper(value: JsonObject, path: str, key: str) -> bool:
    """Whether an object is a sweep, and not a set of names one of which is 'sweep'."""
    if "sweep" not in value or not path:
        return False
    values = value["sweep"]
    if isinstance(values, list) or (isinstance(values, dict) and "range" in values):
        return True
    return set(value) <= {"sweep", "as"} and not (key in NAMINGS and isinstance(values, dict | str))


def _values(values: Json) -> Sequence[Json] | None:
    if isinstance(values, list):
        return values
    bounds = values.get("range") if isinstance(values, dict) else None
    if isinstance(bounds, list) and len(bounds) in (2, 3):
        numbers = [bound for bound in bounds if isinstance(bound, int) and not isinstance(bound, bool)]
        if len(numbers) == len(bounds) and 0 not in numbers[2:]:
            return range(*numbers)
    return None


def _size(values: Sequence[Json]) -> int:
    if isinstance(values, range):
        # len() overflows on ranges wider than a machine word.
        step = values.step
        return max(0, (values.stop - values.start + step - (1 if step > 0 else -1)) // step)
    return len(values)


def _wrapper_problems(value: JsonObject, path: str, key: str) -> Iterator[Problem]:
    section = path.split(".")[0].split("[")[0]
    if section in UNSWEPT:
        yield Problem(path, f"'{section}' cannot be swept", "write one document for each")
    for name in value:
        if name not in ("sweep", "as"):
            yield Problem(join(path, name), f"a sweep has no key '{name}'", suggest(name, ("sweep", "as"), "keys"))
    axis = value.get("as", key)
    if not isinstance(axis, str) or not re.fullmatch(NAME_PATTERN, axis.rstrip("\n") if axis != key else axis):
        if "as" in value:
            yield Problem(
                join(path, "as"),
                f"an axis is named by a name, and {json.dumps(axis)} was found",
                'for example "as": "layer"',
            )
        else:
            yield Problem(path, f"'{axis}' cannot name an axis", 'give the sweep a name with "as"')
    yield from _values_problems(value["sweep"], join(path, "sweep"))


def _values_problems(values: Json, path: str) -> Iterator[Problem]:
    form = 'give a list of values or {"range": [start, stop, step]}'
    found = _values(values)
    if found is None:
        if isinstance(values, dict) and "range" in values:
            if isinstance(values["range"], list) and len(values["range"]) == 3 and values["range"][2] == 0:
                yield Problem(join(path, "range"), "a range with step 0 never ends", "give another step")
            else:
                shown = json.dumps(values["range"])
                message = f"a range is two or three integers, and {shown} was found"
                yield Problem(join(path, "range"), message, "[start, stop] or [start, stop, step], stop not included")
        else:
            yield Problem(path, f"a sweep needs values, and {json.dumps(values)[:60]} was found", form)
        return
    if isinstance(values, dict):
        for name in values:
            if name != "range":
                yield Problem(join(path, name), f"a range has no key '{name}'", form)
    if _size(found) == 0:
        yield Problem(path, "a sweep needs at least one value, and there is none", form)
    if isinstance(values, list) and any(_holds_wrapper(item) for item in values):
        yield Problem(path, "a sweep stands inside the values of another", "sweeps cross by standing side by side")


def _holds_wrapper(value: Json) -> bool:
    if isinstance(value, dict):
        return is_wrapper(value, "inside", "") or any(_holds_wrapper(item) for item in value.values())
    return isinstance(value, list) and any(_holds_wrapper(item) for item in value)


def _axes(wrappers: Sequence[Wrapper], problems: list[Problem]) -> Iterator[Axis]:
    groups: dict[str, list[Wrapper]] = {}
    for wrapper in wrappers:
        groups.setdefault(wrapper.axis, []).append(wrapper)
    for name, group in groups.items():
        unnamed = [wrapper for wrapper in group if not wrapper.given]
        sizes = [_size(wrapper.values) for wrapper in group]
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
    sizes = [_size(axis.values) for axis in axes]
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
        if len(part.encode()) > LONGEST:
            yield Problem(path, f"the label {part[:40]}… is too long for a directory name", "sweep a smaller value")
        seen.setdefault(part, value)
