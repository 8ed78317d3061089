"""What `check` runs of a document, and what it holds against what: every execution that must give the same numbers.

Rows alone against the batch, the schedule against the naive one, one engine against the other, and every write put
back to what was there, which must change nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from causalab_mini.plan.nodes import Experiment
from causalab_mini.plan.probes import (
    AS_IT_IS,
    PUT_BACK,
    UNWRITTEN,
    Probe,
    chosen,
    probes_of,
    probing,
    shown_as,
    watched,
)
from causalab_mini.schedule.optimize import Mode, Promise, settled

if TYPE_CHECKING:
    from causalab_mini.cli.reading import Compiled
    from causalab_mini.engine.contract import Engine
    from causalab_mini.engine.modules import Network
    from causalab_mini.results.records import Observed
    from causalab_mini.run.agreement import Apart, Gap
    from causalab_mini.run.runner import Run

BOUNDS: Mapping[str, float] = {"fp32": 1e-4, "fp16": 1e-2, "bf16": 5e-2}
"""The largest difference of a value, as a part of its size in the row (of 1 where it is smaller)."""
POINTS = 8
"""How many points are looked at where nothing is said: the first, the last, and some between."""
SHOWN = 3
"""How many of the largest differences are kept of each comparison."""

Outcome = dict[str, tuple["Observed", ...]]


@dataclass
class Comparison:
    """Two executions held against each other. `bound` None: they must be equal to the bit.

    `gaps`: the largest differences, the largest first; `apart`: rows that differ in kind, near ties left out.
    """

    name: str
    bound: float | None
    values: int = 0
    gaps: list[Gap] = field(default_factory=list["Gap"])
    apart: list[Apart] = field(default_factory=list["Apart"])
    near: list[Apart] = field(default_factory=list["Apart"])

    @property
    def holds(self) -> bool:
        """Whether all is within the bound."""
        worst = self.gaps[0].relative if self.gaps else 0.0
        return not self.apart and worst <= (self.bound or 0.0)

    def take(self, found: Iterable[Gap | Apart]) -> None:
        """Count more of what was found."""
        from causalab_mini.run.agreement import Gap

        for one in found:
            if isinstance(one, Gap):
                self.values += 1
                self.gaps.append(one)
            else:
                (self.near if one.near else self.apart).append(one)
        self.gaps = sorted(self.gaps, key=lambda gap: -gap.relative)[:SHOWN]


@dataclass(frozen=True)
class Written:
    """What one write did in one observe step, row by row; None where it did not act, or rows cannot be compared.

    `at_site`: the largest change at its place; `still`: where that is nothing. `at_reads`: by read of its model, the
    largest change against the same forward without this write.
    """

    point: str
    observe: str
    write: str
    model: str
    role: str
    example_ids: tuple[str, ...]
    firings: tuple[int, ...]
    at_site: tuple[float | None, ...]
    still: tuple[bool, ...]
    at_reads: Mapping[str, tuple[float | None, ...]]


@dataclass(frozen=True)
class Checked:
    """What a check found, of so many of the document's points and rows."""

    comparisons: tuple[Comparison, ...]
    written: tuple[Written, ...]
    dtype: str
    device: str
    labels: tuple[str, ...]
    points: int

    @property
    def holds(self) -> bool:
        """Whether everything is within its bound."""
        return all(comparison.holds for comparison in self.comparisons)


@dataclass(frozen=True)
class _Bench:
    compiled: Compiled
    network: Network
    engine: Engine

    def run(self, experiment: Experiment, mode: Mode, engine: Engine | None = None) -> Run:
        from causalab_mini.run.runner import Run

        return Run(experiment, self.compiled.checkpoint, self.network, engine or self.engine, None, mode)


def checked(compiled: Compiled, labels: Sequence[str], engine: str, device: str | None, mode: Mode) -> Checked:
    """Run the points `labels` in every way, and compare. `engine`: the one that runs everything but its twin's run."""
    from causalab_mini.cli import session

    compiled, network = session.opened(compiled, compiled.source.model.attn_implementation, device)
    dtype = compiled.source.model.dtype
    bound = BOUNDS[dtype]
    part = chosen(compiled.experiment, frozenset(labels))
    seen, bench = watched(part), _Bench(compiled, network, session.engine_of(network, engine))
    base = _outcome(bench.run(seen, "naive"))

    alone = Comparison("each row alone, and in the batch", bound)
    _compare(alone, base, bench.run(seen, "alone"))
    job = bench.run(seen, settled(mode, half=dtype != "fp32"))
    exact = job.prepared.promise is Promise.EXACT
    scheduled = Comparison(f"the {job.prepared.mode} schedule, and the naive one", None if exact else bound)
    _compare(scheduled, base, job)
    (twin,) = (name for name in session.ENGINES if name != engine)
    engines = Comparison(f"the engines {engine} and {twin}", bound)
    _compare(engines, base, bench.run(seen, "naive", session.engine_of(network, twin)))
    back = Comparison("every write putting back what is there, and no write", None)
    states = Comparison("every write to a state putting back what is there, and no write", bound)
    written = _probe(back, states, part, bench.run(probing(part), "naive"))
    comparisons = (alone, scheduled, engines, back, *([states] if states.values else []))
    places = (dtype, str(network.device), tuple(labels), len(compiled.experiment.points))
    return Checked(comparisons, written, *places)


