"""How messages name a checkpoint: by its key, and by the folder that is used in its place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.checkpoint import small

from causalab_mini.checkpoint.naming import self_test, shown
from causalab_mini.checkpoint.resolve import resolve

LLAMA = "causalab-mini/weekdays-llama"


def test_a_key_that_is_used_is_the_name() -> None:
    checkpoint = resolve(LLAMA)
    assert shown(checkpoint) == LLAMA
    assert self_test(checkpoint) == f"causalab-mini model {LLAMA} --self-test"
    assert self_test(replace(checkpoint, revision="v2")) == f"causalab-mini model {LLAMA} --revision v2 --self-test"


def test_weights_from_elsewhere_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = small.folder(tmp_path / "my model")
    checkpoint = resolve(LLAMA, weights=folder)
    assert shown(checkpoint) == f"{LLAMA} (the weights in {folder})"
    assert self_test(checkpoint) == f"causalab-mini model {LLAMA} --weights '{folder}' --self-test"
    monkeypatch.chdir(tmp_path)
    checkpoint = resolve("my model", weights=Path("my model"))
    assert shown(checkpoint) == "my model"
    assert self_test(checkpoint) == "causalab-mini model 'my model' --self-test"
