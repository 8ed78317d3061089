"""The strips of a page: what a forced decode feeds is shown, and marked, though no file of the run holds it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.building import generated, intervention, observing, read, rows, write_table

import causalab_mini as cm
from causalab_mini.checkpoint.resolve import resolve
from causalab_mini.plan.compile import compile_experiment
from causalab_mini.report.strips import Touched, touched_rows
from causalab_mini.spec.load import load

KEY = "causalab-mini/weekdays-llama"


def strips(tmp_path: Path, document: dict, table: list[dict]) -> list[Touched]:
    root = write_table(tmp_path / "data", table)
    results = cm.run(document, tmp_path / "out", data_root=root, engine="hooks")
    plan = compile_experiment(load(json.dumps(document).encode(), "d.json"), resolve(KEY), root)
    return [touched for found in touched_rows(plan, resolve(KEY), results, 9).values() for touched in found]


def test_forced_tokens_are_shown_and_marked(tmp_path: Path) -> None:
    reads = {"x": read("head", generated(index=1)), "y": read("head", generated(index=0))}
    document = {
        **observing(intervention(reads, decode={"force": "ending"})),
        "model": {"key": KEY, "dtype": "fp32"},
    }
    table = rows(("If today is Monday, tomorrow is", "Friday is", "Friday is"), ending=[" Sunday.", " Monday", ""])
    first, second, third = (touched.strips[0].generated for touched in strips(tmp_path, document, table))
    assert [(token.text, token.place, token.marks) for token in first] == [
        ("·Sunday", "+0", ("R2",)),
        (".", "+1", ("R1",)),
    ]
    assert [(token.text, token.marks) for token in second] == [("·Monday", ("R2",))]
    assert third == ()
