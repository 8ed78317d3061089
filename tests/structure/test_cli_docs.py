"""docs/cli.md is what the command says, and the examples it gives run."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest
from tools.make_cli_docs import PAGE, page

from causalab_mini.cli import execute
from causalab_mini.cli.app import DEBUG_VERBS, VERBS

ROOT = PAGE.parents[1]
READERS = ("compare", "report", "plot")
READ = {
    "out/gen": "documents/v2/generate_probe.json",
    "out/grid": "documents/v2/layer_position.json",
    "out/fp32": "documents/v2/patching.json",
    "out/bf16": "documents/v2/patching.json",
}
"""The runs that examples read, and what they are of."""
EXAMPLES = [example for _, examples in (*VERBS, *DEBUG_VERBS) for example in examples]


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page(), "run: python tools/make_cli_docs.py"


def test_what_examples_read_is_what_examples_write() -> None:
    """So they work as printed, one after the other."""
    assert all(any(f"--out {directory}" in example for example in EXAMPLES) for directory in READ)
    read = {word for example in EXAMPLES if example.split()[1] in READERS for word in example.split()[2:4]}
    assert {word for word in read if word.startswith("out/")} == set(READ)


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_run(
    example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("documents", "datasets"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    words = shlex.split(example.partition(" > ")[0])
    if "--weights" in words:
        folder = os.environ.get("CAUSALAB_SMOLLM2")
        if folder is None:
            pytest.skip("CAUSALAB_SMOLLM2 names no folder")
        words[words.index("--weights") + 1] = folder
    assert words[0] == "causalab-mini"
    for directory in READ if words[1] in READERS else ():
        if directory in words:
            assert execute(["run", READ[directory], "--engine", "hooks", "--out", directory]) == 0
    capsys.readouterr()
    assert execute(words[1:]) == 0, capsys.readouterr().err
    assert capsys.readouterr().out
