"""data: what is in a table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from causalab_mini.cli.options import DEFAULT_DATA_ROOT, AsJson, DataRoot, Debug, voice_of

if TYPE_CHECKING:
    from causalab_mini.data.tables import Table

EXAMPLES = (
    "causalab-mini data weekdays/said",
    "causalab-mini data weekdays/data#test --json",
    "causalab-mini data weekdays/train --model causalab-mini/weekdays-llama",
)


class Form(StrEnum):
    """The token forms that look at no prompt."""

    SPACED = "space_prefixed"
    BARE = "bare"


@dataclass(frozen=True)
class Answer:
    """How one answer cell tokenizes: its form's one token, or why it is not one."""

    column: str
    row: int
    value: str
    token: int | None
    problem: str | None


def data(
    context: typer.Context,
    ref: Annotated[str, typer.Argument(metavar="REF", help="dir/table or dir/table#split.", show_default=False)],
    data_root: DataRoot = DEFAULT_DATA_ROOT,
    model: Annotated[
        str | None, typer.Option("--model", metavar="KEY", help="Show how each answer tokenizes.", show_default=False)
    ] = None,
    form: Annotated[Form, typer.Option("--token-form", help="How a cell's text becomes a token.")] = Form.SPACED,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show a table's rows, columns, empty cells, splits and first row.

    With --model, also how each cell of the columns whose name ends in "answer" becomes a token.
    """
    from causalab_mini.data.tables import load

    table = load(ref, data_root)
    empty = {column: count for column in table.columns if (count := _empty(table, column))}
    answers = [] if model is None else list(_answers(table, model, form))
    lines = [f"{ref}: {len(table.rows)} rows", f"  columns: {', '.join(table.columns)}"]
    if empty:
        lines.append(f"  empty:   {', '.join(f'{column} ({count} rows)' for column, count in empty.items())}")
    lines.append(f"  splits:  {', '.join(table.splits) or 'none'}")
    lines.append(f"  sample:  {json.dumps(table.rows[0], ensure_ascii=False)}")
    if model is not None:
        lines.append(f"  answers: {model}, {form.value}")
        lines += [f"    {found.column}[{found.row}] {found.value!r}: {_said(found)}" for found in answers]
    voice_of(context).answer(
        "\n".join(lines),
        {
            "ok": True,
            "ref": ref,
            "rows": len(table.rows),
            "columns": list(table.columns),
            "empty": empty,
            "splits": list(table.splits),
            "sha256": table.sha256,
            "sample": table.rows[0],
            **({} if model is None else {"answers": [vars(found) for found in answers]}),
        },
    )


def _empty(table: Table, column: str) -> int:
    """How many rows have nothing in `column`: absent, null or blanks."""
    cells = (row.get(column) for row in table.rows)
    return sum(cell is None or (isinstance(cell, str) and not cell.strip()) for cell in cells)


def _answers(table: Table, key: str, form: Form) -> Iterator[Answer]:
    from causalab_mini.checkpoint.answers import AnswerProblem
    from causalab_mini.checkpoint.resolve import resolve

    checkpoint = resolve(key)
    for column in table.columns:
        if not column.endswith("answer"):
            continue
        for number, row in enumerate(table.rows):
            cell = row.get(column)
            if not isinstance(cell, str) or not cell.strip():
                continue
            found = checkpoint.answer(cell, form.value, "")
            if isinstance(found, AnswerProblem):
                yield Answer(column, number, cell, None, found.message)
            else:
                yield Answer(column, number, cell, found, None)


def _said(found: Answer) -> str:
    return f"token {found.token}" if found.problem is None else found.problem
