"""Documents drawn with settings, samples and patterns: every value, and every token, is what the row alone gives."""

import json
from collections.abc import Callable
from functools import cache

import pytest
from tests import drawing, families, plain
from tests.desk import Desk, agree, desk
from tests.drawing_patterns import Patterned
from tests.drawing_settings import Settled
from tests.worlds import VOCABULARY, words

from causalab_mini.errors import Refusal
from causalab_mini.schedule.optimize import Mode

MODELS = [("llama", 16), ("gpt2", 64), ("qwen3", 16)]
PER_MODEL = 6
KINDS: list[tuple[type[Settled], str, int]] = [
    *((Settled, *model) for model in MODELS),
    *((Patterned, *model) for model in MODELS[:2]),
]
TURNS: list[list[tuple[str, int | None, Mode]]] = [
    [("traced", 1, "fast"), ("hooks", 3, "naive")],
    [("hooks", None, "fast"), ("traced", 3, "exact")],
    [("traced", None, "naive"), ("hooks", 1, "exact")],
]
"""The ways to run a document, in turn."""
OWN: dict[str, object] = {"repetition_penalty": 1.4, "no_repeat_ngram_size": 2}
"""What the checkpoints say of settings."""
World = Callable[[str, int], Desk]


@pytest.fixture(scope="session")
def at(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A random model with settings of its own, to which a seventh of the tokens end a text."""
    root = drawing.write_table(tmp_path_factory.mktemp("odd"))

    @cache
    def made(model: str, width: int) -> Desk:
        folder = tmp_path_factory.mktemp("settled") / f"{model}-{width}"
        families.write_folder(folder, model, width, words(), VOCABULARY)
        own = {"eos_token_id": list(range(1, VOCABULARY, 7)), **OWN}
        (folder / "generation_config.json").write_text(json.dumps(own))
        return desk(folder, root)

    return made


@pytest.mark.parametrize("number", range(PER_MODEL))
@pytest.mark.parametrize(("kind", "model", "width"), KINDS)
def test_a_drawn_document(kind: type[Settled], model: str, width: int, number: int, at: World) -> None:
    there = at(model, width)
    document = accepted(kind, there, 1000 * MODELS.index((model, width)) + 40 * number)
    told = there.tell(document)
    for engine, batch_size, mode in TURNS[number % len(TURNS)]:
        agree(there.run(document, engine, batch_size, mode), told)


@cache
def said(there: Desk) -> list[list[int]]:
    """What rows say where nothing is set."""
    texts = [text for row in drawing.ROWS for text in (row["input"], row["counterfactual_inputs"][0])]
    world = there.world
    return [plain.run(world.model, world.prompt(text).ids, steps=4, held=world.eos).ids for text in texts]


def accepted(kind: type[Settled], there: Desk, seed: int) -> dict:
    """The first document from `seed` on that fits the rows."""
    for further in range(40):
        drawn = kind(seed + further, there.checkpoint.depth, said(there), sorted(there.checkpoint.eos_ids), OWN)
        document = drawn.document()
        try:
            there.compile(document)
        except Refusal:
            continue
        return document
    raise AssertionError("forty documents in a row were refused")