def _outcome(run: Run) -> Outcome:
    return {result.point.label: result.observed for result in run.results()}


def _compare(comparison: Comparison, base: Outcome, run: Run) -> None:
    from causalab_mini.run.agreement import apart

    for result in run.results():
        for one, other in zip(base[result.point.label], result.observed, strict=True):
            comparison.take(apart(one, other))


def _probe(back: Comparison, states: Comparison, part: Experiment, run: Run) -> tuple[Written, ...]:
    """What every write did. A prompt is cut where a state is written, which may move the last bit of what follows."""
    plans = {point.label: point.plan for point in part.points}
    found: list[Written] = []
    for result in run.results():
        observes = {observe.path: observe for observe in plans[result.point.label].observes()}
        for observed in result.observed:
            for probe in probes_of(observes[observed.path]):
                variants = _Variants(observed, probe, observes[observed.path].example_ids)
                cut = any(write.place.component.state for write in probe.forward.writes)
                (states if cut else back).take(variants.put_back())
                found += variants.written()
    return tuple(found)


@dataclass(frozen=True)
class _Variants:
    """What the variants of one written forward brought."""

    observed: Observed
    probe: Probe
    example_ids: tuple[str, ...]

    def put_back(self) -> Iterable[Gap | Apart]:
        """Where putting back what is there changed something, or a write did not act where the plan has it."""
        from causalab_mini.run.agreement import Gap, apart

        for report in (*self._reports(AS_IT_IS), *self._reports(PUT_BACK)):
            for example_id, missed in zip(self.example_ids, report.missed, strict=True):
                if missed:
                    what = f"the times '{report.name}' was to act and did not"
                    yield Gap(self.observed.point, "/".join(self.observed.path), what, example_id, missed, missed)
        for report in self._reports(PUT_BACK):
            what = f"'{report.name}' at its place"
            for example_id, change in zip(self.example_ids, report.largest_change, strict=True):
                if change is not None:
                    size = change if math.isfinite(change) else math.inf
                    yield Gap(self.observed.point, "/".join(self.observed.path), what, example_id, size, 0.0)
        yield from apart(self._side(UNWRITTEN), self._side(PUT_BACK))

    def _side(self, variant: str) -> Observed:
        """What a variant brought, under names that do not tell which variant it was."""
        values = {self.probe.value(variant, read): shown_as(read.name) for read in self.probe.forward.reads}
        values[self.probe.generated(variant)] = f"{self.probe.forward.model}.generated"
        bundles = tuple(
            replace(
                bundle,
                name=values[bundle.name],
                tensors={
                    values[bundle.name] + name.removeprefix(bundle.name): tensor
                    for name, tensor in bundle.tensors.items()
                },
            )
            for bundle in self.observed.bundles
            if bundle.name in values
        )
        return replace(self.observed, bundles=bundles, tables=(), near_ties=())

    def _reports(self, variant: str):
        return [report for report in self.observed.writes if report.model == self.probe.model(variant)]

    def written(self) -> Iterable[Written]:
        """What every write did."""
        without = dict(self.probe.without)
        for report in self._reports(AS_IT_IS):
            lacking = without.get(report.name, UNWRITTEN)
            changes = {
                read.name: self._changes(self.probe.value(AS_IT_IS, read), self.probe.value(lacking, read))
                for read in self.probe.forward.reads
            }
            yield Written(
                self.observed.point,
                "/".join(self.observed.path),
                report.name,
                self.probe.forward.model,
                self.probe.forward.role,
                self.example_ids,
                report.firings,
                report.largest_change,
                report.still,
                changes,
            )

    def _changes(self, name: str, other: str) -> tuple[float | None, ...]:
        from causalab_mini.run.agreement import by_row, largest

        bundles = {bundle.name: bundle for bundle in self.observed.bundles}
        one, two = by_row(bundles[name]), by_row(bundles[other])
        return tuple(
            largest(one[row], two[row]) if one[row].shape == two[row].shape and one[row].isfinite().all() else None
            for row in self.example_ids
        )
