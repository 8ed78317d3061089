"""The text of a variable in every row, for a role's field.

For a field that starts at column `c`, a variable is looked up in the sibling `c_variables` at the same rest of the
path, then as a top-level column.
"""

from __future__ import annotations

from causalab_mini.data.fields import ABSENT, Cell, FieldPath, reach
from causalab_mini.data.formats import numbered
from causalab_mini.data.tables import Table
from causalab_mini.errors import DataRefusal, Problem, suggest


def lookup(table: Table, field: FieldPath, variable: str) -> tuple[str | None, ...]:
    """The text of `variable` in every row; None in a row where it is absent, null or blank.

    An integer counts as its digits. Refused, naming both places, where no row has it in either.
    """
    sibling = FieldPath((f"{field.column}_variables", *field.parts[1:]))
    cells: list[Cell] = []
    for row in table.rows:
        beside = reach(row, (*sibling.parts, variable))
        cells.append(row.get(variable, ABSENT) if beside is ABSENT else beside)
    if all(cell is ABSENT for cell in cells):
        places = f"not in '{sibling}', and not as a column '{variable}'"
        message = f"no row of '{table.ref}' has a variable '{variable}': {places}"
        raise DataRefusal(Problem("", message, suggest(variable, _known(table, sibling), "variables and columns")))
    strange = [number for number, cell in enumerate(cells) if _text(cell) is None]
    if strange:
        message = f"'{table.ref}': the variable '{variable}' is not a text in {numbered(strange)}"
        raise DataRefusal(Problem("", message, "a variable is a text or an integer"))
    return tuple(_text(cell) or None for cell in cells)


def _text(cell: Cell) -> str | None:
    """The cell's text, "" where there is none; None where the cell is of another kind."""
    if cell is ABSENT or cell is None:
        return ""
    if isinstance(cell, str):
        return cell if cell.strip() else ""
    return str(cell) if isinstance(cell, int) and not isinstance(cell, bool) else None


def _known(table: Table, sibling: FieldPath) -> list[str]:
    beside = [sibling.get(row) for row in table.rows]
    return sorted({key for cell in beside if isinstance(cell, dict) for key in cell} | set(table.columns))
