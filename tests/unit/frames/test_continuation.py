from pathlib import Path

import pytest
from tests.unit.checkpoint import small

from causalab_mini.checkpoint import tokenizer
from causalab_mini.checkpoint.text import Text
from causalab_mini.errors import PlanRefusal
from causalab_mini.frames.continuation import cut, steps, text_of
from causalab_mini.frames.window import Window
from causalab_mini.spec.positions import Position, Scope
from causalab_mini.vocabulary.reasons import Reason

MISSING, AMBIGUOUS, OUT = Reason.ALIGNMENT_MISSING, Reason.ALIGNMENT_AMBIGUOUS, Reason.OUT_OF_RANGE
EOS = 9
PIECES = {1: " he", 2: " went", 3: " to", 4: " work", 5: ".", EOS: "</s>"}


def decode(ids: tuple[int, ...]) -> str:
    return "".join(PIECES[token] for token in ids)


def generated(**fields: object) -> Position:
    return Position.model_validate({"frame": "generated", **fields})


def test_a_token_covers_what_it_adds() -> None:
    text = text_of((1, 2, 4, EOS), decode)
    assert text == Text(" he went work</s>", (1, 2, 4, EOS), ((0, 3), (3, 8), (8, 13), (13, 17)))
    assert text.length == 4


def test_positions_follow_the_produced_ids_where_the_text_encodes_otherwise(tmp_path: Path) -> None:
    """` Fri` and `day` were produced; their text encodes to the one token ` Friday`."""
    plain = tokenizer.load(small.folder(tmp_path))
    fri, day = (plain.own(piece).ids[0] for piece in (" Fri", "day"))
    text = text_of((fri, day), plain.decode)
    assert text.text == " Friday"
    assert len(plain.own(text.text).ids) == 1
    assert text.spans == ((0, 4), (4, 7))
    scope = {"variable": "d"}
    assert cut(generated(all=True, scope=scope), text, {1}, "Friday") == (0, 1)
    assert cut(generated(index=-1, scope=scope), text, {1}, "Friday") == (1,)


@pytest.mark.parametrize("content", ["naïve 你好 ok", "你", "🏳️‍🌈!", " ïï", "a\ufffdb", "plain"])
def test_spans_equal_those_of_the_encoded_text(tmp_path: Path, content: str) -> None:
    plain = tokenizer.load(small.folder(tmp_path))
    encoded = plain.own(content)
    assert text_of(tuple(encoded.ids), plain.decode).spans == tuple(encoded.offsets)


def test_a_continuation_cut_off_inside_a_character(tmp_path: Path) -> None:
    plain = tokenizer.load(small.folder(tmp_path))
    ids = tuple(plain.own("If 你").ids[:-1])
    text = text_of(ids, plain.decode)
    assert text.text == "If \ufffd"
    assert text.spans == ((0, 2), (2, 3), (3, 4))


def test_a_token_that_ends_one_character_and_starts_another() -> None:
    pieces = {0: b"a\xe4", 1: b"\xbd\xa0b\xe5", 2: b"\xa5", 3: b"\xbd"}
    text = text_of((0, 1, 2, 3), lambda ids: b"".join(pieces[i] for i in ids).decode("utf-8", "replace"))
    assert text.text == "a你b好"
    assert text.spans == ((0, 2), (1, 4), (3, 4), (3, 4))


def test_bytes_that_never_become_a_character() -> None:
    pieces = {0: b"\xe4", 1: b"\xbd", 2: b"x", 3: b"\xff"}
    text = text_of((0, 1, 2, 3), lambda ids: b"".join(pieces[i] for i in ids).decode("utf-8", "replace"))
    assert text.text == "\ufffdx\ufffd"
    assert text.spans == ((0, 1), (0, 1), (1, 2), (2, 3))


def test_a_decoder_that_writes_one_mark_per_byte() -> None:
    """Byte-fallback decoders show every byte of a half character on its own."""
    pieces = {0: b"a", 1: b"\xe4", 2: b"\xbd", 3: b"\xa0", 4: b"b"}

    def fallback(ids: tuple[int, ...]) -> str:
        content = b"".join(pieces[i] for i in ids)
        whole = content.decode("utf-8", "ignore")
        return whole + "\ufffd" * (len(content) - len(whole.encode()))

    assert text_of((0, 1, 2, 3, 4), fallback).spans == ((0, 1), (1, 2), (1, 2), (1, 2), (2, 3))


