"""The same rows from every format, and what a format refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from causalab_mini.data import rows, tables
from causalab_mini.data.fields import FieldPath
from causalab_mini.errors import DataRefusal
from causalab_mini.vocabulary.message import Message

TEXTS = (
    {"example_id": "007", "input": "If today is Friday, tomorrow is", "answer": " Saturday", "split": "train"},
    {"example_id": "NA", "input": 'a "quoted"\nline', "answer": "", "split": "test"},
    {"example_id": "3", "input": "naïve 你好\u2028 ok", "answer": "null", "split": "train"},
)
CHATS = (
    {"example_id": 1, "talk": [{"role": "user", "content": "hi"}], "score": 1.5, "inner": {"a": [1, None]}, "ok": True},
    {"example_id": 2, "talk": [{"role": "user", "content": ""}], "score": None, "inner": {"a": []}, "ok": None},
)


def load(root: Path, ending: str, content: str | bytes, ref: str = "d/t") -> tables.Table:
    (root / "d").mkdir(exist_ok=True)
    (root / f"d/t{ending}").write_bytes(content if isinstance(content, bytes) else content.encode())
    return tables.load(ref, root)


def parquet(root: Path, entries: Any) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(list(entries)), root / "written.parquet")
    return (root / "written.parquet").read_bytes()


def refused(root: Path, ending: str, content: str | bytes) -> list[str]:
    with pytest.raises(DataRefusal) as caught:
        load(root, ending, content)
    return [problem.message for problem in caught.value.problems]


def lines(entries: Any) -> str:
    return "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)


def as_csv(entries: Any) -> str:
    quoted = [["".join(['"', str(cell).replace('"', '""'), '"']) for cell in entry.values()] for entry in entries]
    return "\r\n".join([",".join(entries[0]), *(",".join(cells) for cells in quoted)]) + "\r\n"


@pytest.mark.parametrize("ending", [".json", ".jsonl", ".csv", ".parquet"])
def test_texts_are_what_they_are_in_every_format(tmp_path: Path, ending: str) -> None:
    content = {".json": json.dumps, ".jsonl": lines, ".csv": as_csv, ".parquet": lambda t: parquet(tmp_path, t)}[ending]
    table = load(tmp_path, ending, content(TEXTS), "d/t#train")
    assert table.rows == (TEXTS[0], TEXTS[2])
    assert rows.example_ids(table) == ("007", "3")


@pytest.mark.parametrize("ending", [".json", ".jsonl", ".parquet"])
def test_chats_and_objects_where_a_format_has_them(tmp_path: Path, ending: str) -> None:
    content = {".json": json.dumps, ".jsonl": lines, ".parquet": lambda t: parquet(tmp_path, t)}[ending]
    table = load(tmp_path, ending, content(CHATS))
    assert table.rows == CHATS
    assert rows.prompts(table, FieldPath.parse("talk")) == ((Message("user", "hi"),), (Message("user", ""),))


def test_lines_say_which_of_them_is_wrong(tmp_path: Path) -> None:
    content = '{"a": 1}\n{"a": 1, "a": 2}\n\n[1]\n{"a": NaN}\n{"a"\n{"a": 2}\n'
    assert refused(tmp_path, ".jsonl", content) == [
        "'d/t': line 2 is not JSON: the key 'a' stands twice in one object",
        "'d/t': line 3 is empty",
        "'d/t': line 4 is an array, not an object",
        "'d/t': line 5 is not JSON: NaN is not a number",
        "'d/t': line 6 is not JSON: line 6, column 5: Expecting ':' delimiter",
    ]
    many = refused(tmp_path, ".jsonl", "[]\n" * 8)
    assert many[-1] == "'d/t': 3 more lines are no objects"
    assert len(many) == 6


def test_a_last_line_may_do_without_its_end(tmp_path: Path) -> None:
    assert load(tmp_path, ".jsonl", '{"a": "\u2028"}\r\n{"a": 2}').rows == ({"a": "\u2028"}, {"a": 2})


@pytest.mark.parametrize("ending", [".jsonl", ".csv"])
@pytest.mark.parametrize("content", ["", "\n", "\ufeff"])
def test_an_empty_file_has_no_rows(tmp_path: Path, ending: str, content: str) -> None:
    found = refused(tmp_path, ending, content)
    assert found in (["'d/t' has no rows"], ["'d/t': line 1 is not JSON: line 1, column 1: Expecting value"])


def test_no_cell_of_a_csv_is_guessed_at(tmp_path: Path) -> None:
    table = load(tmp_path, ".csv", "example_id,input,n\n01,true,1.50\n,NaN, x\n")
    assert table.rows == (
        {"example_id": "01", "input": "true", "n": "1.50"},
        {"example_id": "", "input": "NaN", "n": " x"},
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n", "'d/t' has no rows"),
        ("a,b,a\n1,2,3\n", "'d/t' has two columns 'a'"),
        ("a,\n1,2\n", "'d/t' has a column without a name"),
        ("a,b\n1,2\n1,2,3\n", "'d/t': line 3 does not have 2 cells, one for each column"),
        ('a,b\n"1\n",2\n3\n4\n', "'d/t': lines 4 and 5 do not have 2 cells, one for each column"),
        ('a,b\n"1,2\n', "'d/t' is not CSV: line 2: unexpected end of data"),
        (b"a,b\n\xff,2\n", "'d/t': byte 4 is not UTF-8"),
    ],
)
def test_a_csv_that_is_none(tmp_path: Path, content: str | bytes, message: str) -> None:
    assert refused(tmp_path, ".csv", content) == [message]


def test_a_parquet_that_is_none(tmp_path: Path) -> None:
    (message,) = refused(tmp_path, ".parquet", "a,b\n1,2\n")
    assert message.startswith("'d/t' is not a parquet table: ")


def test_cells_of_a_parquet_that_json_has_not(tmp_path: Path) -> None:
    entries = [{"a": 1.0, "b": [b"x"], "c": None}, {"a": float("nan"), "b": [], "c": date(2020, 1, 1)}]
    assert refused(tmp_path, ".parquet", parquet(tmp_path, entries)) == [
        "'d/t': row 0 has a bytes in 'b'",
        "'d/t': row 1 has nan, which is no number, in 'a'",
        "'d/t': row 1 has a date in 'c'",
    ]


SCRIPT = """
import socket, sys
from pathlib import Path
def closed(*_): raise OSError("the network was asked")
socket.socket.connect = socket.getaddrinfo = closed
from causalab_mini.data import tables
print(len(tables.load(sys.argv[1], Path(sys.argv[2])).rows), "datasets" in sys.modules)
"""


@pytest.mark.parametrize(("ending", "heavy"), [(".jsonl", False), (".csv", False), (".parquet", True)])
def test_nothing_is_left_behind_and_nobody_is_asked(tmp_path: Path, ending: str, heavy: bool) -> None:
    content = {".jsonl": lines, ".csv": as_csv, ".parquet": lambda t: parquet(tmp_path, t)}[ending](TEXTS)
    load(tmp_path, ending, content)
    home = tmp_path / "home"
    home.mkdir()
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    arguments = [sys.executable, "-c", SCRIPT, "d/t", str(tmp_path)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, cwd=home, env=environment)
    assert done.stdout == f"3 {heavy}\n"
    assert list(home.rglob("*")) == []
