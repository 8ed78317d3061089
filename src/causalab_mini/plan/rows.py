"""The rows of a document as tokens, windows and answers: each made once, however many points ask for it.

Raises refusals whose paths are relative to whoever asks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import cast

from causalab_mini.checkpoint.answers import AnswerProblem
from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.checkpoint.text import Text
from causalab_mini.data import rows as cells
from causalab_mini.data import tables, variables
from causalab_mini.data.fields import FieldPath
from causalab_mini.errors import DataRefusal, PlanRefusal, Problem
from causalab_mini.frames.prompt import PREFIX, has_turn, spaces_itself, warnings_of, window
from causalab_mini.frames.window import Window
from causalab_mini.plan.nodes import Batch
from causalab_mini.spec.positions import Position
from causalab_mini.vocabulary.metric import TokenForm
from causalab_mini.vocabulary.reasons import Reason

Answers = tuple[int | Reason, ...]

SHOWN = 5
"""How many rows a message names before it stops counting them out."""


class Rows:
    """Everything the rows of a document become, by what asks for it. `limit`: how many of each table there are."""

    def __init__(self, checkpoint: Checkpoint, root: Path, limit: int | None = None) -> None:
        self._limit = limit
        self._checkpoint = checkpoint
        self._root = root
        self.warnings: dict[str, None] = {}
        self._digests: dict[str, str] = {}
        self._refused: set[str] = set()
        self.table = cache(self._table)
        self.batch = cache(self._batch)
        self.texts = cache(self._texts)
        # Frozen nodes have a hash, which type checkers do not see.
        self.windows = cast(Callable[[str, str, Position], tuple[Window, ...]], cache(self._windows))
        self.answers = cache(self._answers)
        self.forced = cache(self._forced)
        self.example_ids = cache(self._example_ids)

    def used(self) -> tuple[tuple[str, str], ...]:
        """Every dataset ref that was loaded and the SHA-256 of its table's bytes, sorted."""
        return tuple(sorted(self._digests.items()))

    def _table(self, ref: str) -> tables.Table:
        """The rows of a dataset ref."""
        if ref in self._refused:
            raise DataRefusal(())  # What is wrong with the table has been told.
        try:
            table = tables.load(ref, self._root)
        except DataRefusal:
            self._refused.add(ref)
            raise
        self._digests[ref] = table.sha256
        return replace(table, rows=table.rows[: self._limit])

    def _example_ids(self, ref: str) -> tuple[str, ...]:
        return cells.example_ids(self.table(ref))

    def _batch(self, ref: str, field: str) -> Batch:
        """The texts of one column as tokens."""
        table = self.table(ref)
        prompts = cells.prompts(table, FieldPath.parse(field))
        rows: list[Text] = []
        wrong: dict[Problem, list[str]] = {}
        odd: dict[str, list[str]] = {}
        for example_id, prompt in zip(self.example_ids(ref), prompts, strict=True):
            try:
                text = self._checkpoint.encode(prompt)
            except PlanRefusal as refusal:
                for problem in refusal.problems:
                    wrong.setdefault(problem, []).append(f"'{example_id}'")
                continue
            rows.append(text)
            for warning in (*warnings_of(text), *self._markerless(text)):
                odd.setdefault(warning, []).append(f"'{example_id}'")
        for warning, ids in odd.items():
            self.warnings[f"{ref}, row{'s' * (len(ids) > 1)} {listed(ids)}, {field}: {warning}"] = None
        if wrong:
            named = {problem: f"row{'s' * (len(ids) > 1)} {listed(ids)} of {ref}" for problem, ids in wrong.items()}
            raise PlanRefusal([replace(p, message=f"{who}: {p.message}") for p, who in named.items()])
        return Batch(ref, field, tuple(rows))

    def _markerless(self, text: Text) -> tuple[str, ...]:
        """A warning where a chat lacks the prefix that the tokenizer puts before a text."""
        prefix = self._checkpoint.prefix
        if not text.segments or text.prefix == len(prefix):
            return ()
        marker = self._checkpoint.decode(prefix)
        return (f"the chat template writes no '{marker}', which the tokenizer puts before a text; nothing is added",)

    def _texts(self, ref: str, field: str, variable: str) -> tuple[str | None, ...]:
        """The rows' values of a scope's variable, None where a row has none."""
        return variables.lookup(self.table(ref), FieldPath.parse(field), variable)

    def _windows(self, ref: str, field: str, pos: Position) -> tuple[Window, ...]:
        """A prompt-frame position in every row, as columns. Refuses a fixed cut that does not fit a row."""
        batch = self.batch(ref, field)
        variable = None if pos.scope is None else pos.scope.variable
        texts = (None,) * len(batch.rows) if variable is None else self.texts(ref, field, variable)
        found = tuple(window(pos, text, value) for text, value in zip(batch.rows, texts, strict=True))
        segment = None if pos.scope is None else pos.scope.segment
        if segment not in (None, PREFIX) and not any(has_turn(text, segment) for text in batch.rows):
            turns = sorted({turn.name for text in batch.rows for turn in text.segments})
            there = f"the turns are {', '.join(turns)}" if turns else "none of them is a chat"
            self.warnings[f"{ref}, {field}: no row has a turn '{segment}'; {there}"] = None
        if not pos.ragged:
            short = [
                f"'{example_id}' ({text.length} tokens)"
                for example_id, text, columns in zip(self.example_ids(ref), batch.rows, found, strict=True)
                if isinstance(columns, Reason)
            ]
            if short:
                message = f"{pos.compact()} does not fit {len(short)} of {len(found)} rows of {ref}: {listed(short)}"
                raise PlanRefusal(Problem("", message, "name a position that every row has, or give it a scope"))
        return found

    def _forced(self, ref: str, column: str) -> tuple[tuple[int, ...] | Reason, ...]:
        """The tokens of a column's text, encoded as it stands, in every row; EMPTY_CELL where there is none."""
        found: list[tuple[int, ...] | Reason] = []
        for example_id, value in zip(self.example_ids(ref), self._cells(ref, column), strict=True):
            if isinstance(value, int):
                message = f"row '{example_id}' of {ref} has the number {value} in '{column}', which is no text to feed"
                raise PlanRefusal(Problem("", message, "write it in quotes"))
            found.append(value if isinstance(value, Reason) else self._checkpoint.tokens(value))
        return tuple(found)

    def _cells(self, ref: str, column: str) -> tuple[str | int | Reason, ...]:
        return cells.answers(self.table(ref), FieldPath.parse(column))

    def _answers(self, ref: str, column: str, form: TokenForm, prompts: Batch) -> Answers:
        """The answer token of every row, or EMPTY_CELL. Refuses an answer that is not one token, showing the tokens."""
        found: list[int | Reason] = []
        wrong: list[tuple[str, AnswerProblem]] = []
        answers = cells.answers(self.table(ref), FieldPath.parse(column))
        for example_id, value, prompt in zip(self.example_ids(ref), answers, prompts.rows, strict=True):
            if isinstance(value, Reason):
                found.append(value)
                continue
            token = self._checkpoint.answer(value, form, prompt.text)
            if isinstance(token, AnswerProblem):
                wrong.append((example_id, token))
            else:
                found.append(token)
        if wrong:
            more = f" (and {len(wrong) - 1} rows more)" if len(wrong) > 1 else ""
            example_id, problem = wrong[0]
            raise PlanRefusal(Problem("", f"row '{example_id}' of {ref}: {problem.message}{more}", problem.hint))
        return tuple(found)

    def warn_of_spaces(self, column: str, prompts: Batch) -> None:
        """A warning where an answer gets a space before it right after a prompt that ends in white space."""
        spaced = [text for text in prompts.rows if spaces_itself(text)]
        if spaced:
            told = f"{len(spaced)} of {len(prompts.rows)} prompts end in {spaced[0].text[-1]!r}"
            put = f"the answers of '{column}' that are looked up there have a space put before them"
            way = '"token_form": "bare" takes them as they stand'
            self.warnings[f"{prompts.ref}, {prompts.field}: {told}, and {put}; {way}"] = None


def listed(items: list[str]) -> str:
    """The first few of `items`, and how many more there are."""
    rest = len(items) - SHOWN
    return ", ".join(items[:SHOWN]) + (f" and {rest} more" if rest > 0 else "")
