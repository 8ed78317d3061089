"""Positions: one cut, a run that exists in the frame, steps that the decode reaches; widths and overlaps."""

from __future__ import annotations

from collections.abc import Iterator

from causalab_mini.errors import Problem
from causalab_mini.spec.positions import CUTS, Position

EOS = "eos"


def check(pos: Position, path: str, decode: int | None) -> Iterator[Problem]:
    """Everything wrong with a position of an intervention that decodes `decode` steps (None: not known)."""
    if len(pos.cuts) != 1:
        found = " and ".join(f"'{cut}'" for cut in pos.cuts) or "none"
        were = "were" if len(pos.cuts) > 1 else "was"
        yield Problem(path, f"a position has one cut, and {found} {were} found", f"give one of: {', '.join(CUTS)}")
    if pos.span is not None:
        yield from _span(pos.span, path)
    yield from _scope(pos, path)
    if pos.token == "input" and not pos.generated:
        yield Problem(path, "'token' says how generated tokens count, and the frame is the prompt", "leave 'token' out")
    if pos.generated and decode is not None:
        yield from _reached(pos, path, decode)


def check_written(pos: Position, path: str, decode: int | None) -> Iterator[Problem]:
    """The same for the position of a write, which has to be known when its step comes."""
    if not pos.deferred:
        yield from check(pos, path, decode)
        return
    yield from _scope(pos, path)
    yield Problem(
        path,
        "a write in the continuation frame is at a step the decode has reached — "
        f"a cut of the finished continuation, {pos.compact()}, is something to read, not to write",
        'name steps: {"index": 0}, {"span": [0, 2]} or {"all": true}, with "frame": "generated"',
    )


def _span(span: tuple[int, int], path: str) -> Iterator[Problem]:
    start, end = span
    if start < 0 and end == 0:
        hint = f'the last {-start} tokens are {{"last": {-start}}}'
        yield Problem(path, f"the span [{start}, {end}] is empty: it ends before the first token", hint)
    elif (start < 0) == (end < 0) and start >= end:
        what = "is empty" if start == end else "ends before it begins"
        yield Problem(path, f"the span [{start}, {end}] {what}", "a span [a, b] holds a and not b")


def _scope(pos: Position, path: str) -> Iterator[Problem]:
    scope = pos.scope
    if scope is None:
        return
    if scope.variable is None and scope.segment is None:
        yield Problem(path, "a scope names a variable, a segment or both, and this one neither", 'add "variable"')
    if scope.occurrence is not None and scope.variable is None:
        yield Problem(path, "'occurrence' picks one of a variable's places, and no variable is named", 'add "variable"')
    if scope.segment == EOS and not pos.generated:
        message = f"the segment 'eos' ends a continuation, and {pos.compact()} is in the prompt frame"
        yield Problem(path, message, 'add "frame": "generated"')
    if scope.segment not in (None, EOS) and pos.generated:
        message = f"'{scope.segment}' is a segment of a prompt, and {pos.compact()} is in the generated frame"
        yield Problem(path, message, "the only segment there is 'eos'; a chat turn is in the prompt frame")


def _reached(pos: Position, path: str, decode: int) -> Iterator[Problem]:
    if decode == 0:
        message = f"{pos.compact()} counts generated tokens, and 'decode' is 0"
        yield Problem(path, message, 'give the intervention "decode": the number of tokens to generate')
        return
    if pos.token == "input" and pos.scope is None and _names_last(pos, decode):
        message = f"{pos.compact()} is where a later step reads the token, and the last of {decode} is never read"
        yield Problem(path, message, f"the tokens that are read are 0 to {decode - 2}" if decode > 1 else "decode more")
        return
    length = f"{_article(decode)} {decode}-token decode"
    steps = f"its steps are 0 to {decode - 1}"
    if pos.index is not None and pos.index >= decode:
        yield Problem(path, f"{pos.compact()} is step {pos.index} of {length}", steps)
    if pos.index is not None and pos.index < -decode:
        yield Problem(path, f"{pos.compact()} counts {-pos.index} tokens back in {length}", steps)
    if pos.last is not None and pos.last > decode:
        yield Problem(path, f"{pos.compact()} is the last {pos.last} tokens of {length}", steps)
    if pos.span is not None:
        start, end = pos.span
        if end > decode or start >= decode:
            yield Problem(path, f"{pos.compact()} reaches step {max(end - 1, start)} of {length}", steps)
        elif min(start, end) < -decode:
            yield Problem(path, f"{pos.compact()} counts {-min(start, end)} tokens back in {length}", steps)
        elif pos.scope is None and (start < 0) != (end < 0) and start % decode >= (end if end >= 0 else end + decode):
            yield Problem(path, f"{pos.compact()} is empty in {length}", steps)


def _names_last(pos: Position, decode: int) -> bool:
    ends = (pos.index,) if pos.index is not None else (pos.span[1] - 1,) if pos.span is not None else ()
    return pos.last is not None or any(end in (-1, decode - 1) for end in ends) or decode == 1


def _article(number: int) -> str:
    return "an" if str(number).startswith("8") or number in (11, 18) else "a"


def width(pos: Position, decode: int | None) -> int | None:
    """How many tokens a position selects where that is fixed, or None; `{generated all}` is every step.

    None as well for a span that holds nothing, which is told of itself.
    """
    if pos.generated and pos.all and pos.scope is None:
        return decode if decode is None or pos.token == "output" else decode - 1
    return None if pos.width is not None and pos.width < 1 else pos.width


def overlap(one: Position, other: Position) -> bool:
    """Whether two written positions certainly share a token.

    False means no or not known before the rows are: cuts from opposite ends, scopes that differ.
    """
    if one == other:
        return True
    if one.generated != other.generated:
        prompt, steps = (other, one) if one.generated else (one, other)
        return prompt.scope is None and _last_token(prompt) and _first_step(steps)
    if (one.all and one.scope is None) or (other.all and other.scope is None):
        return True
    if one.scope is not None or other.scope is not None:
        return False
    first, second = _tokens(one), _tokens(other)
    if first is None or second is None or (first.start < 0) != (second.start < 0):
        return False
    return max(first.start, second.start) < min(first.stop, second.stop)


def _tokens(pos: Position) -> range | None:
    """The tokens of an unscoped cut, counted from its own end of the frame; None where both ends count."""
    if pos.index is not None:
        return range(pos.index, pos.index + 1)
    if pos.last is not None:
        return range(-pos.last, 0)
    if pos.span is not None and (pos.span[0] < 0) == (pos.span[1] < 0):
        return range(*pos.span)
    return None


def _last_token(pos: Position) -> bool:
    return pos.index == -1 or pos.last is not None or pos.all is True


def _first_step(pos: Position) -> bool:
    return pos.index == 0 or pos.all is True or (pos.span is not None and pos.span[0] == 0)
