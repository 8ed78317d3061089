"""run: do what a document says, and keep what it asks for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    ScheduleName,
    Weights,
    voice_of,
)
from causalab_mini.cli.reading import compile_document
from causalab_mini.errors import OutputRefusal, Problem

if TYPE_CHECKING:
    from causalab_mini.results.summary import SummaryLine

EXAMPLES = (
    "causalab-mini run documents/v2/generate_probe.json --out out/gen",
    "causalab-mini run documents/real/weekdays_patching.json --out out/real --weights ~/models/smollm2",
    "causalab-mini run documents/v2/layer_position.json --out out/grid --batch-size 8 --engine hooks",
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
    force: Annotated[bool, typer.Option("--force", help="Replace what another run left in DIR.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Run a document and write its results into a directory.

    Points that are complete there under the same document, data, model, code and settings are kept, so saying it
    again goes on where it stopped. At the end: the paths written, and the summary. The exit code is 1 where a
    number that was scored is not finite, although everything is written.
    """
    voice = voice_of(context)
    if out is None or not out.strip():
        raise OutputRefusal(Problem("", "run needs a directory for its results", f"say --out out/{document.stem}"))
    compiled = compile_document(document, voice, data_root, weights, need_weights=True, gen=gen)
    voice.warn(compiled.experiment.warnings)

    from causalab_mini.cli.progress import progress, summary_table
    from causalab_mini.cli.session import Settings, perform
    from causalab_mini.results.summary import summary_cells

    device = None if device_map is None else device_map.value
    settings = Settings(engine.value, device, batch_size, schedule.value, force)
    with progress(voice, len(compiled.experiment.points)) as report:
        done = perform(compiled, Path(out), settings, report)
    voice.warn(done.warnings)
    text = "\n".join(str(path) for path in done.written)
    strange = [line for line in done.summary if line.n_non_finite]
    voice.answer(
        text,
        {
            "ok": not strange,
            "digest": compiled.experiment.digest,
            "out": str(Path(out)),
            "points": {"run": done.run, "kept": done.kept},
            "files": [str(path) for path in done.written],
            "summary": summary_cells(done.summary),
            "non_finite": [_strange(line) for line in strange],
        },
    )
    voice.tell(summary_table(done.summary, Path(out)))
    if strange:
        raise typer.Exit(voice.strange([_strange(line) for line in strange]))


def _strange(line: SummaryLine) -> str:
    place = f"{line.point}: " if line.point else ""
    return f"{place}'{line.metric}' is not finite on {line.n_non_finite} of {line.n_rows} rows"
