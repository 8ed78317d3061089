import pytest

from causalab_mini.errors import SyntaxRefusal
from causalab_mini.spec.text import Lines, parse


def refused(text: bytes) -> list[tuple[str, int | None, str]]:
    with pytest.raises(SyntaxRefusal) as caught:
        parse(text)
    return [(problem.path, problem.line, problem.message) for problem in caught.value.problems]


def test_an_object_is_read():
    value, lines = parse(b'{"a": [1, -2.5e1, "\\u00e9", true, null]}')
    assert value == {"a": [1, -25.0, "é", True, None]}
    assert lines.of("a[2]") == 1


def test_lines_of_paths():
    text = '{\n "a": 1,\n "b": {\n  "c": [\n   10,\n   {"d": 2}\n  ]\n }\n}'
    lines = Lines(text)
    assert [lines.of(path) for path in ("a", "b", "b.c", "b.c[0]", "b.c[1].d")] == [2, 3, 4, 5, 6]


def test_a_path_that_is_not_there_has_the_line_of_its_nearest_ancestor():
    lines = Lines('{\n "a": {\n  "b": [\n   1]}}')
    assert lines.of("a.b[7].c") == 3
    assert lines.of("a.x.y") == 2
    assert lines.of("zzz") == 1
    assert lines.of("") is None


def test_duplicate_keys_come_all_at_once_with_path_and_line():
    text = b'{"a": 1,\n "b": {"c": 1,\n "c": 2},\n "a": 3}'
    assert [(path, line) for path, line, _ in refused(text)] == [("b.c", 3), ("a", 4)]
    assert "first on line 2" in refused(text)[0][2]


def test_escapes_spell_the_same_key():
    assert refused(b'{"a": 1, "\\u0061": 2}')[0][0] == "a"


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_endless_numbers(word: str):
    (found,) = refused(f'{{"a":\n [{word}]}}'.encode())
    assert found == ("a[0]", 2, f"{word} is no JSON number")


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9223372036854775808", "1" * 400, "1" * 5000])
def test_numbers_json_cannot_carry(number: str):
    ((path, line, message),) = refused(f'{{"a": 0,\n"b": {number}}}'.encode())
    assert (path, line) == ("b", 2)
    assert "64" in message
    assert len(message) < 80


def test_the_widest_integers_are_fine():
    assert parse(b'{"a": 9223372036854775807, "b": -9223372036854775807}')[0]["a"] == 2**63 - 1


@pytest.mark.parametrize(
    ("text", "path", "line", "fragment"),
    [
        (b"", "", 1, "empty"),
        (b"  \n ", "", 1, "empty"),
        (b"[1]", "", 1, "a list was found"),
        (b"3", "", 1, "3 was found"),
        (b"null", "", 1, "null was found"),
        (b'{"a": 1}\n{"b": 2}', "", 2, "ends here"),
        (b'{"a": 1,}', "", 1, "a key in double quotes is needed, and '}'"),
        (b'{"a": [1,\n]}', "a[1]", 2, "a value is needed, and ']'"),
        (b'{"a" 1}', "a", 1, "a ':' is needed"),
        (b'{"a": 1 "b": 2}', "", 1, "a ',' or '}' is needed"),
        (b"{'a': 1}", "", 1, "double quotes"),
        (b'{"a": True}', "a", 1, "'True'"),
        (b'{"a": "x\ny"}', "a", 1, "not closed on its line"),
        (b'{"a": "\\x"}', "a", 1, "unknown escape"),
        (b'{"a": [1', "a", 1, "the end of the file"),
        (b'{"a": 01}', "", 1, "a ',' or '}' is needed, and '1'"),
        (b'{"a": .5}', "a", 1, "'.'"),
        (b'{"a": +1}', "a", 1, "'+'"),
        (b'{\n // why\n "a": 1}', "", 2, "'/'"),
        (b'{"a": "\\ud800"}', "a", 1, "surrogate"),
        (b'\xef\xbb\xbf{"a": 1}', "", 1, "byte order mark"),
        (b'{"a":\n "\xff"}', "", 2, "not UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "", 1, "not UTF-8"),
    ],
)
def test_broken_texts(text: bytes, path: str, line: int, fragment: str):
    found = refused(text)
    assert [(found[0][0], found[0][1])] == [(path, line)]
    assert fragment in found[0][2]
    assert "invalid" not in found[0][2]


def test_hints_know_the_usual_slips():
    with pytest.raises(SyntaxRefusal) as caught:
        parse(b'{"a": 1 // note\n}')
    assert "no comments" in (caught.value.problems[0].hint or "")
    with pytest.raises(SyntaxRefusal) as caught:
        parse(b'{"a": True}')
    assert "true, false and null" in (caught.value.problems[0].hint or "")


def test_a_number_and_a_break_are_told_together():
    assert [path for path, _, _ in refused(b'{"a": NaN, "b": 1, "b": 2, "c": }')] == ["a", "b", "c"]


@pytest.mark.parametrize("depth", [101, 200, 5000, 100_000])
def test_absurd_nesting(depth: int):
    ((_, line, message),) = refused(b'{"a": ' + b"[" * depth + b"]" * depth + b"}")
    assert line == 1
    assert "nested more than 100 deep" in message
    ((_, _, message),) = refused(b'{"a":' * depth + b"1" + b"}" * depth)
    assert "nested more than 100 deep" in message


def test_reasonable_nesting():
    assert parse(b'{"a": ' + b"[" * 99 + b"]" * 99 + b"}")[0]["a"] is not None


def test_a_surrogate_pair_is_one_character():
    assert parse(b'{"a": "\\ud83d\\ude00"}')[0] == {"a": "😀"}
