"""Where documents are tried: the checkpoints that ship, and random models whose tokenizer knows the datasets' words."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests import families

if TYPE_CHECKING:
    from tests.desk import Desk

ROOT = Path(__file__).parents[1]
DATASETS = ROOT / "datasets"
DOCUMENTS = ROOT / "documents"
VOCABULARY = 640
HEADS, UNITS = 2, 32
"""What the smallest model here has."""


def words() -> list[str]:
    """The prompts and answers about weekdays."""
    rows = [row for path in sorted((DATASETS / "weekdays").glob("*.json")) for row in json.loads(path.read_text())]
    return [row["input"] for row in rows] + [row["base_answer"] for row in rows for _ in range(20)]


def document(name: str) -> dict:
    """A shipped document: `v2/patching`."""
    return json.loads((DOCUMENTS / f"{name}.json").read_text())


def at_home(name: str) -> bool:
    """Whether a document runs on the checkpoint it names only: its rows or its featurizers are made for that."""
    return name == "v2/generated_answer" or "featurizers" in document(name) or home(name) != "weekdays-llama"


def home(name: str) -> str:
    """The shipped checkpoint that a document names."""
    return document(name)["model"]["key"].removeprefix("causalab-mini/")


def moves(name: str) -> bool:
    """Whether a document's rows may be others of the weekdays: it asks nothing of them that only its own have."""
    steps = document(name)["steps"].values()
    return all(ref in ("weekdays/full", "weekdays/train") for step in steps for ref in step["rows"].values())


def fitted(document: dict, depth: int) -> dict:
    """The document for a model of `depth` layers: layers past the last become it, ranges of layers end there.

    Heads and units are those that every model has.
    """
    fit = deepcopy(document)
    for site in fit["sites"].values():
        match site.get("layers"):
            case int(layer):
                site["layers"] = min(layer, depth - 1)
            case {"sweep": {"range": [first, last]}, **rest}:
                site["layers"] = {"sweep": {"range": [min(first, depth - 1), min(last, depth)]}, **rest}
        match site.get("heads"):
            case [*heads]:
                site["heads"] = sorted({head % HEADS for head in heads})
            case {"sweep": [*heads], **rest}:
                site["heads"] = {"sweep": [some for some in heads if max(some) < HEADS], **rest}
        match site.get("units"):
            case {"sweep": [*units], **rest}:
                site["units"] = {"sweep": [some and sorted({unit % UNITS for unit in some}) for some in units], **rest}
    return fit


def thinned(document: dict) -> dict:
    """The document with only the ends of its sweeps, positions within five tokens of the end."""

    def thin(node: object) -> object:
        match node:
            case {"sweep": {"range": [first, last]}, **rest}:
                return {"sweep": sorted({max(first, -5), last - 1}), **rest}
            case {"sweep": [first, _, *_, last], **rest}:
                return {"sweep": [first, last], **rest}
            case dict():
                return {key: thin(value) for key, value in node.items()}
        return node

    return thin(document)


def on_rows(document: dict, ref: str) -> dict:
    """The document with every role's rows from one table."""
    moved = deepcopy(document)
    for step in moved["steps"].values():
        step["rows"] = dict.fromkeys(step["rows"], ref)
    return moved


@pytest.fixture(scope="session")
def shipped() -> Callable[[str], Desk]:
    """`shipped("weekdays-llama")`: a desk with a checkpoint of the package."""
    from tests.desk import desk

    from causalab_mini.checkpoint.resolve import BUNDLED_FOLDER

    @cache
    def at(name: str) -> Desk:
        folder = BUNDLED_FOLDER / name
        if not (folder / "config.json").is_file():
            pytest.skip(f"{name} is not in the package yet")
        return desk(folder)

    return at


@pytest.fixture(scope="session")
def random_world(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Desk]:
    """`random_world(model_type, width)`: a desk with a random model to which the datasets' answers are one token."""
    from tests.desk import desk

    @cache
    def at(model_type: str, width: int) -> Desk:
        folder = tmp_path_factory.mktemp("worlds") / f"{model_type}-{width}"
        return desk(families.write_folder(folder, model_type, width, words(), VOCABULARY))

    return at
