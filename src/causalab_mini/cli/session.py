"""One run from a compiled document to the files of its directory: load, run, write each point as it is done."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.checkpoint.verdicts import Proof, Verdict, remember
from causalab_mini.cli.interrupts import interruptible
from causalab_mini.cli.progress import Report
from causalab_mini.cli.reading import Compiled, compile_again
from causalab_mini.errors import Interrupted
from causalab_mini.garbage import collected
from causalab_mini.plan.probes import chosen
from causalab_mini.results.completion import Standing
from causalab_mini.results.conditions import conditions
from causalab_mini.results.provenance import Machinery, ModelRecord, ScheduleRecord, partial, run_record
from causalab_mini.results.remarks import idle, unscored, warned
from causalab_mini.results.store import Store
from causalab_mini.results.summary import SummaryLine
from causalab_mini.schedule.optimize import Mode, settled

if TYPE_CHECKING:
    from causalab_mini.engine.contract import Engine
    from causalab_mini.engine.modules import Network
    from causalab_mini.run.runner import Run

AGAIN = "say the same again, and it goes on where it stopped"


@dataclass(frozen=True)
class Settings:
    """What the command line says about a run: never part of the experiment. `points`: labels; None for all."""

    engine: str
    device_map: str | None
    batch_size: int | None
    mode: Mode
    force: bool
    points: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Done:
    """What a run did: the paths it wrote, points run and kept, the summary of all complete points, what is left out.

    `warnings` are to be said, `unscored` metrics have no value at all somewhere, `idle` writes changed nothing.
    """

    written: tuple[Path, ...]
    run: int
    kept: int
    summary: tuple[SummaryLine, ...]
    partial: Mapping[str, object] | None = None
    warnings: tuple[str, ...] = ()
    unscored: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()


@dataclass(frozen=True)
class Planned:
    """A point of a run that has not begun: whether it would run, and why or why not."""

    point: str
    runs: bool
    reason: str


@dataclass(frozen=True)
class _Terms:
    """What a run's numbers come from, and its directory."""

    model: ModelRecord
    machinery: Machinery
    mode: Mode
    store: Store
    chosen: tuple[str, ...]


def _terms(compiled: Compiled, out: Path, settings: Settings) -> _Terms:
    from causalab_mini.engine.modules import best_device

    experiment, checkpoint, asked = compiled.experiment, compiled.checkpoint, compiled.source.model
    model = model_record(checkpoint)
    machinery = Machinery(
        engine=settings.engine,
        device=settings.device_map or best_device().type,
        dtype=asked.dtype,
        attn_implementation=asked.attn_implementation or _attention(checkpoint),
        batch_size=settings.batch_size,
    )
    mode = settled(settings.mode, half=asked.dtype != "fp32")
    under = conditions(experiment, model, machinery, mode)
    stamp = {"model": model.key, "revision": model.revision, "resolved": model.resolved, "dtype": asked.dtype}
    store = Store(out, experiment, compiled.source.text, under, stamp=stamp, force=settings.force)
    chosen = settings.points or tuple(point.label for point in experiment.points)
    return _Terms(model, machinery, mode, store, chosen)


def planned(compiled: Compiled, out: Path, settings: Settings) -> tuple[Planned, ...]:
    """What `perform` would do with every point. Leaves no trace."""
    terms = _terms(compiled, out, settings)
    return tuple(
        Planned(label, False, _left_out(found))
        if label not in terms.chosen
        else Planned(label, found.record is None, found.reason)
        for label, found in terms.store.look().items()
    )


def _left_out(found: Standing) -> str:
    """Why a point is skipped that was not asked for; its files do not stay beside numbers of other conditions."""
    goes = found.there and found.record is None
    return f"not among --points; its files go ({found.reason})" if goes else "not among --points"


def perform(compiled: Compiled, out: Path, settings: Settings, report: Report) -> Done:
    """Run what is not complete in `out` and bring its files up to date."""
    experiment = compiled.experiment
    terms = _terms(compiled, out, settings)
    loaded, named = compiled.source.loaded, frozenset(terms.chosen)
    with terms.store as store:
        kept = store.kept
        missing = [label for label in terms.chosen if label not in kept]
        for label in terms.chosen:
            if label in kept:
                report(label, "kept")
        complete = len(kept) + len(missing)
        left_out = partial(experiment, complete, loaded.limit)
        done = _Ran([], nothing_run(terms.mode), ())

        def told(schedule: ScheduleRecord) -> dict[str, object]:
            eos_ids, overrides = compiled.checkpoint.eos_ids, compiled.source.overrides
            record = (experiment, terms.model, terms.machinery, schedule, eos_ids, store.completions(), len(kept))
            return run_record(*record, limit=loaded.limit, overrides=overrides)

        if missing or not store.finished(told(done.schedule)):
            ran = _run(compiled, terms, missing, report) if missing else done
            done = replace(ran, written=[*ran.written, *store.finish(told(ran.schedule))])
        summary, points = tuple(store.summary()), len(experiment.points)
        return Done(
            tuple(done.written),
            len(missing),
            len(kept & named),
            summary,
            left_out,
            (*done.warnings, *warned(store.completions(), points)),
            tuple(unscored(summary, points)),
            tuple(idle((write for record in store.completions() for write in record.writes), points)),
        )


