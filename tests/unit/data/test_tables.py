import hashlib
from pathlib import Path

import pytest

from causalab_mini.data import tables
from causalab_mini.errors import DataRefusal, Problem


def write(root: Path, content: str | bytes) -> Path:
    (root / "d").mkdir(exist_ok=True)
    path = root / "d" / "t.json"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def refused(root: Path, ref: str = "d/t") -> Problem:
    with pytest.raises(DataRefusal) as caught:
        tables.load(ref, root)
    (problem,) = caught.value.problems
    return problem


def test_rows_columns_and_digest(tmp_path: Path) -> None:
    content = '[{"input": "a", "split": "train"}, {"input": "b", "extra": null, "split": "test"}]'
    table = tables.load("d/t", write(tmp_path, content))
    assert table.rows == ({"input": "a", "split": "train"}, {"input": "b", "extra": None, "split": "test"})
    assert table.columns == ("extra", "input", "split")
    assert table.splits == ("test", "train")
    assert table.sha256 == hashlib.sha256(content.encode()).hexdigest()


def test_a_split_keeps_its_rows_and_the_digest_of_the_file(tmp_path: Path) -> None:
    content = '[{"i": 0, "split": "train"}, {"i": 1, "split": "test"}, {"i": 2, "split": "train"}]'
    table = tables.load("d/t#train", write(tmp_path, content))
    assert [row["i"] for row in table.rows] == [0, 2]
    assert table.sha256 == hashlib.sha256(content.encode()).hexdigest()


def test_a_split_without_rows_lists_the_splits(tmp_path: Path) -> None:
    problem = refused(write(tmp_path, '[{"split": "train"}, {"split": "test"}]'), "d/t#trian")
    assert problem.message == "no row of 'd/t' is in the split 'trian'"
    assert problem.hint == "did you mean 'train'? the splits are: test, train"


def test_a_split_of_a_table_without_splits(tmp_path: Path) -> None:
    problem = refused(write(tmp_path, '[{"a": 1}]'), "d/t#train")
    assert problem.message == "'d/t' has no split 'train': no row has a column 'split'"


def test_a_byte_order_mark_is_no_matter(tmp_path: Path) -> None:
    assert tables.load("d/t", write(tmp_path, b'\xef\xbb\xbf[{"a": "\xc3\xa9"}]')).rows == ({"a": "é"},)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "'d/t' has no rows"),
        ("{}", "'d/t' is an object, not an array of rows"),
        ('"rows"', "'d/t' is a text, not an array of rows"),
        ("null", "'d/t' is null, not an array of rows"),
        ("[{}, 3, {}, [1]]", "'d/t': rows 1 and 3 are not an object but a number"),
        ('[{}, {}, "x"]', "'d/t': row 2 is not an object but a text"),
        ("[1, 1, 1, 1, 1, 1, 1]", "'d/t': rows 0, 1, 2, 3, 4 and 2 more are not an object but a number"),
        ("[{}", "'d/t' is not JSON: line 1, column 4: Expecting ',' delimiter"),
        ("", "'d/t' is not JSON: line 1, column 1: Expecting value"),
        ('[{"a": 1, "a": 2}]', "'d/t' is not JSON: the key 'a' stands twice in one object"),
        ('[{"a": {"b": 1, "b": 1}}]', "'d/t' is not JSON: the key 'b' stands twice in one object"),
        ('[{"a": NaN}]', "'d/t' is not JSON: NaN is not a number"),
        ('[{"a": -Infinity}]', "'d/t' is not JSON: -Infinity is not a number"),
        ('[{"a": 1e999}]', "'d/t' is not JSON: 1e999 is too large a number"),
        (b'[{"a": "\xff"}]', "'d/t' is not JSON: byte 8 is not UTF-8"),
        ("[" * 200_000, "'d/t' is not JSON: it is nested too deeply"),
    ],
)
def test_refuses_what_is_no_table(tmp_path: Path, content: str | bytes, message: str) -> None:
    assert refused(write(tmp_path, content)).message == message


def test_a_number_of_absurd_length_is_refused(tmp_path: Path) -> None:
    assert refused(write(tmp_path, '[{"a": ' + "1" * 10_000 + "}]")).message.startswith("'d/t' is not JSON: ")


def test_a_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "[{}]")

    def denied(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", denied)
    assert refused(tmp_path).message == "'d/t' cannot be read: Permission denied"
