"""The order of keys in reads, writes, models and metrics never changes a byte of the results."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from tests.worlds import DATASETS, DOCUMENTS, document, on_rows, thinned

from causalab_mini.cli import execute

NAMES = sorted(f"v2/{path.stem}" for path in (DOCUMENTS / "v2").glob("*.json"))
FEW = "weekdays/train"
UNORDERED = ("reads", "writes", "models", "metrics")
OWN = ("document.json", "run.json")
"""What holds the document as given, or tells how long things took."""


def shuffled(node: object, random: Random, key: str = "") -> object:
    """The document with the keys of every unordered section in another order."""
    if isinstance(node, list):
        return [shuffled(one, random) for one in node]
    if not isinstance(node, dict):
        return node
    names = list(node)
    if key in UNORDERED and len(names) > 1:
        while names == list(node):
            random.shuffle(names)
    return {name: shuffled(node[name], random, name) for name in names}


def small(name: str) -> dict:
    """A document on few rows and at few points, in which every section has something to shuffle."""
    asked = thinned(document(name))
    refs = {ref for step in asked["steps"].values() for ref in step["rows"].values()}
    return on_rows(asked, FEW) if refs == {"weekdays/full"} and "pca" not in name else asked


def results(folder: Path, asked: dict, mode: str, capsys: pytest.CaptureFixture[str]) -> dict[str, bytes]:
    """Every file a run leaves, but for what is its document's or the clock's."""
    folder.mkdir()
    (folder / "files").symlink_to(DOCUMENTS / "v2/files")
    (folder / "asked.json").write_text(json.dumps(asked))
    arguments = ("--data-root", str(DATASETS), "--schedule", mode, "--engine", "hooks", "--out", str(folder / "out"))
    code = execute(["run", str(folder / "asked.json"), *arguments])
    assert code == 0, capsys.readouterr().err
    found = {path.relative_to(folder / "out").as_posix(): path for path in (folder / "out").rglob("*")}
    run = json.loads(found["run.json"].read_text())
    said = {f"run.json {key}": json.dumps(run[key]).encode() for key in ("near_ties", "writes", "warnings", "digest")}
    return said | {
        name: path.read_bytes()
        for name, path in found.items()
        if path.is_file() and not name.startswith(".run") and path.name not in OWN
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_keys_changes_no_byte(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = small(name)
    for number, mode in enumerate(("exact", "fast")):
        other = shuffled(asked, Random(f"{name} {number}"))
        assert isinstance(other, dict)
        assert other == asked
        first = results(tmp_path / mode, asked, mode, capsys)
        assert first
        assert results(tmp_path / f"{mode} shuffled", other, mode, capsys) == first
