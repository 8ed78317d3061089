"""`explain --rows`: every row's tokens in a strip, one role over the other, and what reads and writes touch.

    score
      W1  write 'patch' at block_output[0] {index:-1} swap(v_cf) in 'patched' on 'base'
      R1  read  'v_cf' at block_output[0] {index:-1} in 'original' on 'counterfactual'
      row 'thursday-monday'
                        prefix  0   1       2    3          4  5          6
        base            <s>     If  ·today  ·is  ·Thursday  ,  ·tomorrow  ·is
          patched                                                         W1
        counterfactual  <s>     If  ·today  ·is  ·Monday    ,  ·tomorrow  ·is
          original                                                        R1

Points that touch the same tokens share their strips. Knows plans; refuses to know terminals, beyond a width and names
of styles.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TextIO

from rich.cells import cell_len

from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.checkpoint.text import Text
from causalab_mini.plan.nodes import Experiment, Forward, Observe
from causalab_mini.plan.rows import listed
from causalab_mini.plan.touched import Tap, alike, prompt_marks, step_marks, visible
from causalab_mini.plan.touched import taps as taps_of
from causalab_mini.vocabulary.reasons import Reason

PLAIN, NAME, FAINT, READ, WRITE, BOTH = "", "bold", "dim", "green", "bold red", "bold magenta"
WIDTH = 110
KEY = "R reads, W writes; · is a space, ↵ a line's end; columns are prompt indices, then +steps, ~ where cut afterwards"
_IDS = 12


@dataclass(frozen=True)
class Piece:
    """Some characters in one style."""

    text: str
    style: str = PLAIN


Line = tuple[Piece, ...]


@dataclass(frozen=True)
class Column:
    """A column of a strip: its heading, each role's token, each forward's marks."""

    head: str
    tokens: tuple[str, ...]
    marks: tuple[tuple[str, ...], ...]

    @property
    def width(self) -> int:
        """The widest of its cells."""
        return max(cell_len(text) for text in (self.head, *self.tokens, *(" ".join(marks) for marks in self.marks)))


def plain(lines: Sequence[Line]) -> str:
    """The lines without styles."""
    return "\n".join("".join(piece.text for piece in line).rstrip() for line in lines)


def painted(lines: Sequence[Line], out: TextIO) -> str:
    """The lines for `out`: in colour on a terminal that has it, plain elsewhere."""
    if not out.isatty():
        return plain(lines)
    from rich.console import Console
    from rich.text import Text as Styled

    console = Console(file=out, highlight=False)
    with console.capture() as said:
        for line in lines:
            console.print(Styled.assemble(*((piece.text, piece.style) for piece in line)), soft_wrap=True)
    return said.get().rstrip("\n")


def room(out: TextIO) -> int:
    """How many cells a line of `out` has."""
    return shutil.get_terminal_size((WIDTH, 0)).columns if out.isatty() else WIDTH


def rows_page(experiment: Experiment, checkpoint: Checkpoint, width: int = WIDTH) -> list[Line]:
    """Every row of every step: legend, strips, and why a row has no tokens for a position."""
    lines: list[Line] = [(Piece(KEY, FAINT),)]
    for labels, observes in alike(experiment):
        taps = list(taps_of(observes))
        path = "/".join(observes[0].path)
        lines.append((Piece(f"{path} of {listed(labels)}" if labels[0] else path, NAME),))
        lines += [(Piece("  "), Piece(f"{tap.mark:<4}", _style([tap.mark])), Piece(tap.legend())) for tap in taps]
        for row, example_id in enumerate(observes[0].example_ids):
            lines.append((Piece(f"  row '{example_id}'", NAME),))
            lines += _row(observes[0], taps, row, checkpoint, width)
    return lines


def _row(observe: Observe, taps: Sequence[Tap], row: int, checkpoint: Checkpoint, width: int) -> Iterator[Line]:
    forwards = sorted(observe.forwards, key=lambda forward: forward.role != "base")
    texts = {forward.role: forward.batch.rows[row] for forward in forwards}
    for role, text in texts.items():
        if text.segments:
            yield from _rendered(role, text)
    columns = list(_columns(texts, forwards, taps, row, checkpoint))
    names = [*(f"    {role}" for role in texts), *(f"      {forward.model}" for forward in forwards)]
    margin = max(cell_len(name) for name in names) + 2
    for block in _blocks(columns, width - margin):
        yield (Piece(" " * margin), *(Piece(_padded(column.head, column), FAINT) for column in block))
        for place, role in enumerate(texts):
            ours = [i for i, forward in enumerate(forwards) if forward.role == role]
            touched = ([mark for i in ours for mark in column.marks[i]] for column in block)
            cells = (
                Piece(_padded(column.tokens[place], column), _style(marks))
                for column, marks in zip(block, touched, strict=True)
            )
            yield (Piece(f"{f'    {role}':<{margin}}", NAME), *cells)
            for i in ours:
                if any(column.marks[i] for column in block):
                    marked = (
                        Piece(_padded(" ".join(column.marks[i]), column), _style(column.marks[i])) for column in block
                    )
                    yield (Piece(f"{f'      {forwards[i].model}':<{margin}}"), *marked)
    for tap in taps:
        window = tap.tap.windows[row]
        if isinstance(window, Reason):
            yield (Piece("    "), Piece(tap.mark, _style([tap.mark])), Piece(f" nowhere: {window}"))


def _rendered(role: str, text: Text) -> Iterator[Line]:
    """A chat as the template writes it, and its first ids."""
    yield (Piece(f"    {role}, rendered", NAME),)
    for line in text.text.splitlines() or [""]:
        yield (Piece(f"      | {line}"),)
    more = f" … {len(text.ids)} in all" if len(text.ids) > _IDS else ""
    yield (Piece(f"      ids {' '.join(map(str, text.ids[:_IDS]))}{more}", FAINT),)


def _columns(
    texts: dict[str, Text], forwards: Sequence[Forward], taps: Sequence[Tap], row: int, checkpoint: Checkpoint
) -> Iterator[Column]:
    """The prompts' columns, aligned where prompts begin; then steps that something touches or whose token is known."""
    first = -max(text.prefix for text in texts.values())
    for index in range(first, max(text.length for text in texts.values())):
        tokens = tuple(_token(text, index + text.prefix, checkpoint) for text in texts.values())
        marks = tuple(prompt_marks(taps, forward, row, index + texts[forward.role].prefix) for forward in forwards)
        yield Column("prefix" if index < 0 else str(index), tokens, marks)
    longest = max(forward.decode for forward in forwards)
    fed = {forward.role: forward.decoding.fed(row) for forward in forwards}
    steps = [
        (
            tuple(visible(fed[role][step], checkpoint) if step < len(fed[role]) else "" for role in texts),
            tuple(step_marks(taps, forward, row, step) for forward in forwards),
        )
        for step in range(longest)
    ]
    start = 0
    for step, (tokens, marks) in enumerate(steps):
        known = any(tokens)
        if not known and step + 1 < len(steps) and steps[step + 1] == (tokens, marks):
            continue
        if known or any(marks):
            yield Column(f"+{start}" if start == step else f"+{start}..{step}", tokens, marks)
        start = step + 1


def _token(text: Text, column: int, checkpoint: Checkpoint) -> str:
    """A token made visible; "" where the text has none."""
    return visible(text.ids[column], checkpoint) if 0 <= column < len(text.ids) else ""


def _blocks(columns: Sequence[Column], width: int) -> Iterator[list[Column]]:
    """The columns in lines of at most `width` cells."""
    block: list[Column] = []
    used = 0
    for column in columns:
        if block and used + column.width > width:
            yield block
            block, used = [], 0
        block.append(column)
        used += column.width + 2
    yield block


def _padded(text: str, column: Column) -> str:
    return text + " " * (column.width - cell_len(text) + 2)


def _style(marks: Sequence[str]) -> str:
    kinds = {mark[0] for mark in marks}
    return BOTH if len(kinds) == 2 else WRITE if "W" in kinds else READ if "R" in kinds else PLAIN
