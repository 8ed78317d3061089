"""The project's own files agree with each other: ranges and pins, make targets, registries and schema."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from causalab_mini.cli.document_schema import document_schema
from causalab_mini.cli.words import sections
from causalab_mini.vocabulary.components import COMPONENTS
from causalab_mini.vocabulary.mechanisms import MECHANISMS
from causalab_mini.vocabulary.metrics import METRICS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PIN = re.compile(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.!]+)")


def pins() -> dict[str, str]:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    found = [PIN.fullmatch(line) for line in lines if line and not line.startswith("#")]
    assert all(found), "every line of the lock is an exact pin, without local versions or addresses"
    return {canonicalize_name(pin[1]): pin[2] for pin in found if pin}


def wanted() -> list[Requirement]:
    runtime: list[str] = PROJECT["project"]["dependencies"]
    development: list[str] = PROJECT["dependency-groups"]["dev"]
    build: list[str] = PROJECT["build-system"]["requires"]
    return [Requirement(line) for line in (*runtime, *development, *build)]


@pytest.mark.parametrize("requirement", wanted(), ids=str)
def test_the_lock_pins_what_the_project_asks_for(requirement: Requirement) -> None:
    assert pins()[canonicalize_name(requirement.name)] in requirement.specifier


def test_the_lock_is_sorted_and_names_nothing_twice() -> None:
    names = [line.split("==")[0] for line in (ROOT / "requirements.lock").read_text().splitlines() if "==" in line]
    assert len({canonicalize_name(name) for name in names}) == len(names)
    assert names == sorted(names, key=str.lower)


@pytest.mark.parametrize(
    ("target", "command"),
    [
        ("demo", "causalab-mini run documents/v2/generate_probe.json --out out/gen"),
        ("test", "ruff check"),
        ("test", "ruff format --check"),
        ("test", "basedpyright"),
        ("test", "pytest"),
    ],
)
def test_make_targets(target: str, command: str) -> None:
    said = subprocess.run(["make", "--dry-run", "--always-make", target], cwd=ROOT, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    assert command in said.stdout
    assert "pip install --quiet -r requirements.lock" in said.stdout
    assert "--no-deps --no-build-isolation" in said.stdout


def test_continuous_integration_is_make_test() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    assert "set -euo pipefail" in script.read_text()
    assert "make test" in script.read_text()


def test_every_kind_is_in_the_schema() -> None:
    schema = json.dumps(document_schema())
    for registry in (COMPONENTS, MECHANISMS, METRICS):
        for name in registry.names():
            assert f'"{name}"' in schema, name


def test_every_kind_is_in_the_vocabulary() -> None:
    words = {word.name for section in sections() for word in section.words}
    assert {*COMPONENTS.names(), *MECHANISMS.names(), *METRICS.names()} <= words


def test_no_committed_text_names_this_machine() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix in (".py", ".md", ".json", ".toml", ".lock", "") and path.is_file() and path.name != "LICENSE":
            text = path.read_text(errors="ignore")
            assert not re.search(r"/(root|work)/[a-z]", text), name
