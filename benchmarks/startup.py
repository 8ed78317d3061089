"""Whole processes: the command running the layer sweep beside the plain script, and the verbs that need no weights."""

from __future__ import annotations

from statistics import median

from benchmarks.documents import ROOT, depth_of, fitted
from benchmarks.processes import COMMAND, Ground, Line, ground, spend, tell

OWN = ROOT / "documents" / "v2"
"""The shipped documents on the bundled checkpoints."""


def sweep(ground: Ground) -> Line:
    """The layer sweep from nothing to its files."""
    document = fitted("layer_sweep", depth_of(ground.weights))
    turns = [(ground.run(document).seconds, ground.script().seconds) for _ in range(ground.repeats)]
    command, script = (median(column) for column in zip(*turns, strict=True))
    ratio = median(one / other for one, other in turns)
    return Line("run of the layer sweep / plain script", ratio, 0.35, f"CPU seconds {command:.2f} / {script:.2f}")


def light(verb: str, wanted: float, repeats: int, *options: str) -> Line:
    """The shipped document with the most CPU seconds under a verb."""
    took = {
        path.name: median(spend("-c", COMMAND, verb, str(path), *options).seconds for _ in range(repeats))
        for path in sorted(OWN.glob("*.json"))
    }
    worst = max(took, key=took.__getitem__)
    return Line(f"{verb}, CPU seconds", took[worst], wanted, f"the slowest of {len(took)} documents, {worst}")


def measure(ground: Ground) -> list[Line]:
    """Everything about start-up."""
    return [
        sweep(ground),
        light("validate", 0.4, ground.repeats),
        light("explain", 1.0, ground.repeats, "--schedule"),
    ]


if __name__ == "__main__":
    with ground("Start-up: CPU seconds of whole processes.") as (here, as_json):
        tell(measure(here), as_json=as_json)
