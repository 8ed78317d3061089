"""What whole processes take: CPU seconds and the most memory, of the command and of the plain script.

Imports nothing heavy: a child's peak begins with that of the process that starts it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

from benchmarks.documents import BUNDLED, ROOT, ROWS

COMMAND = "import sys; from causalab_mini.cli import main; main()"
ALONE = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}


@dataclass(frozen=True)
class Usage:
    """CPU seconds, user and system, and the peak of resident memory in MiB."""

    seconds: float
    peak: float


@dataclass(frozen=True)
class Line:
    """One thing measured: what is wanted is at most `wanted`."""

    name: str
    value: float
    wanted: float
    note: str

    def __str__(self) -> str:
        return f"{self.name}: {self.value:.3f} (wanted: {self.wanted}); {self.note}"


@dataclass(frozen=True)
class Ground:
    """Where processes are measured: a model, a data root, how often, and a folder for what they write."""

    weights: Path
    rows: Path
    repeats: int
    scratch: Path

    def command(self, *arguments: str) -> Usage:
        """The command with `arguments`, its model and its data."""
        return spend("-c", COMMAND, *arguments, "--weights", str(self.weights), "--data-root", str(self.rows))

    def run(self, document: dict) -> Usage:
        """The command running a document."""
        path, out = self.scratch / "document.json", self.scratch / "out"
        path.write_text(json.dumps(document))
        return self.command("run", str(path), "--out", str(out), "--device-map", "cpu", "--force")

    def script(self) -> Usage:
        """The plain script of the layer sweep."""
        out = self.scratch / "script.csv"
        return spend(str(ROOT / "benchmarks" / "script.py"), str(self.weights), str(self.rows), str(out))


def spend(*arguments: str) -> Usage:
    """What a python process of its own takes."""
    with TemporaryFile() as said:
        child = subprocess.Popen(
            [sys.executable, *arguments], cwd=ROOT, env={**os.environ, **ALONE}, stdout=subprocess.DEVNULL, stderr=said
        )
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            said.seek(0)
            raise SystemExit(f"{' '.join(arguments)} ended with {child.returncode}:\n{said.read().decode()}")
    peak = used.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    return Usage(used.ru_utime + used.ru_stime, peak)


@contextmanager
def ground(title: str) -> Generator[tuple[Ground, bool]]:
    """What the command line asks for, and whether to answer in JSON."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--weights", type=Path, default=BUNDLED, help="a Llama's folder; default: the bundled one")
    parser.add_argument("--rows", type=Path, default=ROWS, help="a data root with bench/calendar")
    parser.add_argument("--repeats", type=int, default=3, help="processes to take the median of")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    asked = parser.parse_args()
    with TemporaryDirectory() as scratch:
        yield Ground(asked.weights.resolve(), asked.rows.resolve(), asked.repeats, Path(scratch)), asked.json


def tell(lines: list[Line], *, as_json: bool) -> None:
    """Print what was measured."""
    print(json.dumps([asdict(line) for line in lines]) if as_json else "\n".join(map(str, lines)))
