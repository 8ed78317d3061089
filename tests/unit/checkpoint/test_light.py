"""Resolving and tokenizing load none of the heavy packages."""

import subprocess
import sys
from pathlib import Path

from tests.unit.checkpoint import small

SCRIPT = """
import sys
from pathlib import Path
from causalab_mini.checkpoint.resolve import resolve
from causalab_mini.data import rows, tables, variables
from causalab_mini.frames import continuation, prompt
resolve(sys.argv[1]).encode("If today is Friday")
print(sorted({"torch", "transformers", "nnsight", "datasets", "huggingface_hub", "numpy"} & set(sys.modules)))
"""


def test_nothing_heavy_is_imported(tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", SCRIPT, str(small.folder(tmp_path))]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
