"""Thousands of broken documents: every shipped one, mutated, loads or is refused at places that stand in its text."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path

import pytest
from tests.worlds import DOCUMENTS

from causalab_mini.errors import Refusal
from causalab_mini.spec.load import load

NAMES = sorted(path.stem for path in (DOCUMENTS / "v2").glob("*.json"))
EACH = 100
"""Mutated documents made of every shipped one."""
OTHERS = (None, True, -1, 3, 10**30, 0.5, "", "swap", "x y", [], [0, "a"], {}, {"index": 0}, {"sweep": [1, 2]})
Where = tuple[str | int, ...]


def places(tree: object, path: Where = ()) -> Iterator[Where]:
    if isinstance(tree, dict | list):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield (*path, key)
            yield from places(value, (*path, key))


def spelled(path: Where) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def drop(here, key, luck: random.Random, whole: dict) -> None:
    del here[key]


def rename(here, key, luck: random.Random, whole: dict) -> None:
    if isinstance(here, dict):
        here[luck.choice((f"{key}x", key[1:], key.upper(), "swap", "base"))] = here.pop(key)


def retype(here, key, luck: random.Random, whole: dict) -> None:
    here[key] = deepcopy(luck.choice(OTHERS))


def duplicate(here, key, luck: random.Random, whole: dict) -> None:
    if isinstance(here, dict):
        here[f"{key}_again"] = deepcopy(here[key])
    else:
        here.insert(key, deepcopy(here[key]))


def nest(here, key, luck: random.Random, whole: dict) -> None:
    here[key] = luck.choice(([here[key]], {key if isinstance(key, str) else "in": here[key]}, {"sweep": [here[key]]}))


def swap(here, key, luck: random.Random, whole: dict) -> None:
    *above, last = luck.choice(list(places(whole)))
    there = at(whole, above)
    here[key], there[last] = deepcopy(there[last]), deepcopy(here[key])


def at(tree, path):
    for part in path:
        tree = tree[part]
    return tree


MUTATIONS: tuple[Callable, ...] = (drop, rename, retype, duplicate, nest, swap)


def mutated(name: str) -> Iterator[dict]:
    document = json.loads((DOCUMENTS / "v2" / f"{name}.json").read_text())
    luck = random.Random(name)
    for number in range(EACH):
        found = deepcopy(document)
        # Each kind in turn, some of them on top of another.
        for mutation in (MUTATIONS[number % len(MUTATIONS)], *luck.choices(MUTATIONS, k=luck.choice((0, 0, 1, 2)))):
            *above, last = luck.choice(list(places(found)) or [("model",)])
            if last in (here := at(found, above)) or isinstance(here, list):
                mutation(here, last, luck, found)
        yield found


@pytest.mark.parametrize("name", NAMES)
def test_a_mutated_document_loads_or_is_refused_where_it_is_wrong(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = 0
    for document in mutated(name):
        try:
            load(json.dumps(document, indent=1).encode(), "trial.json")
        except Refusal as refusal:
            refused += 1
            there = {"", *map(spelled, places(document))}
            for problem in refusal.problems:
                # What is missing is named where it would stand.
                inside = problem.path[: max(problem.path.rfind("."), problem.path.rfind("["), 0)]
                assert problem.path in there or inside in there, (problem, document)
                assert problem.message
                assert problem.line is not None
    assert EACH // 2 < refused < EACH
    assert list(tmp_path.iterdir()) == []
