"""run: do what a document says, and keep what it asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from causalab_mini.cli.options import (
    DEFAULT_DATA_ROOT,
    AsJson,
    DataRoot,
    Debug,
    DeviceMap,
    DocumentPath,
    EngineName,
    Gen,
    Limit,
    Points,
    ScheduleName,
    Set,
    Weights,
    voice_of,
)
from causalab_mini.cli.progress import Display, display_of, progress, summary_table
from causalab_mini.cli.reading import compile_document
from causalab_mini.cli.voice import Voice
from causalab_mini.errors import OutputRefusal, Problem

if TYPE_CHECKING:
    from causalab_mini.cli.session import Done, Planned

EXAMPLES = (
    "causalab-mini run documents/v2/generate_probe.json --out out/gen",
    "causalab-mini run documents/real/weekdays_patching.json --out out/real --weights ~/models/smollm2",
    "causalab-mini run documents/v2/layer_position.json --out out/grid --batch-size 8 --engine hooks",
    "causalab-mini run documents/v2/generate_steer.json --out out/try --limit 2 --points step=0 "
    "--set interventions.steer.decode=5",
    "causalab-mini run documents/v2/layer_position.json --out out/grid --dry-run",
)


def run(
    context: typer.Context,
    document: DocumentPath,
    out: Annotated[
        str | None, typer.Option("--out", metavar="DIR", help="Where the results go. Required.", show_default=False)
    ] = None,
    data_root: DataRoot = DEFAULT_DATA_ROOT,
    device_map: Annotated[
        DeviceMap | None, typer.Option("--device-map", help="Where the weights sit; the best there is if not said.")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option("--batch-size", min=1, metavar="N", help="At most N rows in one forward.")
    ] = None,
    engine: Annotated[EngineName, typer.Option("--engine", help="What runs the forwards.")] = EngineName.TRACED,
    schedule: Annotated[
        ScheduleName,
        typer.Option("--schedule", help="fast may move the last bit, exact never; auto: fast in fp32, else exact."),
    ] = ScheduleName.AUTO,
    weights: Weights = None,
    gen: Gen = None,
    sets: Set = None,
    limit: Limit = None,
    points: Points = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what another run left in DIR.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Fail where a write changed nothing on some row.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the points that would run or be skipped, and why; run nothing.")
    ] = False,
    display: Annotated[
        Display | None,
        typer.Option("--display", help="How progress shows: a bar, a line a point, nothing.", show_default=False),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing but the paths, warnings and errors.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Run a document and write its results into a directory.

    Points that are complete there under the same document, data, model, code and settings are kept, so saying it
    again goes on where it stopped. Ctrl-C lets the call in flight end and its points be written. At the end: the paths
    written, and the summary. With --limit or --points the results are partial, and run.json says so.

    The exit code is 1 where a number that was scored is not finite, or with --strict a write changed nothing;
    everything is written all the same.
    """
    voice = voice_of(context)
    if out is None or not out.strip():
        raise OutputRefusal(Problem("", "run needs a directory for its results", f"say --out out/{document.stem}"))
    compiled = compile_document(document, voice, data_root, weights, need_weights=True, gen=gen, sets=sets, limit=limit)
    voice.warn(compiled.experiment.warnings)

    from causalab_mini.cli.selection import selected
    from causalab_mini.cli.session import Settings, perform, planned

    device = None if device_map is None else device_map.value
    chosen = selected(compiled.experiment, points) if points else None
    settings = Settings(engine.value, device, batch_size, schedule.value, force, chosen)
    if dry_run:
        return _foretell(voice, planned(compiled, Path(out), settings))
    asked = len(compiled.experiment.points) if chosen is None else len(chosen)
    with progress(voice, asked, display_of(display, quiet=quiet)) as report:
        done = perform(compiled, Path(out), settings, report)
    return _tell(voice, done, Path(out), compiled.experiment.digest, strict=strict, quiet=quiet)


def _tell(voice: Voice, done: Done, out: Path, digest: str, *, strict: bool, quiet: bool) -> None:
    """Say what a run left, and what is wrong with it."""
    from causalab_mini.results.remarks import strange
    from causalab_mini.results.summary import summary_cells

    odd = strange(done.summary)
    idle = list(done.idle) if strict else []
    voice.warn([warning for warning in (*done.warnings, *done.unscored) if warning not in idle])
    voice.answer(
        "\n".join(str(path) for path in done.written),
        {
            "ok": not (odd or idle),
            "digest": digest,
            "out": str(out),
            "points": {"run": done.run, "kept": done.kept},
            "partial": done.partial,
            "files": [str(path) for path in done.written],
            "summary": summary_cells(done.summary),
            "warnings": list(done.warnings),
            "unscored": list(done.unscored),
            "non_finite": odd,
            "idle_writes": list(done.idle),
        },
    )
    if not quiet:
        voice.tell(summary_table(done.summary, out))
        if done.partial is not None:
            voice.tell(_partial(done.partial))
    code = 0
    if odd:
        code = voice.blamed(odd, "such rows have no value and the reason non_finite")
    if idle:
        code = voice.blamed(idle, "check says what each write does; without --strict this is a warning")
    if code:
        raise typer.Exit(code)


def _foretell(voice: Voice, found: Sequence[Planned]) -> None:
    """Say what would run."""
    lines = [f"{one.point or 'the document'}: {'run' if one.runs else 'skip'} ({one.reason})" for one in found]
    count = sum(one.runs for one in found)
    lines.append(f"{count} of {len(found)} points would run")
    points = [{"point": one.point, "runs": one.runs, "reason": one.reason} for one in found]
    voice.answer(
        "\n".join(lines),
        {"ok": True, "dry_run": True, "points": points, "run": count, "skip": len(found) - count},
    )


def _partial(partial: Mapping[str, object]) -> str:
    """What is left out, in words."""
    rows, points = partial["rows"], cast(Mapping[str, int], partial["points"])
    parts = [] if rows is None else [f"the first {rows} rows of every table"]
    if points["complete"] < points["all"]:
        parts.append(f"{points['complete']} of {points['all']} points")
    return f"partial: {', '.join(parts)}"
