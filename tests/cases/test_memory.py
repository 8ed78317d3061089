"""A head of 49 thousand tokens over 64 rows of 128 tokens, at 20 points: only the positions that are read are computed.

Full logits would be 1.5 GiB. Measured in a process of its own, whose peak is nobody else's.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

VOCABULARY, ROWS, TOKENS, POINTS = 49152, 64, 128, 20
MEASURE = """
import json, resource, sys
from pathlib import Path
from tests.building import intervention, observing, read, write
from tests.desk import desk

folder, root, mode = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
body = intervention(
    {"v": read("out1"), "x": read("head", -1, "m")},
    {"w": write("out0", {"index": {"sweep": {"range": [-20, 0]}, "as": "at"}}, "swap", "v")},
    metrics={"h": {"kind": "entropy", "of": "x"}},
)
there = desk(folder, root)
asked = observing(body)
there.one(observing(intervention({"x": read("head")}), "own/warm", outputs={"X": "x"}))
there.compile(asked)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
points = there.run(asked, mode=mode)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"points": len(points), "bytes": (after - before) * (1 if sys.platform == "darwin" else 1024)}))
"""


@pytest.mark.parametrize(
    "mode",
    [
        "exact",
        "fast",
    ],
)
def test_memory_beyond_the_model(mode: str, tmp_path: Path) -> None:
    from tests import families
    from tests.building import rows, write_table

    folder = tmp_path / "model"
    folder.mkdir()
    families.build("llama", 16, VOCABULARY).save_pretrained(folder)
    families.write_tokenizer(folder, "llama")
    # A letter is a token. A short table first: what the libraries set up once is not the run's.
    write_table(tmp_path, rows(), "own/warm")
    root = write_table(tmp_path, rows([f"{chr(65 + row % 26)}{row:03}" + "x" * (TOKENS - 5) for row in range(ROWS)]))
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(folder), str(root), mode], capture_output=True, text=True, check=True
    )
    told = json.loads(done.stdout)
    assert told["points"] == POINTS
    assert told["bytes"] < 200 * 2**20, f"{told['bytes'] / 2**20:.0f} MiB"