def _attention(checkpoint: Checkpoint) -> str | None:
    """What a document gets that leaves `attn_implementation` open: of an unknown family, transformers' choice."""
    capability = checkpoint.config.capability
    return None if capability is None else capability.attention


@dataclass(frozen=True)
class _Ran:
    """What running wrote, the schedule as it ran, and what the weights let be said beyond the plan."""

    written: list[Path]
    schedule: ScheduleRecord
    warnings: tuple[str, ...] = ()


def proved(compiled: Compiled, network: Network, dtype: str) -> Compiled:
    """The same after the self-test of the loaded weights, where none is on file that is as close.

    Raises what the document is refused for where it uses something that the test speaks against.
    """
    checkpoint = compiled.checkpoint
    if checkpoint.verdict is not None and checkpoint.verdict.dtype in ("fp32", dtype):
        return compiled
    verdict = examine_and_remember(network, checkpoint)
    checkpoint = replace(checkpoint, verdict=verdict)
    if all(finding.proof is Proof.PROVED for finding in verdict.findings.values()) and not verdict.whole:
        return replace(compiled, checkpoint=checkpoint)
    return compile_again(compiled, checkpoint)


def examine_and_remember(network: Network, checkpoint: Checkpoint) -> Verdict:
    """Run the self-test; what it found is kept for later, unless it could not be run."""
    from causalab_mini.engine.selftest import examine

    verdict = examine(network, checkpoint)
    if verdict.findings:
        remember(checkpoint, verdict)
    return verdict


def opened(compiled: Compiled, attention: str | None, device: str | None) -> tuple[Compiled, Network]:
    """The document's model with its weights, and the plan as the weights bear it out."""
    from causalab_mini.engine.modules import best_device, load

    dtype = compiled.source.model.dtype
    network = load(compiled.checkpoint.folder, dtype, attention, device or best_device().type)
    return proved(compiled, network, dtype), network


ENGINES = ("traced", "hooks")


def engine_of(network: Network, name: str) -> Engine:
    """The engine called `name`, on a loaded model."""
    if name == "hooks":
        from causalab_mini.engine.hooks import Hooks

        return Hooks(network)
    from causalab_mini.engine.traced import Traced

    return Traced(network)


def _run(compiled: Compiled, terms: _Terms, missing: Collection[str], report: Report) -> _Ran:
    """Run the chosen points that are missing. `Interrupted` where it is stopped between two calls."""
    from causalab_mini.run.runner import Run

    before, machinery, store = compiled.experiment.warnings, terms.machinery, terms.store
    compiled, network = opened(compiled, machinery.attn_implementation, machinery.device)
    engine = engine_of(network, machinery.engine)
    part = chosen(compiled.experiment, frozenset(terms.chosen))
    skip = frozenset(terms.chosen) - frozenset(missing)
    written: list[Path] = []
    began = time.perf_counter()
    with collected(), interruptible(report) as stop:
        job = Run(part, compiled.checkpoint, network, engine, machinery.batch_size, terms.mode, skip=skip, stop=stop)
        for result in job.results():
            seconds = time.perf_counter() - began
            written += store.write(result.point, result.observed, seconds, peak_bytes())
            report(result.point.label, "done")
            began = time.perf_counter()
    if not store.kept.issuperset(missing):
        count = f"{len(store.kept)} of {len(compiled.experiment.points)} points are complete"
        raise Interrupted(f"interrupted: {count}", AGAIN)
    news = tuple(warning for warning in compiled.experiment.warnings if warning not in before)
    return _Ran(written, schedule_record(job), news)


def nothing_run(mode: Mode) -> ScheduleRecord:
    """The schedule of a run that found every point complete."""
    return ScheduleRecord(mode, "exact", (), 0, 0, 0, 0, 0, 0)


def model_record(checkpoint: Checkpoint) -> ModelRecord:
    """The checkpoint as provenance names it: a folder by the digest of its files, never by its path."""
    digest = checkpoint.digest()
    key = f"folder:{digest}" if checkpoint.source == "folder" else checkpoint.key
    files = dict(checkpoint.file_digests)
    return ModelRecord(key, checkpoint.revision, checkpoint.source, checkpoint.resolved or digest, files)


def schedule_record(run: Run) -> ScheduleRecord:
    """The schedule of a finished run as provenance tells it."""
    prepared, took = run.prepared, run.done
    return ScheduleRecord(
        mode=prepared.mode,
        promise=prepared.promise.value,
        passes=tuple(step.name for step in prepared.passes),
        calls=prepared.planned.calls,
        token_layers=prepared.planned.token_layers,
        naive_calls=prepared.naive.calls,
        naive_token_layers=prepared.naive.token_layers,
        run_calls=took.calls,
        run_token_layers=took.token_layers,
        halved=run.halved,
    )


def peak_bytes() -> int:
    """The most memory this process has held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
