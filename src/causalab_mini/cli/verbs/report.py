"""report: a finished run as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from causalab_mini.cli.options import DEFAULT_DATA_ROOT, AsJson, DataRoot, Debug, OfRun, RunDirectory, Weights, voice_of

EXAMPLES = (
    "causalab-mini report out/gen",
    "causalab-mini report out/gen --out gen.html --json",
)


def report(
    context: typer.Context,
    directory: RunDirectory,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The page; DIR/report.html if not said.")
    ] = None,
    document: OfRun = None,
    data_root: DataRoot = DEFAULT_DATA_ROOT,
    weights: Weights = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Write a finished run as one HTML page that needs nothing else.

    The question, pictures, the summary, the plan, every row with its tokens and values, provenance. The page opens
    from its file, without network or scripts, in light and dark.

    The plan and the tokens need the data and the model's tokenizer; if they are not at hand, or not those of the
    run, the page says so and has the rest.
    """
    from causalab_mini.cli.retelling import retell
    from causalab_mini.report.page import page
    from causalab_mini.results.files import write_file
    from causalab_mini.results.reader import Results

    voice = voice_of(context)
    results = Results(directory)
    told = retell(results, document, data_root, weights, rows=True)
    if told.missing:
        way_out = "" if document else "; if files lie beside the document that was run, --document names it"
        voice.warn([f"no plan and no tokens: {told.missing}{way_out}"])
    path = directory / "report.html" if out is None else out
    write_file(path, page(results, told).encode())
    voice.answer(str(path), {"ok": True, "file": str(path), "plan": not told.missing, "missing": told.missing or None})
