from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from causalab_mini.data import rows
from causalab_mini.data.fields import FieldPath
from causalab_mini.data.formats import Row
from causalab_mini.data.tables import Table
from causalab_mini.errors import DataRefusal
from causalab_mini.vocabulary.message import Message
from causalab_mini.vocabulary.reasons import Reason

INPUT = FieldPath.parse("input")
HI = {"role": "user", "content": "hi"}


def table(*contents: Row) -> Table:
    return Table("d/t", contents, "0" * 64, Path("d/t.json"))


def messages(caught: pytest.ExceptionInfo[DataRefusal]) -> Sequence[str]:
    return [problem.message for problem in caught.value.problems]


def test_ids_are_the_column_or_the_row_numbers() -> None:
    assert rows.example_ids(table({"example_id": "a"}, {"example_id": 7})) == ("a", "7")
    assert rows.example_ids(table({}, {}, {})) == ("0", "1", "2")


def test_duplicate_ids_are_named() -> None:
    twice = table({"example_id": "a"}, {"example_id": "1"}, {"example_id": "a"}, {"example_id": 1}, {"example_id": "b"})
    with pytest.raises(DataRefusal) as caught:
        rows.example_ids(twice)
    assert messages(caught) == ["'d/t' has duplicate example_ids: 'a' is rows 0 and 2; '1' is rows 1 and 3"]


@pytest.mark.parametrize("cell", [None, True, 1.5, "", "  ", ["a"]])
def test_an_id_is_a_text_or_an_integer(cell: object) -> None:
    with pytest.raises(DataRefusal) as caught:
        rows.example_ids(table({"example_id": "a"}, {"example_id": cell}))  # pyright: ignore[reportArgumentType]
    assert messages(caught) == ["'d/t': row 1 has no 'example_id' that is a text or an integer"]


def test_a_row_without_an_id_beside_others() -> None:
    with pytest.raises(DataRefusal, match="row 1 has no 'example_id'"):
        rows.example_ids(table({"example_id": "a"}, {}))


def test_prompts_are_the_cells_of_the_field() -> None:
    two = table({"cf": ["first", "second"]}, {"cf": ["third", " fourth "]})
    assert rows.prompts(two, FieldPath.parse("cf[1]")) == ("second", " fourth ")


def test_every_faulty_prompt_is_told_at_once() -> None:
    faulty = table(
        {"example_id": "ok", "input": "text"},
        {"example_id": "gone"},
        {"example_id": "null", "input": None},
        {"example_id": "blank", "input": " \n"},
        {"example_id": "number", "input": 3},
        {"example_id": "half", "input": "a\ud83d"},
    )
    with pytest.raises(DataRefusal) as caught:
        rows.prompts(faulty, INPUT)
    assert messages(caught) == [
        "'d/t': row 1 ('gone') has no 'input'",
        "'d/t': row 2 ('null') and row 3 ('blank') have an empty prompt in 'input'",
        "'d/t': row 4 ('number') has no text in 'input'",
        "'d/t': row 5 ('half') has half a surrogate pair in 'input'",
    ]
    assert all(problem.path == "" for problem in caught.value.problems)


