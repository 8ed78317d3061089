"""What is to be said of a run beside its numbers, each thing once: warnings, metrics without a value, idle writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from causalab_mini.results.completion import Completion, WriteEntry
from causalab_mini.results.summary import SummaryLine


def warned(completions: Iterable[Completion], points: int) -> list[str]:
    """The warnings of complete points, of an experiment of so many."""
    return _told(((record.point, warning) for record in completions for warning in record.warnings), points)


def unscored(lines: Sequence[SummaryLine], points: int) -> list[str]:
    """The metrics that no row of a point has, and why."""
    steps = len({line.observe for line in lines})
    found = ((line.point, _reasons(line, steps)) for line in lines if line.n_rows and not line.n_scored)
    return _told(found, points)


def idle(writes: Iterable[WriteEntry], points: int) -> list[str]:
    """The writes that changed nothing on some row they acted on, or acted on none."""
    writes = list(writes)
    steps = len({write.observe for write in writes})
    return _told(((write.point, said) for write in writes if (said := _idle(write, steps))), points)


def strange(lines: Sequence[SummaryLine]) -> list[str]:
    """The metrics of which some scored number is not finite."""
    return [
        f"{line.point}{': ' if line.point else ''}'{line.metric}' is not finite "
        f"on {line.n_non_finite} of {line.n_rows} rows"
        for line in lines
        if line.n_non_finite
    ]


def _idle(write: WriteEntry, steps: int) -> str | None:
    name = f"write '{write.write}' of '{write.model}'" + (f" in '{write.observe}'" if steps > 1 else "")
    if not any(write.firings):
        return f"{name} acted on no row"
    return f"{name} changed nothing on {write.still} of {len(write.firings)} rows" if write.still else None


def _reasons(line: SummaryLine, steps: int) -> str:
    reasons = ", ".join(f"{reason} on {count}" for reason, count in line.reasons.items())
    layer = "" if line.layer is None else f" at layer {line.layer}"
    step = f" in '{line.observe}'" if steps > 1 else ""
    return f"'{line.metric}'{layer}{step} has a value on none of {line.n_rows} rows: {reasons}"


def _told(found: Iterable[tuple[str, str]], points: int) -> list[str]:
    """Each sentence with the points it is about, where there are several."""
    where: dict[str, list[str]] = {}
    for point, sentence in found:
        where.setdefault(sentence, []).append(point)
    return [
        sentence if points == 1 else f"{sentence}, at {_counted(labels, points)}" for sentence, labels in where.items()
    ]


def _counted(labels: Sequence[str], points: int) -> str:
    distinct = list(dict.fromkeys(labels))
    return distinct[0] if len(distinct) == 1 else f"{len(distinct)} of {points} points, first {distinct[0]}"
