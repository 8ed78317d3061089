"""Where the files of a run lie under its directory.

document.json, run.json, summary.csv, summary.json     the run's own
index=0/document.json, index=0/p_answer.json, …        a point's; a point without a label lies at the top
.run/                                                  what makes a run resumable: a lock, who owns the
                                                       directory, one completion record per point
"""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path, PurePosixPath

from causalab_mini.plan.nodes import Experiment, Observe, Point, Save

DOCUMENT = "document.json"
RUN = "run.json"
SUMMARY_CSV = "summary.csv"
SUMMARY_JSON = "summary.json"
WRITTEN_LAST = (SUMMARY_CSV, SUMMARY_JSON, RUN)
"""What is there only when every point is complete."""

HIDDEN = ".run"
LOCK = f"{HIDDEN}/lock"
OWNER = f"{HIDDEN}/owner.json"
LONGEST_NAME = 255


def record_path(label: str) -> str:
    """Where the completion record of the point `label` lies."""
    return f"{HIDDEN}/points/{hashlib.sha256(label.encode()).hexdigest()[:32]}.json"


def save_path(point: Point, observe: Observe, save: Save) -> str:
    """Where a save lies; a child of a list of interventions has a directory of its own under the point's."""
    nested = observe.path if len(observe.path) > 1 else ()
    return str(PurePosixPath(point.label, *nested, save.file_path))


def document_path(point: Point) -> str:
    """Where a point's document lies."""
    return str(PurePosixPath(point.label, DOCUMENT))


def point_files(point: Point) -> tuple[str, ...]:
    """Every file of a point, its document first."""
    saves = [save_path(point, observe, save) for observe in point.plan.observes() for save in observe.saves]
    return (document_path(point), *saves)


def run_files(experiment: Experiment) -> tuple[str, ...]:
    """Every visible file a run of `experiment` writes."""
    points = [name for point in experiment.points for name in point_files(point)]
    return tuple(dict.fromkeys((DOCUMENT, *points, *WRITTEN_LAST)))


def in_the_way(out: Path, experiment: Experiment) -> str | None:
    """What stands where a run of `experiment` would write and cannot be replaced, as a sentence; None for nothing.

    Links above a file and in place of the lock would be followed out of `out`; those in place of other files are
    replaced.
    """
    records = (record_path(point.label) for point in experiment.points)
    names = (LOCK, OWNER, *records, *run_files(experiment))
    above = dict.fromkeys(parent for name in names for parent in PurePosixPath(name).parents if parent.name)
    for name in (*above, LOCK):
        if (out / name).is_symlink():
            return f"{out / name} is a link, and what a run writes stays in {out}"
    for name in above:
        if (out / name).exists() and not (out / name).is_dir():
            return f"{out / name} is a file, and a run makes a directory there"
    for name in names:
        if (out / name).is_dir() and not (out / name).is_symlink():
            return f"{out / name} is a directory, and a run writes a file there"
    return None


def writable(out: Path) -> None:
    """Raise the OSError that making `out` or its lock would raise, as far as can be told without making anything."""
    hidden = out / HIDDEN
    ground = next(path for path in (out / LOCK, hidden, *hidden.parents) if os.path.lexists(path))
    if ground != out / LOCK and not ground.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if not os.access(ground, os.W_OK | (os.X_OK if ground.is_dir() else os.R_OK)):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def too_long(experiment: Experiment) -> str | None:
    """A part of some file's path that file systems do not take, if there is one."""
    parts = (part for name in run_files(experiment) for part in PurePosixPath(name).parts)
    return next((part for part in parts if len(part.encode()) > LONGEST_NAME), None)
