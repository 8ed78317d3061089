"""Documents drawn at random, on rows that are each odd in another way: every value is what the row alone gives."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from tests import drawing, families
from tests.desk import Desk, agree, desk
from tests.worlds import VOCABULARY, words

from causalab_mini.errors import Refusal
from causalab_mini.schedule.optimize import Mode

MODELS = [("llama", 16), ("gpt2", 64), ("qwen3", 64), ("gpt_neox", 16)]
PER_MODEL = 8
ENDS = list(range(1, 640, 4))
"""So many of the tokens end a text that rows stop at once, later or never."""
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
    at = random_world(model, width).over(root)
    document = accepted(at, 1000 * MODELS.index((model, width)) + 40 * number)
    told = at.tell(document)
    for engine, batch_size, mode in WAYS:
        agree(at.run(document, engine, batch_size, mode), told)


@pytest.fixture(scope="session")
def ending_world(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Desk]:
    """`random_world` with many end tokens."""

    @cache
    def at(model: str, width: int) -> Desk:
        folder = tmp_path_factory.mktemp("ending") / f"{model}-{width}"
        families.write_folder(folder, model, width, words(), VOCABULARY)
        (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": ENDS}))
        return desk(folder)

    return at


@pytest.mark.parametrize("number", range(PER_MODEL // 2))
@pytest.mark.parametrize(("model", "width"), MODELS)
def test_a_drawn_document_whose_rows_end(
    model: str, width: int, number: int, root: Path, ending_world: Callable[[str, int], Desk]
) -> None:
    at = ending_world(model, width).over(root)
    document = accepted(at, 5000 + 1000 * MODELS.index((model, width)) + 40 * number, uneven)
    told = at.tell(document)
    for engine, batch_size, mode in WAYS:
        agree(at.run(document, engine, batch_size, mode), told)


def uneven(document: dict) -> bool:
    """Whether rows of some intervention end at different steps."""
    return any(isinstance(body["decode"], dict) for body in document["interventions"].values())


def accepted(desk: Desk, seed: int, wanted: Callable[[dict], bool] = bool) -> dict:
    """The first document from `seed` on that is wanted and fits the rows."""
    for further in range(40):
        document = drawing.Draw(seed + further, desk.checkpoint.depth).document()
        if not wanted(document):
            continue
        try:
            desk.compile(document)
        except Refusal:
            continue
        return document
    raise AssertionError("forty documents in a row were refused or not wanted")
