"""Windows against slow references that share no code with the product."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from causalab_mini.checkpoint.text import Text
from causalab_mini.frames import continuation, runs
from causalab_mini.frames.prompt import window
from causalab_mini.frames.window import Window
from causalab_mini.spec.positions import Position, Scope
from causalab_mini.vocabulary.reasons import Reason

ENDS = st.integers(-9, 9)
CUTS = st.one_of(
    st.builds(lambda k: {"index": k}, ENDS),
    st.builds(lambda k: {"last": k}, st.integers(1, 9)),
    st.builds(lambda a, b: {"span": [a, b]}, ENDS, ENDS),
    st.just({"all": True}),
)
LETTERS = st.text("ab _.é你", max_size=12)


def slow_cut(pos: Position, run: list[int]) -> Window:
    """Each end is looked up on its own; one that is not there puts the cut out of range."""
    places = {i: run[i] for i in range(len(run))} | {i - len(run): run[i] for i in range(len(run))}
    if pos.all:
        return tuple(run) or Reason.OUT_OF_RANGE
    if pos.index is not None:
        wanted = [pos.index]
    elif pos.last is not None:
        wanted = list(range(-pos.last, 0))
    else:
        assert pos.span is not None
        start, end = (k if k >= 0 else k + len(run) for k in pos.span)
        wanted = [k if k >= 0 else 99 for k in range(start, end)]
    found = [places.get(k) for k in wanted]
    return tuple(k for k in found if k is not None) if found and None not in found else Reason.OUT_OF_RANGE


@settings(deadline=None)
@given(CUTS, st.integers(0, 8))
def test_a_cut_is_what_a_slow_one_gives(fields: dict[str, object], length: int) -> None:
    pos, run = Position.model_validate(fields), [10 + i for i in range(length)]
    assert runs.cut(pos, run) == slow_cut(pos, run)


@settings(deadline=None)
@given(CUTS, st.integers(0, 8))
def test_a_cut_is_never_shortened(fields: dict[str, object], length: int) -> None:
    pos = Position.model_validate(fields)
    found = runs.cut(pos, range(length))
    if not isinstance(found, Reason) and pos.width is not None:
        assert len(found) == pos.width


@settings(deadline=None)
@given(LETTERS, st.text("ab _é你", min_size=1, max_size=3), st.none() | st.integers(-3, 3))
def test_an_occurrence_is_what_regular_expressions_find(text: str, value: str, which: int | None) -> None:
    quoted = re.escape(value)
    left = r"(?<!\w)" if re.match(r"\w", value[0]) else ""
    right = r"(?!\w)" if re.match(r"\w", value[-1]) else ""
    found = [match.start() for match in re.finditer(f"{left}(?={quoted}{right})", text)]
    found = found or [match.start() for match in re.finditer(f"(?={quoted})", text)]
    if not value.strip() or not found:
        expected: object = Reason.ALIGNMENT_MISSING
    elif which is None:
        expected = found[0] if len(found) == 1 else Reason.ALIGNMENT_AMBIGUOUS
    else:
        expected = dict(enumerate(found)).get(which % len(found)) if -len(found) <= which < len(found) else None
        expected = Reason.ALIGNMENT_MISSING if expected is None else expected
    result = runs.occurrence(text, value, which)
    assert (result if isinstance(result, Reason) else result.start) == expected
    if not isinstance(result, Reason):
        assert text[result.start : result.end] == value


@st.composite
def tokenized(draw: st.DrawFn) -> Text:
    """A text cut into tokens of one character or more, a prefix before them."""
    text = draw(st.text("ab ", min_size=1, max_size=12))
    ends = sorted(draw(st.sets(st.integers(1, max(1, len(text) - 1)))) & set(range(1, len(text))) | {len(text)})
    prefix = draw(st.integers(0, 2))
    own = list(zip([0, *ends], ends, strict=False))
    spans = ((0, 0),) * prefix + tuple(own)
    return Text(text, tuple(range(len(spans))), spans, prefix)


@settings(deadline=None)
@given(tokenized(), CUTS, st.data())
def test_a_scoped_window_holds_the_tokens_of_the_run(
    text: Text, fields: dict[str, object], data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(text.text) - 1))
    value = text.text[start : data.draw(st.integers(start + 1, len(text.text)))]
    pos = Position.model_validate({**fields, "scope": {"variable": "v", "occurrence": 0}})
    stretch = runs.occurrence(text.text, value, 0)
    found = window(pos, text, value)
    if isinstance(stretch, Reason):
        assert found == stretch
        return
    wanted = set(range(stretch.start, stretch.end))
    run = [
        column
        for column in range(text.prefix, len(text.ids))
        if wanted & set(range(text.spans[column][0], text.spans[column][1]))
    ]
    assert found == slow_cut(pos, run)


@settings(deadline=None)
@given(tokenized(), CUTS)
def test_an_unscoped_window_never_reaches_the_prefix(text: Text, fields: dict[str, object]) -> None:
    pos = Position.model_validate(fields)
    found = window(pos, text)
    assert found == slow_cut(pos, list(range(text.prefix, len(text.ids))))
    scoped = window(pos.model_copy(update={"scope": Scope(segment="prefix")}), text)
    expected = slow_cut(pos, list(range(text.prefix))) if text.prefix else Reason.ALIGNMENT_MISSING
    assert scoped == expected


CHARACTERS = st.text(st.sampled_from("aé你😀\u0301 b"), max_size=8)


@settings(deadline=None)
@given(CHARACTERS, st.sets(st.integers(1, 31)))
def test_the_map_of_a_continuation_is_that_of_its_bytes(text: str, cuts: set[int]) -> None:
    """Tokens are any byte strings: each covers the characters whose bytes it holds."""
    content = text.encode()
    ends = sorted(cuts & set(range(1, len(content))) | ({len(content)} if content else set()))
    pieces = [content[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    owner = [i for i, char in enumerate(text) for _ in char.encode()]
    expected = tuple((owner[start], owner[end - 1] + 1) for start, end in zip([0, *ends], ends, strict=False))
    found = continuation.text_of(
        tuple(range(len(pieces))), lambda ids: b"".join(pieces[i] for i in ids).decode("utf-8", "replace")
    )
    assert found.text == text
    assert found.spans == expected


@settings(deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=3), max_size=6))
def test_the_map_of_any_bytes_is_in_order_and_covers_the_text(pieces: list[bytes]) -> None:
    found = continuation.text_of(
        tuple(range(len(pieces))), lambda ids: b"".join(pieces[i] for i in ids).decode("utf-8", "replace")
    )
    covered = {at for start, end in found.spans for at in range(start, end)}
    assert covered == set(range(len(found.text)))
    assert all(start < end <= len(found.text) for start, end in found.spans)
    assert list(found.spans) == sorted(found.spans)


@settings(deadline=None)
@given(CUTS, st.integers(1, 8))
def test_steps_are_the_cut_of_all_steps(fields: dict[str, object], n: int) -> None:
    pos = Position.model_validate({**fields, "frame": "generated"})
    text = Text("x" * n, tuple(range(n)), tuple((i, i + 1) for i in range(n)))
    found = continuation.cut(pos, text, frozenset())
    assert found == slow_cut(pos, list(range(n)))
    if not pos.deferred and not isinstance(found, Reason):
        assert continuation.steps(pos, n) == found
