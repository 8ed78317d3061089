"""Paths and parts the refusal tables share."""

from __future__ import annotations

import copy

from tests.unit.spec.build import document

SWAP = "interventions.swap"
READ, WRITE = f"{SWAP}.reads.v_cf", f"{SWAP}.writes.patch"
HEAD, MODEL, METRIC = f"{SWAP}.reads.logits", f"{SWAP}.models.patched", f"{SWAP}.metrics.p"
STEP = "steps.score"


def generated(**cut: object) -> dict:
    return {"frame": "generated", **cut}


def metric(kind: str, **fields: object) -> dict:
    return {"kind": kind, "of": "logits", **fields}


SECOND = {"site": "early", "pos": -1, "mechanism": "swap", "operand": "v_cf"}
OTHER = {"reads": {"r": {"site": "early", "pos": 0, "input": "base"}}}
MEAN = {"kind": "observe", "rows": {"base": "a/b"}, "interventions": "means", "outputs": {"m": "r"}}


def two_steps(*edits: tuple[str, object]) -> list[tuple[str, object]]:
    """A first step that publishes `m`, and a write that takes it."""
    steps = {"first": copy.deepcopy(MEAN), "score": document()["steps"]["score"]}
    means = copy.deepcopy(OTHER)
    return [(f"{SWAP}.writes.patch.operand", {"ref": "m"}), ("interventions.means", means), ("steps", steps), *edits]
