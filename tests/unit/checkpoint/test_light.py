"""Resolving and tokenizing load none of the heavy packages."""

import subprocess
import sys
from pathlib import Path

from tests import chats
from tests.unit.checkpoint import small

SCRIPT = """
import sys
from pathlib import Path
from causalab_mini.checkpoint.resolve import resolve
from causalab_mini.data import rows, tables, variables
from causalab_mini.frames import continuation, prompt
from causalab_mini.vocabulary.message import Message
resolve(sys.argv[1]).encode("If today is Friday")
assert resolve(sys.argv[1]).encode((Message("user", "If today is Friday"),)).segments
print(sorted({"torch", "transformers", "nnsight", "datasets", "huggingface_hub", "numpy"} & set(sys.modules)))
"""


def test_nothing_heavy_is_imported(tmp_path: Path) -> None:
    named = {**small.NAMED, "chat_template": chats.CHATML}
    arguments = [sys.executable, "-c", SCRIPT, str(small.folder(tmp_path, named=named))]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
