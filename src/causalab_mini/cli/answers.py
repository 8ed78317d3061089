"""`data --model`: how the cells of a table's answer columns become tokens, and which rows would be refused.

Knows tables and tokenizers; refuses to know documents.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from causalab_mini.checkpoint.answers import AnswerProblem
from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.data.fields import ABSENT, Cell, FieldPath
from causalab_mini.data.formats import numbered
from causalab_mini.data.rows import cells_of
from causalab_mini.data.tables import Table
from causalab_mini.errors import DataRefusal, Problem, suggest
from causalab_mini.vocabulary.metric import TokenForm

SHOWN = 20
"""How many values of a column a page shows."""


@dataclass(frozen=True)
class Token:
    """A token of an answer."""

    id: int
    text: str


@dataclass(frozen=True)
class Answer:
    """How one cell tokenizes. An answer is one token, or has a problem that refuses its row; an empty cell has none."""

    column: str
    row: int
    value: str | int | None
    tokens: tuple[Token, ...] = ()
    problem: str | None = None

    @property
    def empty(self) -> bool:
        """Whether the cell only makes its row ineligible."""
        return self.value is None and self.problem is None

    def as_json(self) -> dict[str, object]:
        """Its facts; `token` is the one token there has to be."""
        return {
            "column": self.column,
            "row": self.row,
            "value": self.value,
            "token": self.tokens[0].id if self.tokens and self.problem is None else None,
            "tokens": [vars(token) for token in self.tokens],
            "problem": self.problem,
        }


def columns_of(table: Table, named: Sequence[str]) -> list[FieldPath]:
    """The columns to look at: those `named`, else all whose name says answer. Refused where there are none."""
    chosen = named or [column for column in table.columns if "answer" in column.lower()]
    if not chosen:
        message = f"'{table.ref}' has no column with 'answer' in its name"
        raise DataRefusal(Problem("", message, f"--column names one; {suggest('answer', table.columns, 'columns')}"))
    return [FieldPath.parse(column) for column in chosen]


def answers(table: Table, columns: Sequence[FieldPath], checkpoint: Checkpoint, form: TokenForm) -> list[Answer]:
    """Every cell of `columns`, column by column. Refused where no row has a column."""
    return [
        _answer(str(column), row, cell, checkpoint, form)
        for column in columns
        for row, cell in enumerate(cells_of(table, column))
    ]


def refused(found: Sequence[Answer]) -> dict[str, list[int]]:
    """The rows that a metric over a column would refuse, by column, where there are any."""
    rows: dict[str, list[int]] = {}
    for answer in found:
        if answer.problem is not None:
            rows.setdefault(answer.column, []).append(answer.row)
    return rows


def page(found: Sequence[Answer]) -> Iterator[str]:
    """Lines for people: each column's counts, then its values, those that are refused first."""
    for column in dict.fromkeys(answer.column for answer in found):
        ours = [answer for answer in found if answer.column == column]
        wrong = [answer for answer in ours if answer.problem is not None]
        empty = [answer for answer in ours if answer.empty]
        fit = [answer for answer in ours if answer.problem is None and not answer.empty]
        counts = [f"{len(fit)} of {len(ours)} rows are one token"]
        counts += [f"{len(empty)} empty"] if empty else []
        counts += [f"{len(wrong)} would be refused"] if wrong else []
        yield f"    {column}: {', '.join(counts)}"
        lines = [f"refused: {said}  {numbered(rows)}" for said, rows in _grouped(wrong)]
        lines += [f"{said}  {numbered(rows)}" for said, rows in _grouped(fit)]
        yield from (f"      {line}" for line in lines[:SHOWN])
        if len(lines) > SHOWN:
            yield f"      and {len(lines) - SHOWN} more values, which --json lists"


def _answer(column: str, row: int, cell: Cell, checkpoint: Checkpoint, form: TokenForm) -> Answer:
    if cell is ABSENT or cell is None or (isinstance(cell, str) and not cell.strip()):
        return Answer(column, row, None)
    if not isinstance(cell, str | int) or isinstance(cell, bool):
        return Answer(column, row, None, problem=f"{json.dumps(cell, ensure_ascii=False)} is no text and no integer")
    found = checkpoint.answer(cell, form, "")
    ids = found.tokens if isinstance(found, AnswerProblem) else (found,)
    tokens = tuple(Token(token, checkpoint.token_text(token)) for token in ids)
    return Answer(column, row, cell, tokens, found.message if isinstance(found, AnswerProblem) else None)


def _grouped(found: Sequence[Answer]) -> list[tuple[str, list[int]]]:
    """What to say of each value, and the rows that have it."""
    rows: dict[str, list[int]] = {}
    for answer in found:
        tokens = ", ".join(f"{token.text!r} ({token.id})" for token in answer.tokens)
        said = f"{answer.value!r}: {tokens}" if answer.problem is None else answer.problem
        rows.setdefault(said, []).append(answer.row)
    return list(rows.items())
