"""Runs and cuts: which characters a scope names, which tokens overlap them, and which of those a cut selects.

Pure functions of numbers and strings; refuses to know prompts, continuations and columns.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from causalab_mini.frames.window import Window
from causalab_mini.spec.positions import Position
from causalab_mini.vocabulary.reasons import Reason


@dataclass(frozen=True)
class Stretch:
    """Characters [start, end) of a text."""

    start: int
    end: int


def occurrences(text: str, value: str, within: Stretch | None = None) -> tuple[Stretch, ...]:
    """Where `value` stands in `text` (inside `within`): whole words, or plain substrings if no whole word is there.

    Occurrences that overlap each other count separately, so that "several" never goes unnoticed. An occurrence is
    a whole word if no word character on its edge has another one as its neighbour outside.
    """
    if not value.strip():
        return ()
    start, end = (within.start, within.end) if within else (0, len(text))
    found: list[Stretch] = []
    here = text.find(value, start, end)
    while here >= 0:
        found.append(Stretch(here, here + len(value)))
        here = text.find(value, here + 1, end)
    whole = tuple(
        stretch for stretch in found if not (_inside_word(text, stretch.start) or _inside_word(text, stretch.end))
    )
    return whole or tuple(found)


def occurrence(
    text: str, value: str | None, which: int | None = None, within: Stretch | None = None
) -> Stretch | Reason:
    """The one occurrence of `value`, or the one `which` picks, negative from the end."""
    found = occurrences(text, value or "", within)
    if not found:
        return Reason.ALIGNMENT_MISSING
    if which is None:
        return found[0] if len(found) == 1 else Reason.ALIGNMENT_AMBIGUOUS
    return found[which] if -len(found) <= which < len(found) else Reason.ALIGNMENT_MISSING


def overlapping(spans: Sequence[tuple[int, int]], stretch: Stretch, first: int = 0) -> tuple[int, ...] | Reason:
    """Tokens from `first` on whose characters overlap `stretch`; missing when none does, and for an empty stretch."""
    if stretch.start == stretch.end:
        return Reason.ALIGNMENT_MISSING
    found = tuple(i for i in range(first, len(spans)) if spans[i][0] < stretch.end and spans[i][1] > stretch.start)
    return found or Reason.ALIGNMENT_MISSING


def cut(pos: Position, run: Sequence[int]) -> Window:
    """What the cut of `pos` selects of `run`. Out of range where it does not fit: a cut is never shortened."""
    n = len(run)
    if pos.index is not None:
        start, end = _from_start(pos.index, n), _from_start(pos.index, n) + 1
    elif pos.last is not None:
        start, end = n - pos.last, n
    elif pos.span is not None:
        start, end = _from_start(pos.span[0], n), _from_start(pos.span[1], n)
    else:
        start, end = 0, n
    return tuple(run[start:end]) if 0 <= start < end <= n else Reason.OUT_OF_RANGE


def _from_start(end: int, n: int) -> int:
    return end + n if end < 0 else end


def _inside_word(text: str, at: int) -> bool:
    return 0 < at < len(text) and _is_word(text[at - 1]) and _is_word(text[at])


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_" or unicodedata.category(char).startswith("M")
