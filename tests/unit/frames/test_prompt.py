from pathlib import Path

import pytest
from tests.unit.checkpoint import small

from causalab_mini.checkpoint import tokenizer
from causalab_mini.checkpoint.text import Segment, Text
from causalab_mini.frames.prompt import warnings_of, window
from causalab_mini.frames.window import Window
from causalab_mini.spec.positions import Position, Scope
from causalab_mini.vocabulary.reasons import Reason

MISSING, AMBIGUOUS, OUT = Reason.ALIGNMENT_MISSING, Reason.ALIGNMENT_AMBIGUOUS, Reason.OUT_OF_RANGE


def words(text: str, prefix: int = 1, segments: tuple[Segment, ...] = ()) -> Text:
    """A text whose tokens are its words, each with its leading space."""
    spans: list[tuple[int, int]] = [(0, 0)] * prefix
    start = 0
    for at, char in enumerate(text):
        if char == " " and at > start:
            spans.append((start, at))
            start = at
    spans.append((start, len(text)))
    return Text(text, tuple(range(len(spans))), tuple(spans), prefix, segments)


FIVE = words("If today is Friday, tomorrow")
"""Columns 0 (prefix) to 5; `Friday,` is column 4."""


@pytest.mark.parametrize(
    ("pos", "expected"),
    [
        (Position(index=0), (1,)),
        (Position(index=4), (5,)),
        (Position(index=5), OUT),
        (Position(index=-1), (5,)),
        (Position(index=-5), (1,)),
        (Position(index=-6), OUT),
        (Position(last=2), (4, 5)),
        (Position(last=5), (1, 2, 3, 4, 5)),
        (Position(last=6), OUT),
        (Position(span=(0, 2)), (1, 2)),
        (Position(span=(-4, -1)), (2, 3, 4)),
        (Position(span=(1, -1)), (2, 3, 4)),
        (Position(span=(-2, 5)), (4, 5)),
        (Position(span=(0, 6)), OUT),
        (Position(span=(-6, -1)), OUT),
        (Position(span=(2, 2)), OUT),
        (Position(span=(3, 1)), OUT),
        (Position(span=(-2, 0)), OUT),
        (Position(all=True), (1, 2, 3, 4, 5)),
    ],
)
def test_cuts_count_after_the_prefix_and_are_never_shortened(pos: Position, expected: Window) -> None:
    assert window(pos, FIVE) == expected


def test_a_long_and_a_short_row() -> None:
    short, long = words("a b c d e"), words(" ".join("x" * 18))
    assert (window(Position(index=0), short), window(Position(index=0), long)) == ((1,), (1,))
    scoped = Position(index=99, scope=Scope(variable="v"))
    assert window(scoped, short, "c") == OUT
    assert window(Position(index=99), short) == OUT


def test_the_prefix_is_a_segment() -> None:
    prefix = Scope(segment="prefix")
    assert window(Position(index=0, scope=prefix), FIVE) == (0,)
    assert window(Position(all=True, scope=prefix), words("a b", prefix=2)) == (0, 1)
    assert window(Position(index=1, scope=prefix), FIVE) == OUT
    assert window(Position(index=0, scope=prefix), words("a b", prefix=0)) == MISSING
    assert window(Position(index=0, scope=Scope(segment="prefix", variable="v")), FIVE, "If") == MISSING


