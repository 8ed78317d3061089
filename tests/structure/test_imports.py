"""Imports go down only, and what is heavy stays where it belongs: read off the sources."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "causalab_mini"
FLOORS = (
    ("errors", "garbage"),
    ("vocabulary",),
    ("spec", "data", "checkpoint"),
    ("frames",),
    ("plan",),
    ("schedule", "results", "engine"),
    ("run", "report"),
    ("cli",),
    ("python",),
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
SOURCES = sorted(PACKAGE.rglob("*.py"))
NAMES = [path.relative_to(PACKAGE).as_posix() for path in SOURCES]


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(tree: ast.AST) -> Iterator[str]:
    """Every module that `tree` imports, at any depth."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def at_import(tree: ast.Module) -> Iterator[str]:
    """Every module imported when the file is: not inside a function, not for type checkers."""
    for node in tree.body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from imported(node)


def top(name: str) -> str:
    return name.split(".")[0]


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def test_every_room_has_a_floor() -> None:
    rooms = {room_of(path) for path in SOURCES} - {"__init__"}
    assert rooms == set(FLOOR)


@pytest.mark.parametrize("path", SOURCES, ids=NAMES)
def test_imports_go_down(path: Path) -> None:
    own = room_of(path)
    if own == "__init__":
        return
    for name in imported(parsed(path)):
        parts = name.split(".")
        if parts[0] != "causalab_mini" or len(parts) < 2 or parts[1] not in FLOOR:
            continue
        assert parts[1] == own or FLOOR[parts[1]] < FLOOR[own], f"{own} imports {name}"


@pytest.mark.parametrize("path", SOURCES, ids=NAMES)
def test_what_is_heavy_is_imported_late(path: Path) -> None:
    room, early = room_of(path), {top(name) for name in at_import(parsed(path))}
    allowed = {"torch", "transformers"} if room in ("engine", "run") else set[str]()
    if path == PACKAGE / "engine" / "traced.py":
        allowed |= {"nnsight"}
    assert not (early & {"torch", "transformers", "nnsight", "datasets", "safetensors", "huggingface_hub"}) - allowed


def test_nnsight_is_known_to_one_file() -> None:
    users = [path for path in SOURCES if "nnsight" in {top(name) for name in imported(parsed(path))}]
    assert users == [PACKAGE / "engine" / "traced.py"]


def test_nothing_is_pickled_and_no_hub_code_is_run() -> None:
    for path in SOURCES:
        tree = parsed(path)
        assert not {top(name) for name in imported(tree)} & {"pickle", "dill", "joblib", "marshal", "shelve"}
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg == "trust_remote_code":
                assert isinstance(node.value, ast.Constant)
                assert node.value.value is False
            if isinstance(node, ast.Call):
                assert ast.unparse(node.func) not in ("torch.load", "torch.save", "eval", "exec"), path


@pytest.mark.parametrize("path", SOURCES, ids=NAMES)
def test_only_the_command_prints_and_exits(path: Path) -> None:
    if room_of(path) == "cli":
        return
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Call):
            assert ast.unparse(node.func) not in ("print", "sys.exit", "exit", "quit", "os._exit"), path


@pytest.mark.parametrize("path", SOURCES, ids=NAMES)
def test_a_file_stays_small_and_says_what_it_is(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= 320
    assert ast.get_docstring(parsed(path)), "a file opens with what it is"
