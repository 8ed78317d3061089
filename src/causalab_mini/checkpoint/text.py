"""A text as tokens. Knows characters and ids; what a position selects in it is `frames`' business.

Columns count a row's own tokens from 0, the automatic prefix included and padding never. A frame index counts from
the first token after the prefix: column = prefix + index.
"""

from __future__ import annotations

from dataclasses import dataclass


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
