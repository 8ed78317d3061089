"""Every benchmark in a process of its own; writes the tables of docs/performance.md.

python -m benchmarks [--repeats N] [--only JOB …]. SmolLM2's folder is named by CAUSALAB_SMOLLM2; without it that table
stays as it is.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.documents import BUNDLED, ROOT, ROWS

PAGE = ROOT / "docs" / "performance.md"
RACES = (
    ("layer_sweep",),
    ("layer_position",),
    ("generate_probe",),
    ("steering_strengths",),
    ("harvest",),
    ("plain_forward",),
    ("plain_forward", "--schedule", "exact"),
)
PROCESSES = ("startup", "memory")
HEAD = (
    "| job | of plain | wanted | of nnsight | CPU s, product / plain / nnsight | token-layers, product / loops |",
    "| --- | ---: | ---: | ---: | ---: | ---: |",
)
STATES = "state_edits"
STATES_HEAD = ("| on a Gated DeltaNet model | measured | wanted | |", "| --- | ---: | ---: | --- |")
PROCESS_HEAD = ("| whole processes | measured | wanted | |", "| --- | ---: | ---: | --- |")


def answer(module: str, *options: str) -> list[dict] | dict:
    """What one benchmark says."""
    print(f"{module} {' '.join(options)}", file=sys.stderr, flush=True)
    words = [sys.executable, "-m", f"benchmarks.{module}", *options, "--json"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def race_row(said: dict, *, judged: bool) -> str:
    """A race as a row of the table; `judged`: on a model of the size that the wanted ratios are for."""
    times = " / ".join(f"{seconds:.3g}" for seconds in said["seconds"].values())
    work = f"{said['token_layers']['product']:,} / {said['token_layers']['plain']:,}"
    title = said["title"] if said["mode"] == "auto" else f"{said['title']}, `--schedule {said['mode']}`"
    ratios, wanted = said["ratios"], f"{said['limit']:.2f}" if judged else "–"
    return f"| {title} | {ratios['plain']:.3f} | {wanted} | {ratios['nnsight']:.3f} | {times} | {work} |"


def process_row(line: dict, *, judged: bool) -> str:
    """A measure of whole processes as a row; those that do not depend on the model are judged always."""
    wanted = f"{line['wanted']:.2f}" if judged or "/" not in line["name"] else "–"
    return f"| {line['name']} | {line['value']:.3f} | {wanted} | {line['note']} |"


def rows(options: Sequence[str], only: Sequence[str], *, judged: bool) -> Iterator[str]:
    """The table of one checkpoint, line by line as it is measured."""
    yield from HEAD
    for name, *more in RACES:
        if not only or name in only:
            said = answer(name, *more, *options)
            assert isinstance(said, dict)
            yield race_row(said, judged=judged)
    yield ""
    yield from PROCESS_HEAD
    for name in PROCESSES:
        if not only or name in only:
            for line in answer(name, *options):
                assert isinstance(line, dict)
                yield process_row(line, judged=judged)


def put(name: str, table: Sequence[str]) -> None:
    """Write a checkpoint's table between its markers."""
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    between = re.compile(re.escape(start) + ".*?" + re.escape(end), re.DOTALL)
    block = "\n".join((start, "", *table, "", end))
    PAGE.write_text(between.sub(lambda _: block, PAGE.read_text(), count=1))


def main() -> None:
    parser = argparse.ArgumentParser(description="All benchmarks.")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=Path, default=ROWS)
    parser.add_argument("--only", nargs="*", default=[], help="names of scripts; the page stays as it is")
    asked = parser.parse_args()
    models = {"weekdays-llama": BUNDLED}
    if folder := os.environ.get("CAUSALAB_SMOLLM2"):
        models["SmolLM2-135M"] = Path(folder).resolve()
    for name, weights in models.items():
        options = ("--weights", str(weights), "--rows", str(asked.rows.resolve()), "--repeats", str(asked.repeats))
        table: list[str] = []
        print(f"\n{name}\n")
        for line in rows(options, asked.only, judged=weights != BUNDLED):
            print(line, flush=True)
            table.append(line)
        if not asked.only:
            put(name, table)
    if not asked.only or STATES in asked.only:
        lines = answer(STATES, "--repeats", str(asked.repeats))
        table = [*STATES_HEAD, *(process_row(line, judged=True) for line in lines if isinstance(line, dict))]
        print("", *table, sep="\n")
        if not asked.only:
            put(STATES, table)


if __name__ == "__main__":
    main()
