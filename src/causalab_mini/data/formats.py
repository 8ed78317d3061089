"""The four ways to write a table: `.json`, `.jsonl`, `.csv`, `.parquet`, each to rows of strict JSON values.

Knows bytes; refuses to know references and splits. Only a `.parquet` table imports anything heavy.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias, cast

from causalab_mini.data import strict
from causalab_mini.data.strict import Json
from causalab_mini.errors import DataRefusal, Problem

Row: TypeAlias = Mapping[str, Json]

_SHOWN = 5
_ARRAY = "a table is a JSON array of objects"


def rows(table: str, path: Path, content: bytes) -> tuple[Row, ...]:
    """The rows of the table in `path`, whose bytes are `content`. Refused where it is none, or has none."""
    found = _READERS[path.suffix](table, path, content)
    if not found:
        raise _refusal(f"'{table}' has no rows")
    return found


def numbered(rows: Sequence[int], noun: str = "row") -> str:
    """`row 3`, `rows 0, 2 and 5`, `rows 0, 1, 2, 3, 4 and 7 more`."""
    if len(rows) == 1:
        return f"{noun} {rows[0]}"
    if len(rows) > _SHOWN:
        return f"{noun}s {', '.join(map(str, rows[:_SHOWN]))} and {len(rows) - _SHOWN} more"
    return f"{noun}s {', '.join(map(str, rows[:-1]))} and {rows[-1]}"


def _json(table: str, _: Path, content: bytes) -> tuple[Row, ...]:
    """One array of objects."""
    try:
        parsed = strict.parse(content)
    except strict.NotJson as error:
        raise _refusal(f"'{table}' is not JSON: {error}") from error
    if not isinstance(parsed, list):
        raise _refusal(f"'{table}' is {_kind(parsed)}, not an array of rows", _ARRAY)
    found = tuple(row for row in parsed if isinstance(row, dict))
    if len(found) != len(parsed):
        strange = [number for number, row in enumerate(parsed) if not isinstance(row, dict)]
        message = f"'{table}': {numbered(strange)} {'is' if len(strange) == 1 else 'are'} not an object"
        raise _refusal(f"{message} but {_kind(parsed[strange[0]])}", _ARRAY)
    return found


def _lines(table: str, _: Path, content: bytes) -> tuple[Row, ...]:
    """One object a line. Every line that is none is told, by its number."""
    found: list[Row] = []
    problems: list[Problem] = []
    for number, line in enumerate(content.rstrip().split(b"\n"), start=1) if content.strip() else ():
        said: str | None = None
        try:
            parsed = strict.parse(line, number) if line.strip() else None
        except strict.NotJson as error:
            said = f"is not JSON: {error}"
        else:
            if isinstance(parsed, dict):
                found.append(parsed)
            else:
                said = f"is {_kind(parsed)}, not an object" if line.strip() else "is empty"
        if said is not None:
            problems.append(Problem("", f"'{table}': line {number} {said}", "a .jsonl table is one object a line"))
    if problems:
        rest = len(problems) - _SHOWN
        more = [Problem("", f"'{table}': {rest} more lines are no objects")] if rest > 0 else []
        raise DataRefusal([*problems[:_SHOWN], *more])
    return tuple(found)


def _csv(table: str, _: Path, content: bytes) -> tuple[Row, ...]:
    """Columns named in the first line. Every cell is a text as it stands: none is guessed to be a number or a gap."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refusal(f"'{table}': byte {error.start} is not UTF-8") from error
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    records: list[tuple[int, list[str]]] = []
    try:
        records.extend((reader.line_num, record) for record in reader if record)
    except csv.Error as error:
        raise _refusal(
            f"'{table}' is not CSV: line {reader.line_num}: {error}", "quote a cell with commas in it"
        ) from error
    if not records:
        return ()
    names = records[0][1]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice or not all(name.strip() for name in names):
        found = f"two columns '{twice[0]}'" if twice else "a column without a name"
        raise _refusal(f"'{table}' has {found}", "its first line names the columns, each once")
    ragged = [line for line, record in records[1:] if len(record) != len(names)]
    if ragged:
        wrong = "does not have" if len(ragged) == 1 else "do not have"
        message = f"'{table}': {numbered(ragged, 'line')} {wrong} {len(names)} cells, one for each column"
        raise _refusal(message, "quote a cell with commas in it")
    return tuple(dict(zip(names, record, strict=True)) for _, record in records[1:])


def _parquet(table: str, path: Path, _: bytes) -> tuple[Row, ...]:
    """Read by `datasets`, which leaves nothing behind. Cells are what JSON has: no dates, bytes or numbers like NaN."""
    import datasets

    with TemporaryDirectory() as scratch:
        try:
            stream = datasets.load_dataset(
                "parquet", data_files=[str(path)], split="train", streaming=True, cache_dir=scratch
            )
            found = [dict(row) for row in cast(Iterable[Mapping[str, object]], stream)]
        except Exception as error:
            # Arrow's errors share no base that a light import could name.
            raise _refusal(f"'{table}' is not a parquet table: {_first_line(error)}") from error
    strange: dict[str, list[int]] = {}
    for number, row in enumerate(found):
        for column, cell in row.items():
            said = _no_json(cell)
            if said is not None:
                strange.setdefault(f"{said} in '{column}'", []).append(number)
    if strange:
        raise DataRefusal(
            [
                Problem("", f"'{table}': {numbered(rows)} {'has' if len(rows) == 1 else 'have'} {said}", _CELLS)
                for said, rows in strange.items()
            ]
        )
    return tuple(cast(Row, row) for row in found)


_CELLS = "cells are texts, numbers, truth values, lists, objects or null"
_READERS: Mapping[str, Callable[[str, Path, bytes], tuple[Row, ...]]] = {
    ".json": _json,
    ".jsonl": _lines,
    ".csv": _csv,
    ".parquet": _parquet,
}


def _no_json(cell: object) -> str | None:
    """What a cell is, if JSON has no such value."""
    match cell:
        case None | bool() | int() | str():
            return None
        case float():
            return None if math.isfinite(cell) else f"{cell}, which is no number,"
        case list():
            return next((said for item in cast(list[object], cell) if (said := _no_json(item))), None)
        case dict():
            return next((said for item in cast(dict[str, object], cell).values() if (said := _no_json(item))), None)
        case _:
            return f"a {type(cell).__name__}"


def _kind(value: Json) -> str:
    if value is None:
        return "null"
    kinds: dict[type, str] = {bool: "a truth value", str: "a text", list: "an array", dict: "an object"}
    return kinds.get(type(value), "a number")


def _first_line(error: Exception) -> str:
    cause = error.__cause__ or error
    return (str(cause) or type(cause).__name__).splitlines()[0]


def _refusal(message: str, hint: str | None = None) -> DataRefusal:
    return DataRefusal(Problem("", message, hint))
