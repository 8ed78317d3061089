"""The notebooks in examples/ are whole, carry no output, and run from top to bottom."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
KEYS = {"markdown": {"cell_type", "id", "metadata", "source"}}
KEYS["code"] = {*KEYS["markdown"], "execution_count", "outputs"}


def cells(notebook: Path) -> list[dict[str, Any]]:
    return json.loads(notebook.read_text())["cells"]


def script(notebook: Path) -> str:
    """The code of all cells; as in a notebook, a cell's last expression is shown."""
    shown: list[str] = []
    for cell in cells(notebook):
        if cell["cell_type"] == "code":
            tree = ast.parse("".join(cell["source"]))
            if isinstance(tree.body[-1], ast.Expr):
                last = tree.body[-1].value
                tree.body[-1].value = ast.Call(ast.Name("repr", ast.Load()), [last], [])
            shown.append(ast.unparse(ast.fix_missing_locations(tree)))
    return "\n".join(shown)


def test_there_is_a_notebook() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_well_formed(notebook: Path) -> None:
    whole = json.loads(notebook.read_text())
    assert (whole["nbformat"], whole["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in whole["cells"]}) == len(whole["cells"])
    for cell in whole["cells"]:
        assert set(cell) == KEYS[cell["cell_type"]]
        assert all(isinstance(line, str) for line in cell["source"])
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.mark.parametrize("folder", [".", "examples"])
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs(notebook: Path, folder: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script(notebook)], cwd=ROOT / folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
