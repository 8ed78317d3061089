"""The generated frame: what a row generated, as text and as steps.

Token k is the output of step k. The text map is built from the produced ids, never by encoding text again. Refuses to
know tokenizers: whoever has one passes its `decode`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from causalab_mini.checkpoint.text import Text
from causalab_mini.errors import PlanRefusal, Problem
from causalab_mini.frames import runs
from causalab_mini.frames.runs import Stretch
from causalab_mini.frames.window import Window
from causalab_mini.spec.positions import Position
from causalab_mini.vocabulary.reasons import Reason

EOS = "eos"
_HALF = "\ufffd"

Decode = Callable[[tuple[int, ...]], str]


def text_of(ids: tuple[int, ...], decode: Decode) -> Text:
    """The produced `ids` with the characters each stands for.

    A token covers what it adds to the decoded text. Tokens that are parts of one character all cover that character.
    """
    whole = decode(ids)
    pieces = [decode((token,)) for token in ids]
    if "".join(pieces) == whole and _HALF not in whole:
        spans = _side_by_side(pieces)
    else:
        spans = _cumulative(ids, whole, decode)
    return Text(whole, ids, spans)


def cut(pos: Position, text: Text, eos_ids: Collection[int], value: str | None = None) -> Window:
    """The steps `pos` selects in the finished continuation `text`, ascending, or the reason there are none.

    `value` is the row's text for the scope's variable. The segment `eos` is the first EOS token of the row.
    """
    return _seen(pos, _tokens(pos, text, eos_ids, value), len(text.ids))


def _tokens(pos: Position, text: Text, eos_ids: Collection[int], value: str | None) -> Window:
    scope = pos.scope
    if scope is None:
        return runs.cut(pos, range(len(text.ids)))
    run: tuple[int, ...] | Reason = tuple(range(len(text.ids)))
    within: Stretch | None = None
    if scope.segment is not None:
        ends = [step for step, token in enumerate(text.ids) if token in eos_ids]
        if scope.segment != EOS or not ends:
            return Reason.ALIGNMENT_MISSING
        run = (ends[0],)
        within = Stretch(*text.spans[ends[0]])
    if scope.variable is not None:
        found = runs.occurrence(text.text, value, scope.occurrence, within)
        if isinstance(found, Reason):
            return found
        run = runs.overlapping(text.spans, found)
    return run if isinstance(run, Reason) else runs.cut(pos, run)


def steps(pos: Position, n: int) -> tuple[int, ...]:
    """The steps of an n-token decode at which a position that is not deferred acts. Refused where one is past it."""
    if pos.deferred:
        raise PlanRefusal(Problem("", f"{pos.compact()} is a cut of the finished continuation, not a step"))
    found = located(pos, n)
    if isinstance(found, Reason):
        raise PlanRefusal(Problem("", f"{pos.compact()} is past the last step of a {n}-token decode"))
    return found


def located(pos: Position, n: int) -> Window:
    """The steps a position without a scope selects in a continuation of `n` tokens."""
    return _seen(pos, runs.cut(pos, range(n)), n)


def _seen(pos: Position, tokens: Window, n: int) -> Window:
    """The steps at which `tokens` are seen: emitted (output), or read, one step later (input).

    The last of `n` tokens is never read, so it is no part of `{all token:input}`, and out of range where it is named.
    """
    if pos.token == "output" or isinstance(tokens, Reason):
        return tokens
    read = tuple(token + 1 for token in tokens if token + 1 < n)
    named_all = pos.all is True and pos.scope is None
    return read if read and (named_all or len(read) == len(tokens)) else Reason.OUT_OF_RANGE


def _side_by_side(pieces: list[str]) -> tuple[tuple[int, int], ...]:
    spans: list[tuple[int, int]] = []
    end = 0
    for piece in pieces:
        spans.append((end, end + len(piece)))
        end += len(piece)
    return tuple(spans)


def _cumulative(ids: tuple[int, ...], whole: str, decode: Decode) -> tuple[tuple[int, int], ...]:
    """Spans from the text after each token: what of it stays in the whole text, plus the character it leaves half."""
    spans: list[tuple[int, int]] = []
    start = 0
    for count in range(1, len(ids) + 1):
        so_far = decode(ids[:count])
        settled = max(start, _shared(so_far, whole))
        end = min(settled + (len(so_far) > settled), len(whole))
        is_rest_of_character = end == start and so_far.endswith(_HALF)
        spans.append((start - 1 if is_rest_of_character and start else start, end))
        start = settled
    return tuple(spans)


def _shared(one: str, other: str) -> int:
    """How many characters two texts begin with in common."""
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
