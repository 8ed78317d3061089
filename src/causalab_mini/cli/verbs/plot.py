"""plot: a finished run as a picture for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from causalab_mini.cli.options import DEFAULT_DATA_ROOT, AsJson, DataRoot, Debug, OfRun, RunDirectory, Weights, voice_of
from causalab_mini.errors import Problem, Refusal

EXAMPLES = (
    "causalab-mini plot out/gen --out gen.pdf",
    "causalab-mini plot out/grid --out flipped.png --metric flipped --at layer=3",
)


def plot(
    context: typer.Context,
    directory: RunDirectory,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="A .png, .svg or .pdf. Required.", show_default=False),
    ] = None,
    metric: Annotated[
        str | None, typer.Option("--metric", metavar="NAME", help="Only this metric.", show_default=False)
    ] = None,
    at: Annotated[
        list[str] | None,
        typer.Option("--at", metavar="AXIS=VALUE", help="Only there. May be said again.", show_default=False),
    ] = None,
    document: OfRun = None,
    data_root: DataRoot = DEFAULT_DATA_ROOT,
    weights: Weights = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Draw a finished run: points, lines over one axis, a map over two.

    Metrics of one unit share a picture of points or lines. Where a run makes several pictures, they are numbered.
    Tokens at a position axis need the data and the model's tokenizer.
    """
    from causalab_mini.cli.retelling import retell
    from causalab_mini.report.charts import charts
    from causalab_mini.report.plots import format_of, image
    from causalab_mini.results.files import write_file
    from causalab_mini.results.reader import Results

    voice = voice_of(context)
    if out is None:
        raise Refusal(Problem("", "plot needs a file for its picture", f"say --out {directory.name or 'run'}.png"))
    format_of(out)
    results = Results(directory)
    told = retell(results, document, data_root, weights, rows=False)
    found = charts(results, told.tokens, metric, dict(_pair(pair) for pair in at or ()))
    if not found:
        raise Refusal(Problem("", f"{directory} has no numbers to draw", "a document draws what its metrics measure"))
    several = len(found) > 1
    paths = [out.with_stem(f"{out.stem}-{i}") if several else out for i in range(1, len(found) + 1)]
    for chart, path in zip(found, paths, strict=True):
        write_file(path, image(chart, format_of(path)))
    shown = [f"{path}: {chart.title} ({chart.unit})" for chart, path in zip(found, paths, strict=True)]
    said = [{"file": str(path), "description": chart.description} for chart, path in zip(found, paths, strict=True)]
    voice.answer("\n".join(shown), {"ok": True, "pictures": said})


def _pair(pair: str) -> tuple[str, str]:
    axis, equals, value = pair.partition("=")
    if not equals or not axis:
        raise Refusal(Problem("", f"--at takes AXIS=VALUE, and '{pair}' was found", "say --at layer=3"))
    return axis, value
