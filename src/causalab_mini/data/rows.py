"""What the cells of a table mean: a row's id, a role's text, an answer.

Raises `DataRefusal` with an empty path, which the caller prefixes; every refusal names the rows, all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from causalab_mini.data.chats import SHAPE, chat
from causalab_mini.data.fields import ABSENT, Cell, FieldPath, reach
from causalab_mini.data.formats import numbered
from causalab_mini.data.tables import Table
from causalab_mini.errors import DataRefusal, Problem, suggest
from causalab_mini.vocabulary.message import Chat
from causalab_mini.vocabulary.reasons import Reason

EXAMPLE_ID = "example_id"


@dataclass(frozen=True)
class _Fault:
    """A way a cell can be wrong: the test, and what the message says of the rows it is true of."""

    holds: Callable[[Cell], bool]
    sentence: str
    hint: str | None = None


def example_ids(table: Table) -> tuple[str, ...]:
    """What identifies each row: its `example_id` as text, or the row's number where no row has one.

    Ids are strings or integers. Refused: an id of another kind, a missing one beside others, and duplicates.
    """
    cells = [row.get(EXAMPLE_ID, ABSENT) for row in table.rows]
    if all(cell is ABSENT for cell in cells):
        return tuple(str(number) for number in range(len(cells)))
    ids = [_identifier(cell) for cell in cells]
    strange = [number for number, name in enumerate(ids) if name is None]
    if strange:
        message = f"'{table.ref}': {numbered(strange)} {_has(strange)} no '{EXAMPLE_ID}' that is a text or an integer"
        raise _refusal(message, f"give every row its own {EXAMPLE_ID}, or none")
    names = [name for name in ids if name is not None]
    seats: dict[str, list[int]] = {}
    for number, name in enumerate(names):
        seats.setdefault(name, []).append(number)
    twice = [f"'{name}' is {numbered(numbers)}" for name, numbers in seats.items() if len(numbers) > 1]
    if twice:
        more = f"; and {len(twice) - 5} more" if len(twice) > 5 else ""
        message = f"'{table.ref}' has duplicate example_ids: {'; '.join(twice[:5])}{more}"
        raise _refusal(message, f"give every row its own {EXAMPLE_ID}")
    return tuple(names)


def prompts(table: Table, field: FieldPath) -> tuple[str | Chat, ...]:
    """The text or the chat of a role in every row. Refused where a row has neither."""
    cells = cells_of(table, field)
    found = [chat(cell) if isinstance(cell, list) else cell for cell in cells]
    faults = (
        _Fault(lambda cell: cell is ABSENT, "no '{field}'"),
        _Fault(_is_blank, "an empty prompt in '{field}'"),
        _Fault(_is_no_text, "no text in '{field}'"),
        _Fault(_is_half, "half a surrogate pair in '{field}'"),
    )
    problems: list[Problem] = []
    for fault in faults:
        rows = [number for number, cell in enumerate(cells) if fault.holds(cell)]
        if rows:
            said = fault.sentence.format(field=field)
            problems.append(Problem("", f"'{table.ref}': {_named(table, rows)} {_has(rows)} {said}", fault.hint))
    malformed: dict[str, list[int]] = {}
    for number, (cell, made) in enumerate(zip(cells, found, strict=True)):
        if isinstance(cell, list) and isinstance(made, str):
            malformed.setdefault(made, []).append(number)
    for said, rows in malformed.items():
        message = f"'{table.ref}': {_named(table, rows)} {_has(rows)} {said} in '{field}'"
        problems.append(Problem("", message, _way_out(cells[rows[0]], field)))
    if problems:
        raise DataRefusal(problems)
    return tuple(prompt for prompt in found if isinstance(prompt, str | tuple))


def answers(table: Table, column: FieldPath) -> tuple[str | int | Reason, ...]:
    """The answer cells of `column`, as they stand; an empty or absent one is EMPTY_CELL.

    Refused: a column that no row has, and a cell that is neither text nor an integer.
    """
    cells = cells_of(table, column)
    strange = [number for number, cell in enumerate(cells) if not (_is_empty(cell) or _is_answer(cell))]
    if strange:
        message = f"'{table.ref}': {_named(table, strange)} {_has(strange)} no text and no integer in '{column}'"
        raise _refusal(message, "an answer is one text, or one token id")
    return tuple(cell if _is_answer(cell) else Reason.EMPTY_CELL for cell in cells)


def cells_of(table: Table, field: FieldPath) -> list[Cell]:
    """The cell of `field` in every row, ABSENT where a row has none. Refused where no row has one."""
    cells = [field.get(row) for row in table.rows]
    if all(cell is ABSENT for cell in cells):
        others = _alternatives(table, field)
        hint = suggest(str(field), others, "columns") if others else "its lists are empty: fill them, or name a column"
        raise _refusal(f"no row of '{table.ref}' has a column '{field}'", hint)
    return cells


def _alternatives(table: Table, field: FieldPath) -> list[str]:
    """What could have been meant: the keys at the deepest part of the path that some row has."""
    for depth in range(len(field.parts) - 1, 0, -1):
        before = field.parts[:depth]
        found = [cell for row in table.rows if (cell := reach(row, before)) is not ABSENT]
        keys = {key for cell in found if isinstance(cell, dict) for key in cell}
        longest = max((len(cell) for cell in found if isinstance(cell, list)), default=0)
        parts = [*sorted(keys), *range(longest)]
        paths = [FieldPath((*before, part)) for part in parts]
        if paths or any(found):
            return [str(path) for path in paths] or [str(FieldPath(before))]
        if found:
            return []
    return list(table.columns)


def _identifier(cell: Cell) -> str | None:
    if isinstance(cell, bool):
        return None
    if isinstance(cell, int):
        return str(cell)
    return cell if isinstance(cell, str) and cell.strip() else None


def _is_blank(cell: Cell) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _is_empty(cell: Cell) -> bool:
    return cell is ABSENT or _is_blank(cell)


def _is_answer(cell: Cell) -> TypeGuard[str | int]:
    return (isinstance(cell, str) and bool(cell.strip())) or (isinstance(cell, int) and not isinstance(cell, bool))


def _way_out(cell: Cell, field: FieldPath) -> str:
    if isinstance(cell, list) and cell and isinstance(cell[0], str | list):
        return f"name one entry of the list, such as '{field}[0]'"
    return SHAPE


def _is_no_text(cell: Cell) -> bool:
    return isinstance(cell, bool | int | float | dict)


def _is_half(cell: Cell) -> bool:
    return isinstance(cell, str) and any("\ud800" <= char <= "\udfff" for char in cell)


def _named(table: Table, rows: Sequence[int]) -> str:
    """`row 2 ('norway')`, where rows have ids; the numbers alone where there are many or none."""
    ids = [_identifier(table.rows[number].get(EXAMPLE_ID, ABSENT)) for number in rows]
    if len(rows) > 3 or any(name is None for name in ids):
        return numbered(rows)
    return " and ".join(f"row {number} ('{name}')" for number, name in zip(rows, ids, strict=True))


def _has(rows: Sequence[int]) -> str:
    return "has" if len(rows) == 1 else "have"


def _refusal(message: str, hint: str | None = None) -> DataRefusal:
    return DataRefusal(Problem("", message, hint))
