import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causalab_mini.data.fields import ABSENT, FieldPath
from causalab_mini.errors import DataRefusal

ROW = {"input": "text", "a": {"b": None, "c": [10, {"d": "deep"}]}, "list": ["x"], "spaced out": 1}


@pytest.mark.parametrize(
    ("path", "parts", "cell"),
    [
        ("input", ("input",), "text"),
        ("a.b", ("a", "b"), None),
        ("a.c[0]", ("a", "c", 0), 10),
        ("a.c[1].d", ("a", "c", 1, "d"), "deep"),
        ("list[0]", ("list", 0), "x"),
        ("list[1]", ("list", 1), ABSENT),
        ("list.x", ("list", "x"), ABSENT),
        ("input[0]", ("input", 0), ABSENT),
        ("input.x", ("input", "x"), ABSENT),
        ("nothing", ("nothing",), ABSENT),
        ("spaced out", ("spaced out",), 1),
    ],
)
def test_parse_and_get(path: str, parts: tuple[str | int, ...], cell: object) -> None:
    parsed = FieldPath.parse(path)
    assert parsed.parts == parts
    assert parsed.get(ROW) == cell
    assert str(parsed) == path
    assert parsed.column == parts[0]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "'' is not a column path: nothing follows where a name belongs"),
        (".a", "'.a' is not a column path: '.a' stands where a name belongs"),
        ("a.", "'a.' is not a column path: nothing follows where a name belongs"),
        ("a..b", "'a..b' is not a column path: '.b' stands where a name belongs"),
        ("[0]", "'[0]' is not a column path: '[0]' stands where a name belongs"),
        ("a[", "'a[' is not a column path: '[' stands where '.name' or '[number]' belongs"),
        ("a[-1]", "'a[-1]' is not a column path: '[-1]' stands where '.name' or '[number]' belongs"),
        ("a[x]", "'a[x]' is not a column path: '[x]' stands where '.name' or '[number]' belongs"),
        ("a[0]b", "'a[0]b' is not a column path: 'b' stands where '.name' or '[number]' belongs"),
        ("a]", "'a]' is not a column path: ']' stands where '.name' or '[number]' belongs"),
    ],
)
def test_refuses_what_is_no_path(path: str, message: str) -> None:
    with pytest.raises(DataRefusal) as caught:
        FieldPath.parse(path)
    assert caught.value.problems[0].message == message


@settings(deadline=None)
@given(st.lists(st.one_of(st.integers(0, 99), st.text("abc_ é-", min_size=1, max_size=4)), max_size=5))
def test_a_spelled_path_parses_to_itself(parts: list[str | int]) -> None:
    path = FieldPath(("start", *parts))
    assert FieldPath.parse(str(path)) == path


@settings(deadline=None)
@given(st.text("ab.[]01", max_size=8))
def test_any_text_is_a_path_or_refused(text: str) -> None:
    try:
        parsed = FieldPath.parse(text)
    except DataRefusal:
        return
    assert FieldPath.parse(str(parsed)) == parsed
