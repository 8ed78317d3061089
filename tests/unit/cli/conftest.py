"""The command run inside the test's process, and a small project to run it in."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from causalab_mini.cli import execute

DOCUMENT: dict[str, Any] = {
    "model": {"key": "some/model", "dtype": "fp32"},
    "roles": {"base": {"field": "input"}, "other": {"field": "counterfactual_inputs[0]"}},
    "sites": {
        "mid": {"component": "block_output", "layers": {"sweep": [0, 1], "as": "layer"}},
        "head": {"component": "lm_head"},
    },
    "interventions": {
        "swap": {
            "reads": {
                "v": {"site": "mid", "pos": -1, "input": "other"},
                "logits": {
                    "site": "head",
                    "pos": {"frame": "generated", "index": 1},
                    "model": "patched",
                    "input": "base",
                },
            },
            "writes": {"push": {"site": "mid", "pos": -1, "mechanism": "swap", "operand": "v"}},
            "models": {"patched": {"input": "base", "writes": ["push"]}},
            "metrics": {"spread": {"kind": "entropy", "of": "logits"}, "best": {"kind": "top_k", "of": "logits"}},
            "decode": 2,
        }
    },
    "steps": {
        "score": {
            "kind": "observe",
            "rows": {"base": "days/train", "other": "days/train"},
            "saves": [
                {"value": "spread", "file_path": "spread.json"},
                {"value": "patched.generated", "file_path": "said.safetensors"},
            ],
        }
    },
}
ROWS = [
    {"input": "If today is Monday, then tomorrow is", "counterfactual_inputs": ["The capital of"], "answer": " x"},
    {"input": "The capital of France is", "counterfactual_inputs": ["Mary gave a book to"], "answer": " "},
]


@dataclass(frozen=True)
class Said:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Stdout as the one JSON value it has to be."""
        return json.loads(self.out)


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """`say("validate", path)`: run the command, collect what it said."""

    def run(*arguments: object) -> Said:
        capsys.readouterr()
        code = execute([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err or "--debug" in arguments
        return Said(code, captured.out, captured.err)

    return run


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with swap.json and datasets/days/train.json, which is the working directory."""
    (tmp_path / "datasets/days").mkdir(parents=True)
    (tmp_path / "datasets/days/train.json").write_text(json.dumps(ROWS))
    (tmp_path / "swap.json").write_text(json.dumps(DOCUMENT, indent=1))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def model(family_folder: Callable[[str, int], Path]) -> Path:
    """A tiny random Llama."""
    return family_folder("llama", 16)
