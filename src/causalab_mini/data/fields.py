"""A path to a cell of a row: `input`, `a.b`, `counterfactual_inputs[0]`.

Knows spelling and look-up; refuses to know what a cell means.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal, TypeAlias

from causalab_mini.data.formats import Row
from causalab_mini.data.strict import Json
from causalab_mini.errors import DataRefusal, Problem, join

_NAME = re.compile(r"[^.\[\]]+")
_INDEX = re.compile(r"\[([0-9]+)\]")


class Absent(Enum):
    """A cell that is not there, as against one that is null."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT
Cell: TypeAlias = Json | Literal[Absent.ABSENT]


@dataclass(frozen=True)
class FieldPath:
    """The parts of a path, a name first; numbers index lists."""

    parts: tuple[str | int, ...]

    @classmethod
    def parse(cls, path: str) -> FieldPath:
        """The path spelled `path`. Refused with the place where it stops being one."""
        parts: list[str | int] = []
        here = 0
        while here < len(path) or not parts:
            named = not parts or path[here] == "."
            start = here + bool(parts) if named else here
            found = (_NAME if named else _INDEX).match(path, start)
            if found is None:
                message = f"'{path}' is not a column path: {_expected(path, start, named)}"
                raise DataRefusal(Problem("", message, "paths look like input, a.b or inputs[0]"))
            parts.append(found[0] if named else int(found[1]))
            here = found.end()
        return cls(tuple(parts))

    @property
    def column(self) -> str:
        """The top-level column it starts at."""
        return str(self.parts[0])

    def get(self, row: Row) -> Cell:
        """The cell of `row`, or ABSENT."""
        return reach(row, self.parts)

    def __str__(self) -> str:
        return join(*self.parts)


def reach(row: Row, parts: tuple[str | int, ...]) -> Cell:
    """The cell of `row` at `parts`, or ABSENT."""
    cell: Cell = dict(row)
    for part in parts:
        cell = _step(cell, part)
    return cell


def _step(cell: Cell, part: str | int) -> Cell:
    if isinstance(cell, dict) and isinstance(part, str):
        return cell.get(part, ABSENT)
    if isinstance(cell, list) and isinstance(part, int) and part < len(cell):
        return cell[part]
    return ABSENT


def _expected(path: str, at: int, named: bool) -> str:
    rest = f"'{path[at:]}' stands" if at < len(path) else "nothing follows"
    wanted = "a name" if named else "'.name' or '[number]'"
    return f"{rest} where {wanted} belongs"