def test_a_list_of_messages_is_a_chat() -> None:
    hi, there = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "", "name": None}
    mixed = table({"input": [hi, there]}, {"input": "text"})
    assert rows.prompts(mixed, INPUT) == ((Message("user", "hi"), Message("assistant", "")), "text")


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ([], "a chat without messages"),
        ([HI, "hello"], "a chat whose message 1 is no object"),
        ([HI, {"role": "user"}], "a chat whose message 1 has no 'content'"),
        ([{"content": "hi"}], "a chat whose message 0 has no 'role'"),
        ([{**HI, "content": None}], "a chat whose message 0 has no 'content'"),
        ([{**HI, "name": "x"}], "a chat whose message 0 has a key 'name', which is none of a message's"),
        ([{**HI, "role": 3}], "a chat whose message 0 has the role 3, which is no name"),
        ([{**HI, "role": "user[1]"}], "a chat whose message 0 has the role 'user[1]', which is no name"),
        ([{**HI, "role": "prefix"}], "a chat whose message 0 has the role 'prefix', which names another segment"),
        ([{**HI, "content": ["hi"]}], "a chat whose message 0 has a content that is no text"),
        ([{**HI, "content": "a\ud83d"}], "a chat whose message 0 has half a surrogate pair in its content"),
    ],
)
def test_malformed_messages_name_the_row(cell: Any, message: str) -> None:
    with pytest.raises(DataRefusal) as caught:
        rows.prompts(table({"input": "a"}, {"input": cell}, {"input": cell}), INPUT)
    assert messages(caught) == [f"'d/t': rows 1 and 2 have {message} in 'input'"]
    assert caught.value.problems[0].hint == 'a chat is a list of {"role": name, "content": text}'


def test_a_list_of_texts_is_no_chat() -> None:
    with pytest.raises(DataRefusal) as caught:
        rows.prompts(table({"input": ["a", "b"]}), INPUT)
    assert caught.value.problems[0].hint == "name one entry of the list, such as 'input[0]'"


def test_rows_without_ids_go_by_number() -> None:
    with pytest.raises(DataRefusal) as caught:
        rows.prompts(table({"input": "a"}, {"input": ""}), INPUT)
    assert messages(caught) == ["'d/t': row 1 has an empty prompt in 'input'"]


@pytest.mark.parametrize(
    ("field", "hint"),
    [
        ("inptu", "did you mean 'input'? the columns are: cf, input, nested"),
        ("cf[2]", "did you mean 'cf[1]'? the columns are: cf[0], cf[1]"),
        ("nested.answr", "did you mean 'nested.answer'? the columns are: nested.answer, nested.other"),
        ("input.x", "did you mean 'input'? the columns are: input"),
        ("zzz", "the columns are: cf, input, nested"),
    ],
)
def test_a_column_no_row_has_is_a_misspelling(field: str, hint: str) -> None:
    some = table({"input": "a", "cf": ["x", "y"]}, {"input": "b", "nested": {"answer": 1, "other": 2}})
    with pytest.raises(DataRefusal) as caught:
        rows.answers(some, FieldPath.parse(field))
    (problem,) = caught.value.problems
    assert problem.message == f"no row of 'd/t' has a column '{field}'"
    assert problem.hint == hint


def test_answers_as_they_stand_and_empty_cells() -> None:
    cells = table({"a": " Paris"}, {"a": ""}, {"a": None}, {}, {"a": " \t"}, {"a": 12}, {"a": 0})
    empty = Reason.EMPTY_CELL
    assert rows.answers(cells, FieldPath.parse("a")) == (" Paris", empty, empty, empty, empty, 12, 0)


def test_an_all_null_column_is_there() -> None:
    assert rows.answers(table({"a": None}, {}), FieldPath.parse("a")) == (Reason.EMPTY_CELL, Reason.EMPTY_CELL)


@pytest.mark.parametrize("cell", [True, 1.5, [" a"], {"b": 1}])
def test_an_answer_is_one_text_or_one_id(cell: object) -> None:
    with pytest.raises(DataRefusal) as caught:
        rows.answers(table({"a": "x"}, {"a": cell}), FieldPath.parse("a"))  # pyright: ignore[reportArgumentType]
    assert messages(caught) == ["'d/t': row 1 has no text and no integer in 'a'"]


def test_empty_lists_are_no_column_to_name() -> None:
    with pytest.raises(DataRefusal) as caught:
        rows.prompts(table({"others": []}, {"others": []}), FieldPath.parse("others[0]"))
    (problem,) = caught.value.problems
    assert problem.message == "no row of 'd/t' has a column 'others[0]'"
    assert problem.hint == "its lists are empty: fill them, or name a column"
