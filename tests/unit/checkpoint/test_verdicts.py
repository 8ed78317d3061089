"""Verdicts between runs: found again by the bytes of the weights, and never in the way."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from causalab_mini.checkpoint import verdicts
from causalab_mini.checkpoint.resolve import resolve
from causalab_mini.checkpoint.verdicts import Finding, Proof, Verdict, recall, remember

VERDICT = Verdict(
    "fp32",
    {"ln_final": Finding(Proof.PROVED), "block_mid": Finding(Proof.REFUSED, "it is elsewhere — α")},
)


@pytest.fixture
def folder(family_folder: Callable[[str, int], Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(family_folder("llama", 16), tmp_path / "llama"))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "causalab-mini"


def test_a_verdict_is_found_again(folder: Path) -> None:
    checkpoint = resolve(str(folder))
    assert checkpoint.verdict is None
    remember(checkpoint, VERDICT)
    assert recall(folder) == VERDICT
    found = resolve(str(folder))
    assert found.verdict == VERDICT
    assert "block_mid" not in found.components()
    assert "block_mid" in found.untested().components()


def test_it_belongs_to_the_bytes_wherever_they_lie(folder: Path, tmp_path: Path) -> None:
    remember(resolve(str(folder)), VERDICT)
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    assert recall(copy) is None, "of a copy nobody has read the weights yet"
    checkpoint = resolve(str(copy))
    remember(checkpoint, Verdict("bf16"))
    assert recall(folder) == Verdict("bf16"), "one verdict for the same weights"


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_what_is_changed_is_another_checkpoint(folder: Path, name: str) -> None:
    remember(resolve(str(folder)), VERDICT)
    path = folder / name
    path.write_bytes(path.read_bytes() + b" ")
    assert recall(folder) is None


def test_other_code_tests_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remember(resolve(str(folder)), VERDICT)
    monkeypatch.setattr(verdicts, "_code", lambda: "other")
    assert recall(folder) is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"dtype": "fp32"}', '{"dtype": 1, "whole": "", "findings": {"x": 1}}']
)
def test_what_cannot_be_read_is_as_if_it_were_not_there(folder: Path, cache: Path, text: str) -> None:
    remember(resolve(str(folder)), VERDICT)
    (kept,) = (cache / "verdicts").iterdir()
    kept.write_text(text)
    assert recall(folder) is None


def test_a_cache_that_cannot_be_written_fails_nothing(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where a directory should be")
    remember(resolve(str(folder)), VERDICT)
    assert recall(folder) is None


def test_no_path_and_no_name_is_kept(folder: Path, cache: Path) -> None:
    remember(resolve(str(folder)), VERDICT)
    kept = [path for path in cache.rglob("*") if path.is_file()]
    assert len(kept) == 2
    for path in kept:
        text = path.relative_to(cache).as_posix() + path.read_text()
        assert not any(word in text for word in (str(folder), folder.name, os.environ.get("USER") or str(folder)))


def test_the_usual_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    assert verdicts.directory() == Path.home() / ".cache" / "causalab-mini"
