"""A job's three programs beside each other: the numbers must agree, then they take turns and their CPU seconds count.

The seconds are this process's, on one thread, after loading, planning and one turn of each to warm up. The ratio is the
median over rounds of the product's seconds to the other program's in the same round.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import get_args

import torch

from benchmarks.agreement import LARGEST_DIFFERENCE, apart, token_layers
from benchmarks.common import ENGINES, Outcome, World
from benchmarks.documents import BUNDLED, ROWS
from causalab_mini.schedule.optimize import Mode


@dataclass(frozen=True)
class Job:
    """One job: its document's name and the two loops. `limit`: the ratio to the plain loop that is good enough."""

    name: str
    title: str
    limit: float
    plain: Callable[[World], Outcome]
    traced: Callable[[World], Outcome]


@dataclass(frozen=True)
class Result:
    """What one race said: seconds, ratios and token-layers by program, and how far the numbers lie apart."""

    job: str
    title: str
    model: str
    engine: str
    mode: str
    limit: float
    seconds: dict[str, float]
    ratios: dict[str, float]
    token_layers: dict[str, int]
    difference: float

    def __str__(self) -> str:
        times = ", ".join(f"{name} {seconds:.3f} s" for name, seconds in self.seconds.items())
        ratios = ", ".join(f"{ratio:.3f} of {name}" for name, ratio in self.ratios.items())
        work = " / ".join(f"{count:,}" for count in self.token_layers.values())
        return (
            f"{self.job} on {self.model} ({self.engine}, {self.mode}): {ratios} "
            f"(wanted: {self.limit:.3g} of plain); {times}; token-layers {work}; largest difference "
            f"{self.difference:.1e}, same ids"
        )


@dataclass(frozen=True)
class Checked:
    """What agreed: token-layers by program, and the largest difference."""

    token_layers: dict[str, int]
    difference: float


def programs(job: Job, world: World) -> dict[str, Callable[[], Outcome]]:
    """The three programs of a job."""
    return {"product": world.run, "plain": lambda: job.plain(world), "nnsight": lambda: job.traced(world)}


def check(job: Job, world: World) -> Checked:
    """Hold the numbers of the three against each other, and what the product tells of its work against its blocks."""
    models = {"product": world.product.network.model, "plain": world.plain, "nnsight": world.unwrapped}
    found: dict[str, Outcome] = {}
    counts: dict[str, int] = {}
    for name, program in programs(job, world).items():
        with token_layers(models[name]) as counted:
            found[name] = program()
        counts[name] = sum(counted)
    told = world.product.done.token_layers
    if counts["product"] != told:
        raise SystemExit(f"{job.name}: the run tells of {told} token-layers, its blocks of {counts['product']}")
    difference = max(apart(found["product"], found["plain"]), apart(found["product"], found["nnsight"]))
    if not difference <= LARGEST_DIFFERENCE:
        raise SystemExit(f"{job.name}: numbers are {difference} apart")
    return Checked(counts, difference)


def race(job: Job, world: World, repeats: int) -> Result:
    """Check a job, then let its programs take turns."""
    checked = check(job, world)
    entrants = programs(job, world)
    rounds = [{name: seconds(program) for name, program in entrants.items()} for _ in range(repeats)]
    return Result(
        world.name,
        job.title,
        world.weights.name,
        world.engine,
        world.mode,
        job.limit,
        {name: median(turn[name] for turn in rounds) for name in entrants},
        {name: median(turn["product"] / turn[name] for turn in rounds) for name in ("plain", "nnsight")},
        checked.token_layers,
        checked.difference,
    )


def seconds(program: Callable[[], Outcome]) -> float:
    """The CPU seconds of this process that `program` takes."""
    gc.collect()
    began = time.process_time()
    program()
    return time.process_time() - began


def settle() -> None:
    """One thread, on one core where the system lets a process choose."""
    torch.set_num_threads(1)
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[os.getpid() % len(cores)]})


def main(job: Job) -> None:
    """Run one job from the command line."""
    parser = argparse.ArgumentParser(description=job.title)
    parser.add_argument("--weights", type=Path, default=BUNDLED, help="a Llama's folder; default: the bundled one")
    parser.add_argument("--rows", type=Path, default=ROWS, help="a data root with bench/calendar and bench/harvest")
    parser.add_argument("--document", default=job.name, help="another document of documents/bench for the same loops")
    parser.add_argument("--engine", choices=ENGINES, default="traced")
    parser.add_argument("--schedule", choices=get_args(Mode), default="auto")
    parser.add_argument("--repeats", type=int, default=3, help="rounds to take the median of")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    asked = parser.parse_args()
    settle()
    world = World(asked.document, asked.weights, asked.rows, asked.engine, asked.schedule)
    result = race(job, world, asked.repeats)
    print(json.dumps(asdict(result)) if asked.json else result)
