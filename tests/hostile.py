"""A document and rows whose every text would like to be markup."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from tests.building import generated, intervention, observing, read, rows, write

SCRIPT = "<script>document.title = 'broken'</script>"
IMAGE = "<img src=x onerror=\"document.title='broken'\">"
PROMPTS = (f"If today is {SCRIPT} Monday, tomorrow is", "Friday is", f"{IMAGE} & \"so\" 'on'")


def document() -> dict[str, Any]:
    """Layers by positions, a metric that some rows have no value of, and what the model says."""
    layers = {"sweep": [0, 2], "as": "layer"}
    cut = {"index": {"sweep": [-2, -1], "as": "position"}}
    reads = {
        "v": read("mid", cut, role="other"),
        "x": read("head", generated(index=1), model="patched"),
    }
    metrics = {
        "p": {"kind": "token_prob", "of": "x", "token": "answer"},
        "spread": {"kind": "entropy", "of": "x"},
    }
    writes = {"w": write("mid", cut, "swap", "v")}
    models = {"patched": {"input": "base", "writes": ["w"]}}
    saves = [
        {"value": "p", "file_path": "p.json"},
        {"value": "spread", "file_path": "spread.json"},
        {"value": "patched.generated", "file_path": "said.safetensors"},
    ]
    whole = deepcopy(observing(intervention(reads, writes, models, metrics=metrics, decode=2)))
    whole["sites"]["mid"] = {"component": "block_output", "layers": layers}
    whole["steps"]["only"]["saves"] = saves
    whole["model"] = {"key": "causalab-mini/weekdays-llama", "dtype": "fp32"}
    whole["header"] = {"description": f"Is {SCRIPT} shown as it stands? Yes: {IMAGE}"}
    return whole


def table() -> list[dict]:
    """The rows: one has no answer, and one a name that would like to be markup too."""
    found = rows(PROMPTS, answer=(" Tuesday", "", " Saturday"))
    found[0]["example_id"] = SCRIPT
    return found
