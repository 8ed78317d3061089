"""Sweep wrappers: `{"sweep": values, "as": axis}` found in a document, each by itself.

Knows the wrapper's shape and where it may stand; refuses to know how wrappers combine (`spec.sweep`). A range is
never turned into a list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from causalab_mini.errors import Problem, join, suggest
from causalab_mini.spec.template import Pick
from causalab_mini.spec.text import Json, JsonObject
from causalab_mini.vocabulary.node import NAME_PATTERN

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


@dataclass(frozen=True)
class Wrapper:
    """One `{"sweep": …}` of a document: where, on which axis, and what it stands for."""

    path: str
    axis: str
    given: bool
    values: Sequence[Json]


class Finder:
    """Finds wrappers in reading order and puts a `Pick` in place of each."""

    def __init__(self) -> None:
        self.wrappers: list[Wrapper] = []
        self.problems: list[Problem] = []

    def walk(self, value: Json, path: str, key: str) -> Json | Pick:
        """`value` with its wrappers picked out; `key` is the nearest object key above it."""
        if isinstance(value, dict):
            if is_wrapper(value, path, key):
                return self._wrapper(value, path, key)
            walked = {name: self.walk(item, join(path, name), name) for name, item in value.items()}
            return _same(value, walked)
        if isinstance(value, list):
            items = [self.walk(item, join(path, i), key) for i, item in enumerate(value)]
            return value if all(a is b for a, b in zip(value, items, strict=True)) else _mixed(items)
        return value

    def _wrapper(self, value: JsonObject, path: str, key: str) -> Json | Pick:
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


def size(values: Sequence[Json]) -> int:
    """How many values there are."""
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
    if not isinstance(axis, str) or not re.fullmatch(NAME_PATTERN, axis):
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
    if size(found) == 0:
        yield Problem(path, "a sweep needs at least one value, and there is none", form)
    if isinstance(values, list) and any(_holds_wrapper(item) for item in values):
        yield Problem(path, "a sweep stands inside the values of another", "sweeps cross by standing side by side")


def _holds_wrapper(value: Json) -> bool:
    if isinstance(value, dict):
        return is_wrapper(value, "inside", "") or any(_holds_wrapper(item) for item in value.values())
    return isinstance(value, list) and any(_holds_wrapper(item) for item in value)
