"""Strict JSON out of a table's bytes: no duplicate keys, no NaN, no infinity.

Knows bytes and sentences; refuses to know tables.
"""

from __future__ import annotations

import json
import math
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class NotJson(ValueError):
    """The bytes are not strict JSON; the message says where or which."""


def parse(content: bytes, line: int = 1) -> Json:
    """The JSON value in `content`, UTF-8, whose first line is `line`. `NotJson` says what is wrong and where."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotJson(f"byte {error.start} is not UTF-8") from error
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
    except json.JSONDecodeError as error:
        raise NotJson(f"line {error.lineno + line - 1}, column {error.colno}: {error.msg}") from error
    except RecursionError as error:
        raise NotJson("it is nested too deeply") from error
    except NotJson:
        raise
    except ValueError as error:
        raise NotJson(str(error)) from error


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    entries: dict[str, Json] = {}
    for key, value in pairs:
        if key in entries:
            raise NotJson(f"the key '{key}' stands twice in one object")
        entries[key] = value
    return entries


def _constant(name: str) -> Json:
    raise NotJson(f"{name} is not a number")


def _float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise NotJson(f"{digits} is too large a number")
    return number
