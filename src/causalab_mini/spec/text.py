"""Bytes to JSON, strictly: one object, no duplicate keys, no numbers JSON cannot carry; and the line of every path.

Knows JSON and nothing of documents. `parse` reads a good text with the standard parser and only scans by itself
(`spec.scanner`) where something is wrong; `Lines` scans when the first line is asked for.
"""

from __future__ import annotations

import json
import math
import re
from functools import cached_property

from causalab_mini.errors import Problem, SyntaxRefusal
from causalab_mini.spec.scanner import DEPTH, WIDEST, Scan, scan

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
JsonObject = dict[str, Json]

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class _Suspect(ValueError):
    """The text has something the scanner must name."""


def _object(pairs: list[tuple[str, Json]]) -> JsonObject:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _Suspect
    return members


def _integer(digits: str) -> int:
    if len(digits) > 20 or abs(int(digits)) > WIDEST:
        raise _Suspect
    return int(digits)


def _number(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise _Suspect
    return value


def _constant(word: str) -> float:
    raise _Suspect(word)


def _deep(value: Json) -> bool:
    level: list[Json] = [value]
    for _ in range(DEPTH + 1):
        if not level:
            return False
        inside = [item for item in level if isinstance(item, dict | list)]
        level = [child for item in inside for child in (item.values() if isinstance(item, dict) else item)]
    return bool(level)


def parse(text: bytes) -> tuple[JsonObject, Lines]:
    """The one JSON object in `text`, and where its parts stand.

    Raises `SyntaxRefusal` with every duplicate key and impossible number, and the first break of the grammar.
    """
    decoded = _decoded(text)
    try:
        value: Json = json.loads(
            decoded,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_number,
            parse_constant=_constant,
        )
        suspect = _deep(value) or _SURROGATE.search(decoded) is not None
    except (ValueError, RecursionError):
        value, suspect = None, True
    if suspect:
        problems = scan(decoded).problems
        if problems:
            raise SyntaxRefusal(sorted(problems, key=lambda problem: problem.line or 0))
    if not isinstance(value, dict):
        found = "a list" if isinstance(value, list) else json.dumps(value)
        raise SyntaxRefusal(
            Problem("", f"a document is one JSON object, and {found} was found", "put it between { and }", line=1)
        )
    return value, Lines(decoded)


def _decoded(text: bytes) -> str:
    try:
        decoded = text.decode("utf-8")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        found = f"byte 0x{text[error.start]:02x} at offset {error.start} is not UTF-8 text"
        raise SyntaxRefusal(Problem("", found, "save the file as UTF-8", line=line)) from None
    if decoded.startswith("\ufeff"):
        raise SyntaxRefusal(
            Problem("", "the file begins with a byte order mark", "save it as UTF-8 without one", line=1)
        )
    if not decoded.strip():
        raise SyntaxRefusal(Problem("", "the document is empty", "a document is one JSON object", line=1))
    return decoded


class Lines:
    """The line of every path of a text."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _scan(self) -> Scan:
        return scan(self._text)

    def of(self, path: str) -> int | None:
        """The line where `path` stands, or else where its nearest ancestor does; None for no place at all ("")."""
        while path:
            line = self._scan.lines.get(path)
            if line is not None:
                return line
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
            if not path:
                return self._scan.lines.get("")
        return None