def test_a_decoder_that_strips_the_first_space() -> None:
    words = {0: " if", 1: " ok"}
    text = text_of((0, 1), lambda ids: "".join(words[i] for i in ids).removeprefix(" "))
    assert text == Text("if ok", (0, 1), ((0, 2), (2, 5)))


CONTINUATION = text_of((1, 2, 3, 4, 5), decode)
STOPPED = text_of((1, 4, EOS), decode)


@pytest.mark.parametrize(
    ("pos", "expected"),
    [
        (generated(index=0), (0,)),
        (generated(index=-1), (4,)),
        (generated(index=5), OUT),
        (generated(last=2), (3, 4)),
        (generated(last=6), OUT),
        (generated(span=[-2, -1]), (3,)),
        (generated(all=True), (0, 1, 2, 3, 4)),
    ],
)
def test_cuts_of_a_finished_continuation(pos: Position, expected: Window) -> None:
    assert cut(pos, CONTINUATION, {EOS}) == expected


def test_the_end_is_a_segment() -> None:
    end = Scope(segment="eos")
    assert cut(generated(index=-1, scope=end), STOPPED, {EOS, 77}) == (2,)
    assert cut(generated(all=True, scope=end), STOPPED, {EOS}) == (2,)
    assert cut(generated(index=1, scope=end), STOPPED, {EOS}) == OUT
    assert cut(generated(index=-1, scope=end), CONTINUATION, {EOS}) == MISSING
    assert cut(generated(index=-1, scope=Scope(segment="user")), STOPPED, {EOS}) == MISSING


def test_the_end_is_the_first_end_token() -> None:
    assert cut(generated(all=True, scope={"segment": "eos"}), text_of((EOS, 1, EOS), decode), {EOS}) == (0,)


def test_a_variable_in_the_continuation() -> None:
    said = Scope(variable="said")
    assert cut(generated(index=-1, scope=said), CONTINUATION, {EOS}, "work") == (3,)
    assert cut(generated(all=True, scope=said), CONTINUATION, {EOS}, "went to") == (1, 2)
    assert cut(generated(index=-1, scope=said), CONTINUATION, {EOS}, "home") == MISSING
    assert cut(generated(index=-1, scope=said), CONTINUATION, {EOS}, None) == MISSING
    twice = text_of((4, 2, 4), decode)
    assert cut(generated(index=-1, scope=said), twice, {EOS}, "work") == AMBIGUOUS
    assert cut(generated(index=-1, scope=Scope(variable="said", occurrence=-1)), twice, {EOS}, "work") == (2,)


def test_a_variable_inside_the_end() -> None:
    both = Scope(variable="v", segment="eos")
    assert cut(generated(index=0, scope=both), STOPPED, {EOS}, "s") == (2,)
    assert cut(generated(index=0, scope=both), STOPPED, {EOS}, "work") == MISSING


@pytest.mark.parametrize(
    ("pos", "expected"),
    [
        (generated(index=0), (0,)),
        (generated(index=2), (2,)),
        (generated(span=[1, 3]), (1, 2)),
        (generated(all=True), (0, 1, 2)),
    ],
)
def test_steps_of_a_decode(pos: Position, expected: tuple[int, ...]) -> None:
    assert steps(pos, 3) == expected


@pytest.mark.parametrize("pos", [generated(index=3), generated(span=[1, 4]), generated(span=[2, 2])])
def test_steps_past_the_decode_are_refused(pos: Position) -> None:
    with pytest.raises(PlanRefusal, match="3-token decode"):
        steps(pos, 3)


@pytest.mark.parametrize("pos", [generated(index=-1), generated(last=1), generated(all=True, scope={"segment": "eos"})])
def test_a_cut_of_the_finished_continuation_has_no_steps_yet(pos: Position) -> None:
    with pytest.raises(PlanRefusal, match="a cut of the finished continuation"):
        steps(pos, 3)
