"""Documents drawn at random, on rows that are each odd in another way: every value is what the row alone gives."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests import drawing
from tests.desk import Desk, agree

from causalab_mini.errors import Refusal
from causalab_mini.schedule.optimize import Mode

MODELS = [("llama", 16), ("gpt2", 64), ("qwen3", 64), ("gpt_neox", 16)]
PER_MODEL = 8
WAYS: list[tuple[str, int | None, Mode]] = [
    ("hooks", None, "naive"),
    ("traced", 3, "exact"),
    ("hooks", 2, "fast"),
    ("traced", None, "fast"),
]


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return drawing.write_table(tmp_path_factory.mktemp("odd"))


@pytest.mark.parametrize("number", range(PER_MODEL))
@pytest.mark.parametrize(("model", "width"), MODELS)
def test_a_drawn_document(
    model: str, width: int, number: int, root: Path, random_world: Callable[[str, int], Desk]
) -> None:
    desk = random_world(model, width).over(root)
    document = accepted(desk, 1000 * MODELS.index((model, width)) + 20 * number)
    told = desk.tell(document)
    for engine, batch_size, mode in WAYS:
        agree(desk.run(document, engine, batch_size, mode), told)


def accepted(desk: Desk, seed: int) -> dict:
    """The first document from `seed` on that fits the rows."""
    for further in range(20):
        document = drawing.Draw(seed + further, desk.checkpoint.depth).document()
        try:
            desk.compile(document)
        except Refusal:
            continue
        return document
    raise AssertionError("twenty documents in a row were refused")
