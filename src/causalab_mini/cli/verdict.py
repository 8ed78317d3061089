"""What a check found, on one screen and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from os import terminal_size

from causalab_mini.cli.checking import Checked, Comparison, Written
from causalab_mini.results.strict import JSON

SHOWN = 8
"""How many writes are shown, and how many rows that differ in kind."""
LEAST = 6
"""How many lines of a terminal one write takes, with what stands below it."""


def page(checked: Checked, name: str, room: terminal_size | None = None) -> str:
    """The screen: what was compared, the largest differences, what every write did, the verdict.

    `room`: the terminal it has to fit into, where it is one; then as many differences and writes as there are lines.
    """
    part = f"{len(checked.labels)} of {checked.points} points" if checked.points > 1 else "one point"
    title = [f"{name}: {part}, {checked.dtype} on {checked.device}", ""]
    wrong = [comparison.name for comparison in checked.comparisons if not comparison.holds]
    verdict = [f"out of bounds: {'; '.join(wrong)}" if wrong else "all within bounds"]
    for most in (SHOWN, 3, 1, 0):
        found = [line for comparison in checked.comparisons for line in _comparison(comparison, most)]
        # The last line of a terminal is the prompt's; one write is shown in any case.
        free = SHOWN if room is None else room.lines - 1 - _height([*title, *found, "", *verdict], room.columns)
        if free >= LEAST:
            break
    return "\n".join([*title, *found, "", *_writes(checked.written, free, room), *verdict])


def _height(lines: Iterable[str], columns: int) -> int:
    """How many lines of a terminal lines take."""
    return sum(max(1, -(-len(line) // columns)) for line in lines)


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


def _comparison(one: Comparison, most: int) -> Iterator[str]:
    """What was held against what, and below it at most so many of each kind of difference; of 0, the worst of all."""
    held = "to the bit" if one.bound is None else f"to {one.bound:g}"
    yield f"{'ok  ' if one.holds else 'BAD '} {one.name}, held {held}: {_said(one)}"
    gaps = one.gaps[: min(1, most) if one.holds else most or int(not one.apart)]
    for gap in gaps:
        if gap.largest > 0:
            yield f"       {gap.largest:.2g} of {gap.size:.3g} in {gap.what}, row '{gap.example_id}'{_at(gap.point)}"
    for row in one.apart[: most or 1]:
        yield f"       another {_kind(row.what)} in {row.what}, row '{row.example_id}'{_at(row.point)}"
    if len(one.apart) > most > 0:
        yield f"       and {len(one.apart) - most} rows more"
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


def _writes(written: Sequence[Written], free: int, room: terminal_size | None) -> Iterator[str]:
    """The writes, as many as `SHOWN`, or as have room in `free` lines: then those that do least at their site."""
    if not written:
        yield "no writes"
        return
    shown = [list(_written(one)) for one in _least(written)[:SHOWN]]
    if room is not None:
        # Below them stand how many there are more, and an empty line.
        ends = list(accumulate(_height(lines, room.columns) for lines in shown))
        fit = sum(end <= free - 1 - (len(written) > 1) for end in ends)
        shown = shown[: max(1, fit)]
    if len(shown) == len(written):
        shown = [_written(one) for one in written]
    for lines in shown:
        yield from lines
    rest = len(written) - len(shown)
    if rest > 0:
        yield f"and {rest} writes more; --json has every row of every one"
    yield ""


def _written(one: Written) -> Iterator[str]:
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
    elif one.at_reads and not any(change for changes in one.at_reads.values() for change in _numbers(changes)):
        yield "       none of its model's reads comes by what it changes"


def _least(written: Sequence[Written]) -> Sequence[Written]:
    """Those that do least at their site come first, since they are what one looks for."""
    return sorted(written, key=lambda one: max(_numbers(one.at_site), default=0.0))


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
