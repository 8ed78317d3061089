"""data: what is in a table."""

from __future__ import annotations

import json
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
    "causalab-mini data weekdays/said --model causalab-mini/weekdays-llama --column said",
)


INPUT = "input"
"""The column in which prompts stand, if a table has it."""


class Form(StrEnum):
    """The token forms that look at no prompt."""

    SPACED = "space_prefixed"
    BARE = "bare"
    ID = "id"


def data(
    context: typer.Context,
    ref: Annotated[str, typer.Argument(metavar="REF", help="dir/table or dir/table#split.", show_default=False)],
    data_root: DataRoot = DEFAULT_DATA_ROOT,
    model: Annotated[
        str | None, typer.Option("--model", metavar="KEY", help="Show how each answer tokenizes.", show_default=False)
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option("--column", metavar="PATH", help="With --model, look at this column; may be repeated."),
    ] = None,
    form: Annotated[Form, typer.Option("--token-form", help="How a cell's text becomes a token.")] = Form.SPACED,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show a table's rows, columns, empty cells, splits and first row.

    Ids that are no ids, and a prompt in the column "input" that is none, are refused here as they are by run.

    With --model, also how each answer becomes a token, and which rows would be refused: in the columns named by
    --column, or else in all that have "answer" in their name.
    """
    from causalab_mini.data.fields import FieldPath
    from causalab_mini.data.rows import example_ids, prompts
    from causalab_mini.data.tables import load

    table = load(ref, data_root)
    example_ids(table)
    if INPUT in table.columns:
        prompts(table, FieldPath((INPUT,)))
    empty = {column: count for column in table.columns if (count := _empty(table, column))}
    lines = [f"{ref}: {len(table.rows)} rows", f"  columns: {', '.join(table.columns)}"]
    if empty:
        lines.append(f"  empty:   {', '.join(f'{column} ({count} rows)' for column, count in empty.items())}")
    lines.append(f"  splits:  {', '.join(table.splits) or 'none'}")
    lines.append(f"  sample:  {json.dumps(table.rows[0], ensure_ascii=False)}")
    facts: dict[str, object] = {}
    if model is not None:
        from causalab_mini.checkpoint.resolve import resolve
        from causalab_mini.cli.answers import answers, columns_of, page, refused

        found = answers(table, columns_of(table, column or ()), resolve(model), form.value)
        lines += [f"  answers: {model}, {form.value}", *page(found)]
        facts = {"answers": [answer.as_json() for answer in found], "refused": refused(found)}
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
            **facts,
        },
    )


def _empty(table: Table, column: str) -> int:
    """How many rows have nothing in `column`: absent, null or blanks."""
    cells = (row.get(column) for row in table.rows)
    return sum(cell is None or (isinstance(cell, str) and not cell.strip()) for cell in cells)
