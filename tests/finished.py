"""The directory of a finished run, written by hand in the layout that docs/results.md promises."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

READS: dict[str, Any] = {"logits": {"site": "head", "pos": -1, "input": "base"}}
METRICS: dict[str, Any] = {"spread": {"kind": "entropy", "of": "logits"}, "best": {"kind": "top_k", "of": "logits"}}


def document(interventions: object = "look") -> dict[str, Any]:
    look = {"reads": READS, "metrics": METRICS}
    return {
        "model": {"key": "some/model", "dtype": "fp32"},
        "roles": {"base": {"field": "input"}},
        "sites": {"head": {"component": "lm_head"}},
        "interventions": {"look": look, "again": look},
        "steps": {
            "score": {
                "kind": "observe",
                "rows": {"base": "days/train"},
                "interventions": interventions,
                "outputs": {"seen": {"read": "logits"}},
                "saves": [
                    {"value": "spread", "file_path": "tables/spread.json"},
                    {"value": "seen", "file_path": "seen.safetensors"},
                ],
            }
        },
    }


def line(point: str, axes: dict[str, object], metric: str = "spread", observe: str = "score") -> dict[str, object]:
    own = {"observe": observe, "metric": metric, "mean": 0.5, "sd": 0.25, "n_scored": 1, "n_rows": 2}
    return {"point": point, **axes, **own}


def rows(value: float) -> list[dict[str, object]]:
    scored = {"example_id": "a", "metric": "spread", "value": value, "eligible": True, "reason": None, "row": 0}
    empty = {"example_id": "b", "metric": "spread", "value": None, "eligible": False, "reason": "empty_cell", "row": 1}
    return [scored, empty]


def written(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def finished(out: Path, lines: list[dict[str, object]]) -> Path:
    written(out / "document.json", document())
    written(out / "run.json", {"digest": "d" * 64, "warnings": ["odd"]})
    written(out / "summary.json", lines)
    return out


def point(folder: Path, value: float, interventions: object = "look", child: str = "") -> None:
    written(folder / "document.json", document(interventions))
    written(folder / child / "tables" / "spread.json", rows(value))
    tensor = np.full((2, 3), value, dtype=np.float32)
    save_file({"seen": tensor, "seen.lengths": np.array([1, 2])}, folder / child / "seen.safetensors", {"dims": "[]"})
