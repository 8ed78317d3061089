"""A text as tokens, and why a row may have no value. The types every other frame module works on.

Columns count a row's own tokens from 0, the automatic prefix included and padding never. A frame index counts from
the first token after the prefix: column = prefix + index.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """Why a row is not measured: a closed set."""

    ALIGNMENT_MISSING = "alignment_missing"
    ALIGNMENT_AMBIGUOUS = "alignment_ambiguous"
    OUT_OF_RANGE = "out_of_range"
    EMPTY_CELL = "empty_cell"
    WRITE_SKIPPED = "write_skipped"
    NON_FINITE = "non_finite"


Window = tuple[int, ...] | Reason
"""What a position selects in one row: indices in ascending order, or the reason there are none."""


@dataclass(frozen=True)
class Segment:
    """A named stretch of a text, [start, end) in characters; a chat turn's content."""

    name: str
    start: int
    end: int


@dataclass(frozen=True)
class Text:
    """One row's text as the model sees it.

    `ids`: every token, the `prefix` leading ones included. `spans`: each token's [start, end) in characters of
    `text`, (0, 0) for prefix tokens.
    """

    text: str
    ids: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    prefix: int = 0
    segments: tuple[Segment, ...] = ()

    @property
    def length(self) -> int:
        """Tokens of the row's own, the prefix not counted."""
        return len(self.ids) - self.prefix