@pytest.mark.parametrize(
    ("text", "value", "occurrence", "expected"),
    [
        ("If today is Friday", "Friday", None, (4,)),
        ("If today is Friday", "today is", None, (2, 3)),
        ("If today is Friday", "friday", None, MISSING),
        ("If today is Friday", "Monday", None, MISSING),
        ("If today is Friday", "", None, MISSING),
        ("If today is Friday", "  ", None, MISSING),
        ("If today is Friday", None, None, MISSING),
        ("Ann and Anna and Ann", "Ann", None, AMBIGUOUS),
        ("Ann and Anna and Ann", "Ann", 0, (1,)),
        ("Ann and Anna and Ann", "Ann", 1, (5,)),
        ("Ann and Anna and Ann", "Ann", -1, (5,)),
        ("Ann and Anna and Ann", "Ann", -2, (1,)),
        ("Ann and Anna and Ann", "Ann", 2, MISSING),
        ("Ann and Anna and Ann", "Ann", -3, MISSING),
        ("Anna and Bob", "Ann", None, (1,)),
        ("Anna and Annabel", "Ann", None, AMBIGUOUS),
        ("Bob saw Ann's dog", "Ann", None, (3,)),
        ("ann_1 and ann", "ann", None, (3,)),
        ("caf\u00e9 cafe", "cafe", None, (2,)),
        ("cafe\u0301 cafe", "cafe", None, (2,)),
        ("(7) and 17", "7", None, (1,)),
        ("banana", "ana", None, AMBIGUOUS),
    ],
)
def test_a_variable_is_whole_words_or_else_substrings(
    text: str, value: str | None, occurrence: int | None, expected: Window
) -> None:
    pos = Position(all=True, scope=Scope(variable="v", occurrence=occurrence))
    assert window(pos, words(text), value) == expected


def test_cuts_count_inside_the_run() -> None:
    text = words("to the old town hall we go")

    def cut(**fields: object) -> Window:
        pos = Position.model_validate({**fields, "scope": {"variable": "place"}})
        return window(pos, text, "old town hall")

    assert cut(index=0) == (3,)
    assert cut(index=-1) == (5,)
    assert cut(index=3) == OUT
    assert cut(last=2) == (4, 5)
    assert cut(last=4) == OUT
    assert cut(span=[1, 3]) == (4, 5)
    assert cut(span=[1, 4]) == OUT
    assert cut(all=True) == (3, 4, 5)


def test_a_run_that_no_token_carries_is_missing() -> None:
    text = Text("a b", (0, 1), ((0, 1), (2, 3)))
    assert window(Position(all=True, scope=Scope(variable="v")), text, " b") == (1,)
    gap = Text("a\u200bb", (0, 1), ((0, 1), (2, 3)))
    assert window(Position(all=True, scope=Scope(variable="v")), gap, "\u200b") == MISSING


CHAT = words(
    "U: hi Ann A: hello Ann U: bye Ann",
    segments=(Segment("user", 3, 9), Segment("assistant", 13, 22), Segment("user", 26, 33)),
)


@pytest.mark.parametrize(
    ("segment", "variable", "expected"),
    [
        ("assistant", None, (5, 6)),
        ("assistant[0]", None, (5, 6)),
        ("assistant[1]", None, MISSING),
        ("user", None, AMBIGUOUS),
        ("user[0]", None, (2, 3)),
        ("user[1]", None, (8, 9)),
        ("system", None, MISSING),
        ("user[1]", "Ann", (9,)),
        ("assistant", "Ann", (6,)),
        ("assistant", "hi", MISSING),
    ],
)
def test_segments_and_variables_inside_them(segment: str, variable: str | None, expected: Window) -> None:
    pos = Position(all=True, scope=Scope(segment=segment, variable=variable))
    assert window(pos, CHAT, variable) == expected


def test_two_tokens_of_one_character_and_a_token_that_starts_at_the_space(tmp_path: Path) -> None:
    """`你` is two tokens, so its first and last differ; ` ok` is one, so they do not."""
    text = tokenizer.load(small.folder(tmp_path)).encode("naïve 你好 ok")

    def ends(variable: str) -> tuple[Window, Window]:
        scope = Scope(variable=variable)
        return (
            window(Position(index=0, scope=scope), text, variable),
            window(Position(index=-1, scope=scope), text, variable),
        )

    assert ends("你") == ((7,), (8,))
    assert ends("ok") == ((12,), (12,))
    assert window(Position(all=True, scope=Scope(variable="v")), text, "naïve") == (1, 2, 3, 4, 5)


@pytest.mark.parametrize(("text", "count"), [("today is", 0), ("today is ", 1), ("today is\u00a0", 1), ("is:\n", 0)])
def test_a_prompt_that_ends_in_a_space_is_worth_a_warning(text: str, count: int) -> None:
    assert len(warnings_of(words(text))) == count
