"""The record that makes a point complete: what it was computed from, what it wrote, what the run's files say of it.

A point is kept by a later run when its document, everything its numbers come from and its files are unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from causalab_mini.plan.nodes import Point
from causalab_mini.results.layout import point_files, record_path
from causalab_mini.results.records import Observed
from causalab_mini.results.strict import fingerprint, is_finite, pretty, sha256_file
from causalab_mini.results.summary import SummaryLine, summarize

SHOWN = 4
"""How many names a sentence lists."""


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
    """How often a write acted and the largest change it made, per row; null where it did not act or overflowed.

    `still`: on how many rows that is nothing.
    """

    point: str
    observe: str
    write: str
    model: str
    firings: tuple[int, ...]
    largest_change: tuple[float | None, ...]
    still: int = 0


class Completion(_Stored):
    """One complete point. `conditions` is everything but the document that its numbers depend on, by name."""

    format: Literal["causalab-mini/point/3"] = "causalab-mini/point/3"
    point: str
    digest: str
    conditions: dict[str, str]
    files: dict[str, str]
    summary: tuple[SummaryLine, ...]
    near_ties: tuple[NearTieEntry, ...]
    writes: tuple[WriteEntry, ...]
    warnings: tuple[str, ...]
    seconds: float
    peak_bytes: int | None


class _Sealed(_Stored):
    """A record as it is stored. `sha256`: of the record, as the summary is made of records and no file tells theirs."""

    record: Completion
    sha256: str


def sealed(record: Completion) -> bytes:
    """What the file of a record holds."""
    return pretty({"record": (stored := record.model_dump(mode="json")), "sha256": fingerprint(stored)})


def _opened(content: bytes) -> Completion | None:
    """The record in a file's content; None where it is not as it was written."""
    found = _Sealed.model_validate_json(content)
    return found.record if found.sha256 == fingerprint(found.record.model_dump(mode="json")) else None


@dataclass(frozen=True)
class Standing:
    """What a directory has of a point: its record where it is complete, and else why it has to run.

    `there`: whether it was complete once, so that there may be files of it.
    """

    record: Completion | None
    reason: str
    there: bool = True


def standing(out: Path, point: Point, conditions: Mapping[str, str]) -> Standing:
    """How `point` stands under `conditions`. A point is complete where its files are as its record left them."""
    try:
        record = _opened((out / record_path(point.label)).read_bytes())
    except FileNotFoundError:
        return Standing(None, "not run yet", there=False)
    except (OSError, ValidationError):
        return Standing(None, "its record cannot be read")
    if record is None:
        return Standing(None, "its record is not as it was written")
    if (record.point, record.digest) != (point.label, point.digest):
        return Standing(None, "its document is another")
    if (what := _changed(record.conditions, conditions)) is not None:
        return Standing(None, what)
    _, *saves = point_files(point)
    if set(record.files) != set(saves):
        return Standing(None, "it saves other files")
    for name, digest in record.files.items():
        if not _unchanged(out / name, digest):
            return Standing(None, f"{name} is {'not as it was written' if os.path.lexists(out / name) else 'missing'}")
    return Standing(record, "complete")


def complete(
    out: Path,
    point: Point,
    conditions: Mapping[str, str],
    observed: tuple[Observed, ...],
    seconds: float,
    peak_bytes: int | None,
) -> Completion:
    """The record of a point whose files are all written."""
    _, *saves = point_files(point)
    return Completion(
        point=point.label,
        digest=point.digest,
        conditions=dict(conditions),
        files={name: sha256_file(out / name) for name in saves},
        summary=summarize(point, observed),
        near_ties=tuple(_near_ties(observed)),
        writes=tuple(_writes(observed)),
        warnings=tuple(dict.fromkeys(warning for step in observed for warning in step.warnings)),
        seconds=seconds,
        peak_bytes=peak_bytes,
    )


def _changed(before: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    """What differs between the conditions of a record and those of now, as a sentence; None where nothing does."""
    names = [name for name in dict.fromkeys((*before, *now)) if before.get(name) != now.get(name)]
    if not names:
        return None
    listed = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
    return f"changed since: {listed}"


def _unchanged(path: Path, digest: str) -> bool:
    try:
        return path.is_file() and sha256_file(path) == digest
    except OSError:  # It is there and cannot be read.
        return False


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
                still=sum(report.still),
            )
