"""What `explain` prints of every shipped document, pinned as text.

A golden is written by hand, as in
`causalab-mini explain documents/v2/patching.json > tests/golden/explain/patching.txt`,
and never in the change that moves it.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.desk import Desk
from tests.worlds import DOCUMENTS, document, home

from causalab_mini.plan.explain import explain

GOLDEN = Path(__file__).parent / "explain"
NAMES = sorted(path.stem for path in (DOCUMENTS / "v2").glob("*.json"))


def test_every_document_has_one() -> None:
    assert sorted(path.stem for path in GOLDEN.glob("*.txt")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_explain(name: str, shipped: Callable[[str], Desk]) -> None:
    desk = shipped(home(f"v2/{name}"))
    assert explain(desk.compile(document(f"v2/{name}")).root) + "\n" == (GOLDEN / f"{name}.txt").read_text()
