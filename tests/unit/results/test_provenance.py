"""run.json: what it says and what it must not say."""

from __future__ import annotations

import getpass
import json
import socket
from pathlib import Path

import pytest
from tests.unit.results.build import experiment, observed, under

import causalab_mini
from causalab_mini.results.completion import Completion
from causalab_mini.results.provenance import (
    Machinery,
    ModelRecord,
    ScheduleRecord,
    code_digest,
    run_record,
    versions,
)
from causalab_mini.results.store import Store

MODEL = ModelRecord(
    "causalab-mini/weekdays-llama", "main", "bundled", "abc", {"config.json": "1", "a.safetensors": "2"}
)
MACHINERY = Machinery("traced", "cpu", "fp32", "sdpa", None)
SCHEDULE = ScheduleRecord("naive", "exact", (), 6, 100, 6, 100, 3, 50)


def completions(out: Path) -> tuple[Completion, ...]:
    work = experiment("index=0", "index=1")
    with Store(out, work, b"{}", under("c")) as store:
        for point in work.points:
            store.write(point, (observed(point.label),), 0.25, 1000)
        return store.completions()


def test_the_record_has_every_promised_key(tmp_path: Path) -> None:
    record = run_record(
        experiment("index=0", "index=1"), MODEL, MACHINERY, SCHEDULE, {7, 2}, completions(tmp_path), kept=1
    )
    assert list(record) == [
        *("digest", "model", "data", "featurizers", "code", "versions", "engine", "device", "dtype"),
        *("attn_implementation", "batch_size", "eos_ids", "generation", "schedule", "near_ties", "writes", "warnings"),
        *("overrides", "partial", "points", "seconds", "peak_bytes"),
    ]
    assert list(record["model"]) == ["key", "revision", "source", "resolved", "files"]  # type: ignore[call-overload]
    assert record["data"] == {"weekdays/train": "table-digest"}
    assert record["eos_ids"] == [2, 7]
    assert record["points"] == {"run": 1, "kept": 1}
    assert record["seconds"] == 0.5
    assert record["peak_bytes"] == 1000
    assert record["warnings"] == ["something odd, at 2 of 2 points, first index=0"]
    assert (record["overrides"], record["partial"]) == ({}, None)
    assert record["schedule"] == {
        "mode": "naive",
        "promise": "exact",
        "passes": [],
        "calls": 6,
        "token_layers": 100,
        "naive": {"calls": 6, "token_layers": 100},
        "run": {"calls": 3, "token_layers": 50},
        "halved": 0,
    }
    assert record["near_ties"][0] == {  # type: ignore[index]
        "point": "index=0",
        "observe": "score",
        "forward": "patched on base",
        "example_id": "row-1",
        "step": 2,
        "margin": 0.0005,
    }
    assert record["writes"][0] == {  # type: ignore[index]
        "point": "index=0",
        "observe": "score",
        "write": "push",
        "model": "patched",
        "firings": [1, 0],
        "largest_change": [None, None],
        "still": 0,
    }


def test_the_record_is_strict_json_and_names_no_machine(tmp_path: Path) -> None:
    text = json.dumps(
        run_record(experiment("index=0"), MODEL, MACHINERY, SCHEDULE, (), completions(tmp_path), 0), allow_nan=False
    )
    assert str(Path.cwd()) not in text
    assert socket.gethostname() not in text
    assert f'"{getpass.getuser()}"' not in text


def test_what_is_left_out_is_told(tmp_path: Path) -> None:
    work, found = experiment("index=0", "index=1", "index=2"), completions(tmp_path)
    record = run_record(work, MODEL, MACHINERY, SCHEDULE, (), found, 0, limit=5, overrides={"a.b": 1})
    assert record["partial"] == {"rows": 5, "points": {"complete": 2, "all": 3}}
    assert record["overrides"] == {"a.b": 1}


def test_code_and_versions() -> None:
    assert len(code_digest()) == 64
    assert {"python", "causalab-mini", "torch", "transformers", "nnsight"} <= set(versions())


def test_the_code_is_the_names_and_contents_of_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(causalab_mini, "__file__", str(tmp_path / "__init__.py"))
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/one.py").write_text("x = 1")
    first = code_digest()
    assert code_digest() == first
    (tmp_path / "inner/one.py").write_text("x = 2")
    second = code_digest()
    (tmp_path / "inner/one.py").rename(tmp_path / "inner/two.py")
    assert len({first, second, code_digest()}) == 3
