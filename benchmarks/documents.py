"""The jobs' documents, fitted to a checkpoint: written for 30 layers, a model of another depth gets them in proportion.

Imports nothing heavy: processes that are measured are started from here.
"""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "documents" / "bench"
ROWS = ROOT / "datasets"
BUNDLED = ROOT / "src" / "causalab_mini" / "checkpoint" / "bundled" / "weekdays-llama"
DEPTH = 30


def depth_of(weights: Path) -> int:
    """How many layers the model in a folder has."""
    return json.loads((weights / "config.json").read_bytes())["num_hidden_layers"]


def fitted(name: str, depth: int) -> dict:
    """The document `name` for a model of `depth` layers."""
    document = json.loads((FOLDER / f"{name}.json").read_bytes())
    for site in document["sites"].values():
        match site.get("layers"):
            case int(layer):
                site["layers"] = layer * depth // DEPTH
            case {"sweep": {"range": [0, _]}, **rest}:
                site["layers"] = {"sweep": {"range": [0, depth]}, **rest}
            case {"sweep": list(layers), **rest}:
                site["layers"] = {"sweep": [layer * depth // DEPTH for layer in layers], **rest}
    return document


def grid(layers: object, positions: object) -> dict:
    """The interchange at `layers` and `positions`, each an integer or a sweep."""
    document = fitted("layer_position", DEPTH)
    document["sites"]["residual"]["layers"] = layers
    (interchange,) = document["interventions"].values()
    interchange["reads"]["v_cf"]["pos"] = interchange["writes"]["patch"]["pos"] = {"index": positions}
    return document
