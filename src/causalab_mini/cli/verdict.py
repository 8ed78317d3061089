"""What a check found, on one screen and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from causalab_mini.cli.checking import Checked, Comparison, Written
from causalab_mini.results.strict import JSON

SHOWN = 8
"""How many writes are shown, and how many rows that differ in kind."""


def page(checked: Checked, name: str) -> str:
    """The screen: what was compared, the largest differences, what every write did, the verdict."""
    part = f"{len(checked.labels)} of {checked.points} points" if checked.points > 1 else "one point"
    lines = [f"{name}: {part}, {checked.dtype} on {checked.device}", ""]
    for comparison in checked.comparisons:
        lines += _comparison(comparison)
    lines += ["", *_writes(checked.written)]
    wrong = [comparison.name for comparison in checked.comparisons if not comparison.holds]
    lines.append(f"out of bounds: {'; '.join(wrong)}" if wrong else "all within bounds")
    return "\n".join(lines)


def problems(checked: Checked) -> list[str]:
    """One sentence for every comparison that is out of bounds."""
    return [f"{one.name}: {_said(one)}" for one in checked.comparisons if not one.holds]


def tree(checked: Checked) -> dict[str, object]:
    """The same for programs, writes row by row."""
    return {
        "ok": checked.holds,
        "points": {"checked": list(checked.labels), "all": checked.points},
        "dtype": checked.dtype,
        "device": checked.device,
        "comparisons": [_comparison_tree(comparison) for comparison in checked.comparisons],
        "writes": [_written_tree(written) for written in checked.written],
    }


def _comparison(one: Comparison) -> Iterator[str]:
    held = "to the bit" if one.bound is None else f"to {one.bound:g}"
    yield f"{'ok  ' if one.holds else 'BAD '} {one.name}, held {held}: {_said(one)}"
    for gap in one.gaps[:1] if one.holds else one.gaps:
        if gap.largest > 0:
            yield f"       {gap.largest:.2g} of {gap.size:.3g} in {gap.what}, row '{gap.example_id}'{_at(gap.point)}"
    for row in one.apart[:SHOWN]:
        yield f"       another {_kind(row.what)} in {row.what}, row '{row.example_id}'{_at(row.point)}"
    if len(one.apart) > SHOWN:
        yield f"       and {len(one.apart) - SHOWN} rows more"
    if one.near:
        yield f"       {len(one.near)} rows say other tokens after a near tie, and are left out"


def _said(one: Comparison) -> str:
    if one.apart:
        return f"{len(one.apart)} rows differ in kind"
    if not one.values:
        return "nothing to compare"
    worst = one.gaps[0].relative
    return f"{one.values} values, equal" if worst == 0 else f"{one.values} values, at most {worst:.2g} apart"


def _kind(what: str) -> str:
    return "token" if what.endswith(".generated") else "reason or length"


def _at(point: str) -> str:
    return f" at {point}" if point else ""


def _writes(written: Sequence[Written]) -> Iterator[str]:
    if not written:
        yield "no writes"
        return
    for one in _strongest(written):
        acted = sum(firings > 0 for firings in one.firings)
        counts = sorted(set(one.firings) - {0})
        often = "-".join(map(str, dict.fromkeys((counts[0], counts[-1])))) if counts else "0"
        reads = ", ".join(f"{name} {_range(changes)}" for name, changes in one.at_reads.items())
        yield f"write '{one.write}' of '{one.model}' on '{one.role}'{_at(one.point)}"
        yield (
            f"       acts on {acted} of {len(one.firings)} rows, {often} times each; "
            f"changes its site by {_range(one.at_site)}{f'; reads by: {reads}' if reads else ''}"
        )
        still = sum(one.still)
        if still or not acted:
            yield f"       it changes nothing on {still if acted else len(one.firings)} of {len(one.firings)} rows"
    rest = len(written) - SHOWN
    if rest > 0:
        yield f"and {rest} writes more at other points; --json has every row of every one"
    yield ""


def _strongest(written: Sequence[Written]) -> Sequence[Written]:
    """The writes shown: those that do least at their site come first, since they are what one looks for."""
    if len(written) <= SHOWN:
        return written
    return sorted(written, key=lambda one: max(_numbers(one.at_site), default=0.0))[:SHOWN]


def _range(changes: Sequence[float | None]) -> str:
    """The smallest and the largest of the rows' changes."""
    numbers = _numbers(changes)
    if not numbers:
        return "-"
    low, high = f"{min(numbers):.3g}", f"{max(numbers):.3g}"
    return high if low == high else f"{low} to {high}"


def _numbers(changes: Iterable[float | None]) -> list[float]:
    return [change for change in changes if change is not None and math.isfinite(change)]


def _comparison_tree(one: Comparison) -> dict[str, JSON]:
    return {
        "name": one.name,
        "ok": one.holds,
        "bound": one.bound,
        "values": one.values,
        "largest": [
            {
                "point": gap.point,
                "observe": gap.observe,
                "what": gap.what,
                "example_id": gap.example_id,
                "difference": gap.largest if math.isfinite(gap.largest) else None,
                "size": gap.size,
            }
            for gap in one.gaps
        ],
        "apart": [
            {"point": row.point, "observe": row.observe, "what": row.what, "example_id": row.example_id}
            for row in one.apart
        ],
        "near_ties": len(one.near),
    }


def _written_tree(one: Written) -> dict[str, object]:
    return {
        "point": one.point,
        "observe": one.observe,
        "write": one.write,
        "model": one.model,
        "role": one.role,
        "rows": [
            {
                "example_id": example_id,
                "firings": one.firings[row],
                "at_site": _finite(one.at_site[row]),
                "at_reads": {name: _finite(changes[row]) for name, changes in one.at_reads.items()},
            }
            for row, example_id in enumerate(one.example_ids)
        ],
    }


def _finite(change: float | None) -> float | None:
    return change if change is None or math.isfinite(change) else None
