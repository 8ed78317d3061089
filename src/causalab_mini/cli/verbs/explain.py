"""explain: what a document will do, step by step."""

from __future__ import annotations

from typing import Annotated

import typer

from causalab_mini.cli.options import DEFAULT_DATA_ROOT, AsJson, DataRoot, Debug, DocumentPath, Weights, voice_of
from causalab_mini.cli.reading import compile_document

EXAMPLES = (
    "causalab-mini explain documents/v2/generate_probe.json",
    "causalab-mini explain documents/v2/generated_answer.json --rows",
)


def explain(
    context: typer.Context,
    document: DocumentPath,
    schedule: Annotated[bool, typer.Option("--schedule", help="Also the calls that run by default.")] = False,
    rows: Annotated[
        bool, typer.Option("--rows", help="Also every row's tokens, and which are read or written.")
    ] = False,
    data_root: DataRoot = DEFAULT_DATA_ROOT,
    weights: Weights = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show what a document will do: forwards, writes, reads, in order.

    Needs the data and the model's tokenizer and config; loads no weights.
    """
    from causalab_mini.cli.pages import plan_tree, rows_page
    from causalab_mini.plan.explain import explain as plan_page
    from causalab_mini.schedule.explain import explain_schedule
    from causalab_mini.schedule.optimize import settled
    from causalab_mini.schedule.prepare import prepare

    voice = voice_of(context)
    compiled = compile_document(document, voice, data_root, weights)
    voice.warn(compiled.experiment.warnings)
    root = compiled.experiment.root
    pages = [plan_page(root)]
    if rows:
        pages.append(rows_page(compiled.experiment, compiled.checkpoint))
    if schedule:
        mode = settled("auto", half=compiled.source.model.dtype != "fp32")
        pages.append(explain_schedule(prepare(compiled.experiment.points, compiled.checkpoint, mode)))
    voice.answer(
        "\n\n".join(pages),
        {
            "ok": True,
            "digest": compiled.experiment.digest,
            "plan": plan_tree(root),
            "text": "\n\n".join(pages),
            "warnings": list(compiled.experiment.warnings),
        },
    )
