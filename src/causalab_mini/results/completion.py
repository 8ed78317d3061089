"""The record that makes a point complete: what it was computed from, what it wrote, what the run's files say of it.

A point is kept by a later run when its document, everything its numbers come from and its files are unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from causalab_mini.plan.nodes import Point
from causalab_mini.results.layout import point_files, record_path
from causalab_mini.results.records import Observed
from causalab_mini.results.strict import is_finite, sha256_file
from causalab_mini.results.summary import SummaryLine, summarize


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class NearTieEntry(_Stored):
    """A greedy choice with a small margin."""

    point: str
    observe: str
    forward: str
    example_id: str
    step: int
    margin: float


class WriteEntry(_Stored):
    """How often a write acted and the largest change it made, per row; null where it did not act or overflowed."""

    point: str
    observe: str
    write: str
    model: str
    firings: tuple[int, ...]
    largest_change: tuple[float | None, ...]


class Completion(_Stored):
    """One complete point. `conditions` is the fingerprint of everything but the document that its numbers depend on."""

    format: Literal["causalab-mini/point/1"] = "causalab-mini/point/1"
    point: str
    digest: str
    conditions: str
    files: dict[str, str]
    summary: tuple[SummaryLine, ...]
    near_ties: tuple[NearTieEntry, ...]
    writes: tuple[WriteEntry, ...]
    warnings: tuple[str, ...]
    seconds: float
    peak_bytes: int | None


def read_completion(out: Path, point: Point, conditions: str) -> Completion | None:
    """The record of `point` if it is complete under `conditions` and its files are as it left them, else None."""
    try:
        record = Completion.model_validate_json((out / record_path(point.label)).read_bytes())
    except (OSError, ValidationError):
        return None
    if (record.point, record.digest, record.conditions) != (point.label, point.digest, conditions):
        return None
    document, *saves = point_files(point)
    if set(record.files) != set(saves) or not (out / document).is_file():
        return None
    return record if all(_unchanged(out / name, digest) for name, digest in record.files.items()) else None


def complete(
    out: Path, point: Point, conditions: str, observed: tuple[Observed, ...], seconds: float, peak_bytes: int | None
) -> Completion:
    """The record of a point whose files are all written."""
    _, *saves = point_files(point)
    return Completion(
        point=point.label,
        digest=point.digest,
        conditions=conditions,
        files={name: sha256_file(out / name) for name in saves},
        summary=summarize(point, observed),
        near_ties=tuple(_near_ties(observed)),
        writes=tuple(_writes(observed)),
        warnings=tuple(dict.fromkeys(warning for step in observed for warning in step.warnings)),
        seconds=seconds,
        peak_bytes=peak_bytes,
    )


def _unchanged(path: Path, digest: str) -> bool:
    return path.is_file() and sha256_file(path) == digest


def _near_ties(observed: Iterable[Observed]) -> Iterable[NearTieEntry]:
    for step in observed:
        for tie in step.near_ties:
            yield NearTieEntry(point=step.point, observe="/".join(step.path), **asdict(tie))


def _writes(observed: Iterable[Observed]) -> Iterable[WriteEntry]:
    for step in observed:
        for report in step.writes:
            yield WriteEntry(
                point=step.point,
                observe="/".join(step.path),
                write=report.name,
                model=report.model,
                firings=report.firings,
                largest_change=tuple(change if is_finite(change) else None for change in report.largest_change),
            )
