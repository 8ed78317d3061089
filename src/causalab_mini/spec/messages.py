"""Shape errors in the document's words: what was found, what is needed, one way out.

Translates pydantic's errors; knows the nodes only by their fields.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, cast, get_args

from pydantic import BaseModel

from causalab_mini.errors import Problem, join, suggest

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Loc = tuple[str | int, ...]

NAME_RULE = "a name is letters, digits, '_' and '-', and does not start with a digit or '-'"

_NEEDED = {
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "tuple_type": "a list",
    "list_type": "a list",
    "finite_number": "a finite number",
}


def describe(value: object) -> str:
    """A JSON value in a few words."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        shown = json.dumps(value, ensure_ascii=False) if all(_plain(item) for item in value) else ""
        return f"the list {shown}" if 0 < len(shown) <= 40 else "a list"
    if not _plain(value):
        return "something else"
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 60 else shown[:57] + "…"


def _plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)


def problems(errors: Sequence[ErrorDetails], raw: object, node: type[BaseModel]) -> list[Problem]:
    """Pydantic's errors on `raw`, which was to be a `node`; paths are relative to it."""
    placed = [(located(error, raw), error) for error in errors]
    return [
        problem(error, loc, fields(node, loc[:-1]))
        for loc, error in placed
        if not (error["type"] in _NEEDED and any(_overrules(other, at, loc) for at, other in placed))
    ]


def located(error: ErrorDetails, raw: object) -> Loc:
    """Where in `raw` an error is: pydantic's place without the parts that name a branch of a union."""
    loc = error["loc"]
    kept: list[str | int] = []
    for last, part in ((i == len(loc) - 1, part) for i, part in enumerate(loc)):
        if isinstance(raw, dict) and part in raw:
            raw = cast(Mapping[object, object], raw)[part]
            kept.append(part)
        elif isinstance(raw, list | tuple) and isinstance(part, int) and part < len(raw):
            raw = cast(Sequence[object], raw)[part]
            kept.append(part)
        elif isinstance(raw, dict) and last and error["type"] == "missing":
            kept.append(part)
    return tuple(kept)


def _overrules(other: ErrorDetails, at: Loc, loc: Loc) -> bool:
    """Whether an error of one branch of a union says more than another branch's "wrong type" at `loc`."""
    return at[: len(loc)] == loc and (len(at) > len(loc) or other["type"] not in _NEEDED)


@lru_cache
def fields(node: type[BaseModel], loc: Loc) -> tuple[str, ...]:
    """The keys of the object at `loc` inside a `node`."""
    for part in loc:
        field = node.model_fields.get(str(part))
        inner = [] if field is None else list(_nodes(field.annotation))
        node = inner[0] if inner else node
    return tuple(field.alias or name for name, field in node.model_fields.items())


def _nodes(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _nodes(argument)


def problem(error: ErrorDetails, loc: Loc, keys: Sequence[str]) -> Problem:
    """One error at `loc`; `keys` are those of the object it stands in."""
    where = join(*loc)
    kind = error["type"]
    context: Mapping[str, object] = error.get("ctx", {})
    found = describe(error["input"])
    if kind == "extra_forbidden":
        return unknown_key(where, str(loc[-1]), keys)
    if kind == "missing":
        return missing_key(where, str(loc[-1]))
    if kind == "literal_error":
        allowed = str(context["expected"]).replace("True", "true")
        return Problem(where, f"{allowed} is needed, and {found} was found", _closest(error["input"], allowed))
    if kind == "mismatch":
        return Problem(where, f"{context['expected']} is needed, and {found} was found")
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return _kind(where, error["input"], context)
    if kind == "string_pattern_mismatch":
        return Problem(where, f"a name is needed, and {found} was found", NAME_RULE)
    if kind == "string_too_short":
        return Problem(where, 'a text that is not empty is needed, and "" was found')
    if kind in ("greater_than_equal", "greater_than"):
        bound = f"at least {context['ge']}" if "ge" in context else f"more than {context['gt']}"
        return Problem(where, f"{bound} is needed, and {found} was found")
    if kind in ("less_than_equal", "less_than"):
        bound = f"at most {context['le']}" if "le" in context else f"less than {context['lt']}"
        return Problem(where, f"{bound} is needed, and {found} was found")
    if kind in ("too_long", "too_short"):
        return Problem(where, f"{_length(context)} are needed, and {found} was found")
    if kind in _NEEDED:
        return Problem(where, f"{_NEEDED[kind]} is needed, and {found} was found", _spelled(kind, error["input"]))
    return Problem(where, f"{found} was found; {error['msg'][:1].lower()}{error['msg'][1:]}")


def missing_key(path: str, key: str) -> Problem:
    """A key that must be there."""
    return Problem(path, f"the key '{key}' is missing", f'add "{key}"')


def unknown_key(path: str, key: str, keys: Iterable[str]) -> Problem:
    """A key no object of this kind has."""
    return Problem(path, f"there is no key '{key}' here", suggest(key, keys, "keys"))


def _closest(value: object, allowed: str) -> str | None:
    words = [word.strip("'") for word in allowed.replace(" or ", ", ").split(", ")]
    return suggest(value, words, "values") if isinstance(value, str) else None


def _kind(path: str, value: object, context: Mapping[str, object]) -> Problem:
    if not isinstance(value, dict) or "kind" not in value:
        return Problem(join(path, "kind"), "the key 'kind' is missing", "it says what this is")
    kind: object = value["kind"]
    if not isinstance(kind, str):
        return Problem(join(path, "kind"), f"text is needed, and {describe(kind)} was found")
    known = [word.strip("'") for word in str(context.get("expected_tags", "")).split(", ")]
    return Problem(join(path, "kind"), f"there is no kind '{kind}' here", suggest(kind, known, "kinds"))


def _length(context: Mapping[str, object]) -> str:
    if "max_length" in context:
        return f"at most {context['max_length']} items"
    return f"at least {context['min_length']} items"


def _spelled(kind: str, value: object) -> str | None:
    if kind.startswith("int") and isinstance(value, float) and value.is_integer():
        return f"write {int(value)}"
    if kind in ("int_type", "float_type") and isinstance(value, str):
        return "write it without quotes" if value.lstrip("-").replace(".", "", 1).isdigit() else None
    return None
