"""The verbs that need no weights import nothing heavy: a fresh interpreter for each."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "transformers", "nnsight", "datasets", "huggingface_hub", "safetensors", "numpy")
SCRIPT = """
import json, sys
from causalab_mini.cli import execute
code = execute(json.loads(sys.argv[1]))
print(json.dumps([code, sorted(name for name in json.loads(sys.argv[2]) if name in sys.modules)]), file=sys.stderr)
"""
DOCUMENT = "documents/v2/generate_probe.json"
KEY = "causalab-mini/weekdays-llama"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["run", "--help"],
        ["validate", DOCUMENT],
        ["explain", DOCUMENT, "--rows", "--schedule"],
        ["data", "weekdays/said"],
        ["data", "weekdays/said", "--model", KEY],
        ["schema"],
        ["vocab"],
        ["tokens", KEY, "If today is Thursday, tomorrow is"],
        ["model", KEY],
        ["--version"],
    ],
    ids=" ".join,
)
def test_light_verbs_stay_light(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(arguments), json.dumps(HEAVY)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stderr.splitlines()[-1]) == [0, []]
    assert done.stdout
