"""Every value of every shipped document is what a plain loop over that row alone gives."""

import itertools
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.desk import ENGINES, Desk, agree, desk
from tests.worlds import DOCUMENTS, at_home, document, fitted, home, moves, on_rows, thinned

from causalab_mini.schedule.optimize import Mode

NAMES = sorted(f"v2/{path.stem}" for path in (DOCUMENTS / "v2").glob("*.json"))
UNEVEN = "weekdays/data#test"
SIZES = (1, 3, None)
FEW = 5

Shipped = Callable[[str], Desk]
Random = Callable[[str, int], Desk]


@pytest.mark.parametrize("name", NAMES)
def test_each_row_is_the_row_alone(name: str, shipped: Shipped) -> None:
    desk, asked = shipped(home(name)), document(name)
    wanted = desk.tell(asked)
    ways: list[tuple[str, int | None, Mode]] = [(*way, "auto") for way in itertools.product(ENGINES, SIZES)]
    for engine, batch_size, mode in [*ways, ("hooks", 3, "naive"), ("traced", None, "exact")]:
        # A long sweep is run whole in one batch; in small ones, which are slow, some of its points are.
        whole = len(wanted) <= FEW or (batch_size is None and mode == "auto")
        skipped = [] if whole else [label for i, label in enumerate(wanted) if i % FEW]
        points = desk.run(asked, engine, batch_size, mode, skipped)
        assert sorted(points) == sorted(wanted.keys() - skipped)
        agree(points, wanted)


@pytest.mark.parametrize(
    ("name", "checkpoint"),
    [(name, home(name)) for name in NAMES] + [(name, "weekdays-gpt2") for name in NAMES if not at_home(name)],
)
def test_on_rows_of_unequal_length(name: str, checkpoint: str, shipped: Shipped) -> None:
    desk = shipped(checkpoint)
    asked = thinned(fitted(document(name), desk.checkpoint.depth))
    if moves(name):
        asked = on_rows(asked, UNEVEN)
    wanted = desk.tell(asked)
    for engine, batch_size in (("hooks", 3), ("traced", None)):
        agree(desk.run(asked, engine, batch_size), wanted)


@pytest.mark.parametrize("name", [name for name in NAMES if not at_home(name)])
@pytest.mark.parametrize(
    ("model", "width"),
    [*[(model, width) for model in ("llama", "qwen3", "gpt2", "gpt_neox") for width in (16, 64)], ("llama", 512)],
)
def test_on_random_models(name: str, model: str, width: int, random_world: Random) -> None:
    desk = random_world(model, width)
    asked = thinned(fitted(document(name), desk.checkpoint.depth))
    if moves(name):
        asked = on_rows(asked, UNEVEN)
    wanted = desk.tell(asked)
    agree(desk.run(asked, "hooks"), wanted)
    agree(desk.run(asked, "traced" if width == 64 else "hooks", 3), wanted)


@pytest.mark.smollm2
@pytest.mark.skipif("CAUSALAB_SMOLLM2" not in os.environ, reason="CAUSALAB_SMOLLM2 names no folder")
def test_a_real_model() -> None:
    there = desk(Path(os.environ["CAUSALAB_SMOLLM2"]))
    asked = thinned(document("real/weekdays_patching"))
    layers = asked["sites"]["residual"]["layers"]
    layers["sweep"] = [layers["sweep"][0], layers["sweep"][-2]]
    wanted = there.tell(asked)
    for engine, batch_size, mode in (("hooks", 3, "naive"), ("traced", None, "fast")):
        agree(there.run(asked, engine, batch_size, mode), wanted)
