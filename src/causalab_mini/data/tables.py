"""A table: rows that are JSON objects, and the digest of the bytes they came from.

Knows files, splits and columns; refuses to know what a cell means.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from causalab_mini.data import refs, strict
from causalab_mini.data.strict import Json
from causalab_mini.errors import DataRefusal, Problem, suggest

Row: TypeAlias = Mapping[str, Json]

SPLIT = "split"
_NAMED = 5


@dataclass(frozen=True)
class Table:
    """The rows a reference stands for, in file order. `sha256` is of the whole file's bytes."""

    ref: str
    rows: tuple[Row, ...]
    sha256: str
    path: Path

    @property
    def columns(self) -> tuple[str, ...]:
        """Every top-level key of any row, sorted."""
        return tuple(sorted({column for row in self.rows for column in row}))

    @property
    def splits(self) -> tuple[str, ...]:
        """The values of the column `split`, sorted."""
        return splits_of(self.rows)


def load(ref: str, root: Path) -> Table:
    """The table `ref` names under `root`. Refused unless it is an array of objects with rows in the split."""
    parsed = refs.parse(ref)
    path = refs.locate(parsed, root)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _refusal(f"'{parsed.table}' cannot be read: {error.strerror or error}") from error
    rows = _rows(parsed.table, content)
    if parsed.split is not None:
        rows = _split(parsed.table, rows, parsed.split)
    return Table(ref, rows, hashlib.sha256(content).hexdigest(), path)


def splits_of(rows: Sequence[Row]) -> tuple[str, ...]:
    """The values of the column `split` in `rows`, sorted."""
    return tuple(sorted({value for row in rows if isinstance(value := row.get(SPLIT), str)}))


def numbered(rows: Sequence[int]) -> str:
    """`row 3`, `rows 0, 2 and 5`, `rows 0, 1, 2, 3, 4 and 7 more`."""
    if len(rows) == 1:
        return f"row {rows[0]}"
    if len(rows) > _NAMED:
        return f"rows {', '.join(map(str, rows[:_NAMED]))} and {len(rows) - _NAMED} more"
    return f"rows {', '.join(map(str, rows[:-1]))} and {rows[-1]}"


def _rows(table: str, content: bytes) -> tuple[Row, ...]:
    try:
        parsed = strict.parse(content)
    except strict.NotJson as error:
        raise _refusal(f"'{table}' is not JSON: {error}") from error
    if not isinstance(parsed, list):
        raise _refusal(f"'{table}' is {_kind(parsed)}, not an array of rows", "a table is a JSON array of objects")
    if not parsed:
        raise _refusal(f"'{table}' has no rows")
    rows = tuple(row for row in parsed if isinstance(row, dict))
    if len(rows) != len(parsed):
        strange = [number for number, row in enumerate(parsed) if not isinstance(row, dict)]
        message = f"'{table}': {numbered(strange)} {'is' if len(strange) == 1 else 'are'} not an object"
        raise _refusal(f"{message} but {_kind(parsed[strange[0]])}", "a table is a JSON array of objects")
    return rows


def _split(table: str, rows: tuple[Row, ...], split: str) -> tuple[Row, ...]:
    kept = tuple(row for row in rows if row.get(SPLIT) == split)
    if kept:
        return kept
    known = splits_of(rows)
    if not known:
        raise _refusal(f"'{table}' has no split '{split}': no row has a column '{SPLIT}'", "leave '#…' out")
    raise _refusal(f"no row of '{table}' is in the split '{split}'", suggest(split, known, "splits"))


def _kind(value: Json) -> str:
    if value is None:
        return "null"
    kinds: dict[type, str] = {bool: "a truth value", str: "a text", list: "an array", dict: "an object"}
    return kinds.get(type(value), "a number")


def _refusal(message: str, hint: str | None = None) -> DataRefusal:
    return DataRefusal(Problem("", message, hint))
