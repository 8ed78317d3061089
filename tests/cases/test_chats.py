"""Chat rows: rendered once, their turns named, and values that do not depend on what fills padding."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import chats
from tests.building import generated, intervention, observing, read, rows, write_table
from tests.desk import Desk, agree, desk
from tests.worlds import document

TALKS = (
    [{"role": "user", "content": "If today is Monday, then tomorrow is"}],
    [
        {"role": "user", "content": "The capital of France is Paris"},
        {"role": "assistant", "content": "Paris"},
        {"role": "user", "content": "If today is Friday, then tomorrow is"},
    ],
    "Mary gave a book to John and then",
    [{"role": "system", "content": "one two"}, {"role": "user", "content": "Friday Friday"}],
)
WORDS = ["Monday", "Friday", "John", "Friday"]
METRICS = {
    "h": {"kind": "entropy", "of": "x"},
    "top": {"kind": "top_k", "of": "y"},
    "late": {"kind": "entropy", "of": "t"},
}
POSITIONS: dict[str, dict | int] = {
    "last": -1,
    "turn": {"index": -1, "scope": {"segment": "user[1]"}},
    "only turn": {"index": 0, "scope": {"segment": "user"}},
    "answer": {"index": -1, "scope": {"segment": "assistant"}},
    "word": {"index": -1, "scope": {"variable": "word"}},
    "word in a turn": {"index": 0, "scope": {"segment": "user[0]", "variable": "word", "occurrence": -1}},
    "prefix": {"index": 0, "scope": {"segment": "prefix"}},
}


@pytest.fixture(scope="module")
def chat_desk(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Desk]:
    def at(**how: object) -> Desk:
        folder = chats.write_folder(tmp_path_factory.mktemp("chat"), **how)  # pyright: ignore[reportArgumentType]
        return desk(folder)

    return at


def asked(pos: dict | int, decode: int = 3) -> dict:
    reads = {"x": read("head", pos), "y": read("head", generated(index=2)), "t": read("head", -1)}
    return observing(intervention(reads, metrics=METRICS, decode=decode))


@pytest.mark.parametrize("template", ["CHATML", "WITH_MARKER"])
def test_each_row_is_the_row_alone(template: str, chat_desk: Callable[..., Desk], tmp_path: Path) -> None:
    over = chat_desk(template=getattr(chats, template)).over(write_table(tmp_path, rows(TALKS, word=WORDS)))
    for name, pos in POSITIONS.items():
        told = asked(pos)
        wanted = over.tell(told)
        for engine, batch_size, mode in (("hooks", None, "auto"), ("traced", 1, "auto"), ("hooks", 3, "naive")):
            agree(over.run(told, engine, batch_size, mode), wanted)
        reasons = over.one(told).reasons("h")
        missing, unclear = "alignment_missing", "alignment_ambiguous"
        assert (
            reasons
            == {
                "last": [None] * 4,
                "turn": [missing, None, missing, missing],
                "only turn": [None, unclear, missing, None],
                "answer": [missing, None, missing, missing],
                "word": [None, None, None, unclear],
                "word in a turn": [None, missing, missing, None],
                "prefix": [None if template == "WITH_MARKER" else missing] * 2
                + [None]
                + [None if template == "WITH_MARKER" else missing],
            }[name]
        ), name


def test_a_pad_token_that_closes_turns_changes_no_value(chat_desk: Callable[..., Desk], tmp_path: Path) -> None:
    root = write_table(tmp_path, rows(TALKS, word=WORDS))
    closing, distinct = (chat_desk(pad=pad).over(root) for pad in (chats.CLOSE, "<pad>"))
    assert closing.checkpoint.pad_id != distinct.checkpoint.pad_id
    text = closing.checkpoint.tokenizer
    assert text.backend.token_to_id(chats.CLOSE) == closing.checkpoint.pad_id
    for engine in ("hooks", "traced"):
        one, other = (over.one(asked(-1), engine) for over in (closing, distinct))
        for metric in METRICS:
            assert one.rows(metric) == other.rows(metric)


def test_a_patch_from_turn_to_turn(chat_desk: Callable[..., Desk], tmp_path: Path) -> None:
    table = rows(
        TALKS[:2],
        cf=[TALKS[1], TALKS[0]],
        word=["Monday", "Paris"],
        cf_variables=[{"word": "Paris"}, {"word": "Monday"}],
    )
    over = chat_desk().over(write_table(tmp_path, table))
    inside = {"index": -1, "scope": {"segment": "user[0]", "variable": "word"}}
    patch = observing(
        intervention(
            {"v": read("out1", inside, input="other"), "x": read("head", -1, model="patched")},
            writes={"w": {"site": "out1", "pos": inside, "mechanism": "swap", "operand": "v"}},
            models={"patched": {"input": "base", "writes": ["w"]}},
            metrics={"h": {"kind": "entropy", "of": "x"}},
            decode=2,
        )
    )
    patch["roles"] = {"base": {"field": "input"}, "other": {"field": "cf"}}
    for engine in ("hooks", "traced"):
        agree(over.run(patch, engine), over.tell(patch))


def test_rows_that_cannot_be_rendered_are_named(chat_desk: Callable[..., Desk], tmp_path: Path) -> None:
    strict = chat_desk(template=chats.TRIMMED).over(write_table(tmp_path, rows(TALKS)))
    (problem,) = strict.problems(asked(-1))
    assert problem.path == "roles.base.field"
    assert problem.message == (
        "row 'row-3' of own/rows: the checkpoint's chat template refuses the messages: "
        "turns must alternate user/assistant"
    )
    none = chat_desk(template=None).over(write_table(tmp_path, rows(TALKS)))
    (problem,) = none.problems(asked(-1))
    assert problem.message.startswith("rows 'row-0', 'row-1', 'row-3' of own/rows: ")
    assert "has no chat template" in problem.message


def test_a_turn_that_no_row_has_is_told(chat_desk: Callable[..., Desk], tmp_path: Path) -> None:
    over = chat_desk().over(write_table(tmp_path, rows(TALKS)))
    for segment, told in (("usr", True), ("user[2]", True), ("user[1]", False), ("system", False), ("prefix", False)):
        pos = {"index": 0, "scope": {"segment": segment}}
        warned = f"own/rows, input: no row has a turn '{segment}'; the turns are assistant, system, user"
        assert (warned in over.compile(asked(pos)).warnings) == told


def test_a_marker_that_is_not_written_is_told(chat_desk: Callable[..., Desk], tmp_path: Path) -> None:
    over = chat_desk(template=chats.CHATML).over(write_table(tmp_path, rows(TALKS[:1])))
    (warning,) = over.compile(asked(-1)).warnings
    assert "the chat template writes no '<bos>'" in warning


@pytest.mark.smollm2
@pytest.mark.skipif("CAUSALAB_SMOLLM2" not in os.environ, reason="CAUSALAB_SMOLLM2 names no folder")
def test_the_real_document_says_what_its_description_says() -> None:
    real = desk(Path(os.environ["CAUSALAB_SMOLLM2"]))
    asked = document("real/chat_turn")
    asked["sites"]["residual"]["layers"]["sweep"] = [22, 23]
    points = real.run(asked)
    agree(points, real.tell(asked))
    means = {
        (label, path[-1]): sum(float(str(row.value)) for row in steps[path].tables[0].rows) / 6
        for label, steps in points.items()
        for path in steps
    }
    for (label, name), mean in means.items():
        assert abs(mean) > 7
        assert (mean > 0) == ((label == "layer=22") == (name == "question"))
