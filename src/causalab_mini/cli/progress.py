"""How a run shows on stderr: a bar on a terminal, a line a point when piped, and the summary as a table."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from causalab_mini.cli.voice import Voice
from causalab_mini.results.layout import SUMMARY_CSV
from causalab_mini.results.summary import SummaryLine

SHOWN = 100

Report = Callable[[str, str], None]
"""Called for every finished point with its label and what became of it; once with `STOPPING` when that is asked for."""
STOPPING = "stopping"
STOPS = "stopping when the call in flight has ended; Ctrl-C again stops at once"


class Display(StrEnum):
    """How progress shows."""

    RICH = "rich"
    PLAIN = "plain"
    NONE = "none"


def display_of(asked: Display | None, *, quiet: bool = False) -> Display:
    """The display that is asked for; else a bar on a terminal, and a line a point elsewhere."""
    if quiet:
        return Display.NONE
    return asked or (Display.RICH if sys.stderr.isatty() else Display.PLAIN)


@contextmanager
def progress(voice: Voice, points: int, display: Display) -> Generator[Report]:
    """What to call for every point of a run of so many."""
    if display is Display.RICH:
        with _bar(points) as report:
            yield report
        return
    if display is Display.NONE:
        yield lambda label, fate: None if fate != STOPPING else voice.tell(STOPS)
        return
    began, seen = time.perf_counter(), 0

    def line(label: str, fate: str) -> None:
        nonlocal seen
        if fate == STOPPING:
            return voice.tell(STOPS)
        seen += 1
        seconds = time.perf_counter() - began
        return voice.tell(f"{label or 'the document'}: {fate} ({seen}/{points}, {seconds:.1f} s)")

    yield line


@contextmanager
def _bar(points: int) -> Generator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("points", total=points)

        def step(label: str, fate: str) -> None:
            if fate == STOPPING:
                return shown.console.print(STOPS, highlight=False)
            return shown.update(task, advance=1, description=label or "points")

        yield step


def summary_table(lines: Sequence[SummaryLine], out: Path) -> str:
    """Point, metric, layer of a stacked site, mean, spread, interval and how many rows were scored, in columns.

    A long table is cut and says where the rest is.
    """
    steps = len({line.observe for line in lines}) > 1
    swept, stacked = any(line.point for line in lines), any(line.layer is not None for line in lines)
    header = [*(["point"] if swept else []), *(["step"] if steps else []), "metric", *(["layer"] if stacked else [])]
    header += ["mean", "sd", "95 % interval", "n scored / n rows"]
    rows = [
        [
            *([line.point] if swept else []),
            *([line.observe] if steps else []),
            line.metric,
            *(["" if line.layer is None else str(line.layer)] if stacked else []),
            _number(line.mean),
            _number(line.sd),
            "-" if line.low is None else f"{line.low:.4g} to {line.high:.4g}",
            f"{line.n_scored} / {line.n_rows}",
        ]
        for line in lines[:SHOWN]
    ]
    if not lines:
        return "no metrics"
    text = columns(header, rows, numbers=4)
    rest = len(lines) - SHOWN
    return text + (f"\n… and {rest} more lines in {out / SUMMARY_CSV}" if rest > 0 else "")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def columns(header: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: int) -> str:
    """A table for people, the last `numbers` columns to the right."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column >= len(header) - numbers else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [header, ["-" * width for width in widths], *rows]
    )
