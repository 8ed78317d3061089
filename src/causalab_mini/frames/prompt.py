"""The prompt frame: a position and a row's text to columns.

Columns count the row's own tokens from 0, prefix included. Refuses to know padding, batches and tokenizers.
"""

from __future__ import annotations

import re

from causalab_mini.checkpoint.text import Segment, Text
from causalab_mini.frames import runs
from causalab_mini.frames.runs import Stretch
from causalab_mini.frames.window import Window
from causalab_mini.spec.positions import Position, Scope
from causalab_mini.vocabulary.reasons import Reason

PREFIX = "prefix"
_NUMBERED = re.compile(r"(.+)\[(\d+)\]")


def window(pos: Position, text: Text, value: str | None = None) -> Window:
    """The columns `pos` selects in `text`, ascending, or the reason there are none.

    `value` is the row's text for the scope's variable; a row without one has no such run.
    """
    run = _run(pos.scope, text, value)
    return run if isinstance(run, Reason) else runs.cut(pos, run)


def has_turn(text: Text, name: str) -> bool:
    """Whether `text` has a chat turn that `name` names, or several."""
    return _segment(name, text.segments) is not Reason.ALIGNMENT_MISSING


def warnings_of(text: Text) -> tuple[str, ...]:
    """What is probably not meant about a prompt, one sentence each. How a chat ends is its template's business."""
    if not text.segments and text.text.endswith((" ", "\t", "\u00a0", "\u3000")):
        return ("the prompt ends in a space, which most tokenizers expect at the start of the next token",)
    return ()


def spaces_itself(text: Text) -> bool:
    """Whether a prompt ends in white space of its own, as most chat templates do, and nothing has been said of it."""
    return text.text[-1:].isspace() and not warnings_of(text)


def _run(scope: Scope | None, text: Text, value: str | None) -> tuple[int, ...] | Reason:
    if scope is None:
        return tuple(range(text.prefix, len(text.ids)))
    within: Stretch | None = None
    if scope.segment == PREFIX:
        if scope.variable is not None or text.prefix == 0:
            return Reason.ALIGNMENT_MISSING
        return tuple(range(text.prefix))
    if scope.segment is not None:
        segment = _segment(scope.segment, text.segments)
        if isinstance(segment, Reason):
            return segment
        within = segment
    if scope.variable is not None:
        found = runs.occurrence(text.text, value, scope.occurrence, within)
        if isinstance(found, Reason):
            return found
        within = found
    if within is None:
        return Reason.ALIGNMENT_MISSING
    return runs.overlapping(text.spans, within, text.prefix)


def _segment(name: str, segments: tuple[Segment, ...]) -> Stretch | Reason:
    """The stretch called `name`, or `name[i]` for the i-th of several."""
    numbered = _NUMBERED.fullmatch(name)
    plain, which = (numbered[1], int(numbered[2])) if numbered else (name, None)
    found = [Stretch(segment.start, segment.end) for segment in segments if segment.name == plain]
    if which is None and len(found) > 1:
        return Reason.ALIGNMENT_AMBIGUOUS
    which = which or 0
    return found[which] if which < len(found) else Reason.ALIGNMENT_MISSING
