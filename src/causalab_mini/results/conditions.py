"""Everything but the document that a point's numbers depend on, by name: under it a finished point is kept.

Knows plans and what run.json knows; touches no model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from causalab_mini.plan.nodes import Experiment, Observe, Point
from causalab_mini.results.provenance import Machinery, ModelRecord, code_digest, versions
from causalab_mini.results.strict import fingerprint


@dataclass(frozen=True)
class Conditions:
    """What the numbers depend on: `shared` by all points, and the digest of every table by its ref."""

    shared: Mapping[str, str]
    tables: Mapping[str, str]

    def of(self, point: Point) -> dict[str, str]:
        """The conditions of one point: its own tables and featurizers beside what all share."""
        observes = tuple(point.plan.observes())
        refs = sorted({forward.batch.ref for observe in observes for forward in observe.forwards})
        data = {f"the data of {ref}": self.tables[ref] for ref in refs if ref in self.tables}
        spaces = sorted({found for observe in observes for found in _spaces(observe)})
        return {**self.shared, **data, **{f"the featurizer '{name}'": digest for name, digest in spaces}}


def conditions(experiment: Experiment, model: ModelRecord, machinery: Machinery, mode: str) -> Conditions:
    """The conditions of a run. `mode`: that of the schedule, whose passes may move the last bit."""
    shared = {
        "the model's files": fingerprint([model.resolved, dict(model.files)]),
        "the code": code_digest(),
        **versions(),
        "--engine": machinery.engine,
        "the device": machinery.device,
        "the dtype": machinery.dtype,
        "the attention implementation": str(machinery.attn_implementation),
        "--batch-size": str(machinery.batch_size),
        "--schedule": mode,
    }
    return Conditions(shared, dict(experiment.tables))


def _spaces(observe: Observe) -> set[tuple[str, str]]:
    taps = (tap for forward in observe.forwards for tap in (*forward.reads, *forward.writes))
    return {(tap.space.name, tap.space.sha256) for tap in taps if tap.space is not None and tap.space.sha256}
