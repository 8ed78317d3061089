"""Which points of an experiment the command line names."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from causalab_mini.errors import Problem, Refusal, suggest
from causalab_mini.plan.nodes import Experiment

LISTED = 12
"""How many labels a refusal lists."""


def selected(experiment: Experiment, patterns: Sequence[str]) -> tuple[str, ...]:
    """The labels that fit one of `patterns`, in order: all without any. Refused: a pattern that none fits.

    A pattern is a label, or some of its parts (`layer=3`), and may hold `*` and `?`.
    """
    labels = [point.label for point in experiment.points]
    if not patterns:
        return tuple(labels)
    if labels == [""]:
        raise Refusal(Problem("", "--points names points, and this document has no sweep", "leave it out"))
    problems = [
        Problem("", f"--points: no point fits '{pattern}'", _hint(pattern, labels))
        for pattern in patterns
        if not any(_fits(label, pattern) for label in labels)
    ]
    if problems:
        raise Refusal(problems)
    return tuple(label for label in labels if any(_fits(label, pattern) for pattern in patterns))


def _fits(label: str, pattern: str) -> bool:
    parts = label.split(",")
    return fnmatchcase(label, pattern) or all(
        any(fnmatchcase(part, wanted) for part in parts) for wanted in pattern.split(",")
    )


def _hint(pattern: str, labels: Sequence[str]) -> str:
    if len(labels) <= LISTED:
        return suggest(pattern, labels, "points")
    return f"the points are {labels[0]} to {labels[-1]}, as `run --dry-run` lists them"


def spread(experiment: Experiment, most: int) -> tuple[str, ...]:
    """At most so many labels: the first, the last, and some evenly between."""
    labels = [point.label for point in experiment.points]
    if len(labels) <= most:
        return tuple(labels)
    return tuple(labels[round(index * (len(labels) - 1) / (most - 1))] for index in range(most))
