"""A table: rows that are JSON objects, and the digest of the bytes they came from.

Knows files, splits and columns; refuses to know what a cell means.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from causalab_mini.data import formats, refs
from causalab_mini.data.formats import Row
from causalab_mini.errors import DataRefusal, Problem, suggest

SPLIT = "split"


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
    """The table `ref` names under `root`. Refused unless it is one list of objects with rows in the split."""
    parsed = refs.parse(ref)
    path = refs.locate(parsed, root)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _refusal(f"'{parsed.table}' cannot be read: {error.strerror or error}") from error
    rows = formats.rows(parsed.table, path, content)
    if parsed.split is not None:
        rows = _split(parsed.table, rows, parsed.split)
    return Table(ref, rows, hashlib.sha256(content).hexdigest(), path)


def splits_of(rows: Sequence[Row]) -> tuple[str, ...]:
    """The values of the column `split` in `rows`, sorted."""
    return tuple(sorted({value for row in rows if isinstance(value := row.get(SPLIT), str)}))


def _split(table: str, rows: tuple[Row, ...], split: str) -> tuple[Row, ...]:
    kept = tuple(row for row in rows if row.get(SPLIT) == split)
    if kept:
        return kept
    known = splits_of(rows)
    if not known:
        raise _refusal(f"'{table}' has no split '{split}': no row has a column '{SPLIT}'", "leave '#…' out")
    raise _refusal(f"no row of '{table}' is in the split '{split}'", suggest(split, known, "splits"))


def _refusal(message: str, hint: str | None = None) -> DataRefusal:
    return DataRefusal(Problem("", message, hint))
