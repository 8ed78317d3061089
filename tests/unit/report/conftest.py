"""The run of a document whose every text would like to be markup, and the page it makes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.building import write_table
from tests.hostile import document, table

import causalab_mini as cm
from causalab_mini.cli import execute


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the run; its data lies beside it, in data/."""
    folder = tmp_path_factory.mktemp("hostile")
    write_table(folder / "data", table())
    cm.run(document(), folder / "out", data_root=folder / "data", engine="hooks")
    return folder / "out"


@pytest.fixture(scope="session")
def page(hostile: Path) -> Path:
    """The report of the run."""
    assert execute(["report", str(hostile), "--data-root", str(hostile.parent / "data")]) == 0
    return hostile / "report.html"
