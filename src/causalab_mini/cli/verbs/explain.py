"""explain: what a document will do, step by step."""

from __future__ import annotations

from typing import Annotated

import typer

from causalab_mini.cli.options import (
    DEFAULT_DATA_ROOT,
    AsJson,
    DataRoot,
    Debug,
    DocumentPath,
    Gen,
    ScheduleName,
    Weights,
    voice_of,
)
from causalab_mini.cli.reading import compile_document

EXAMPLES = (
    "causalab-mini explain documents/v2/generate_probe.json",
    "causalab-mini explain documents/v2/generated_answer.json --rows",
    "causalab-mini explain documents/v2/layer_position.json --schedule --mode exact",
)


def explain(
    context: typer.Context,
    document: DocumentPath,
    schedule: Annotated[bool, typer.Option("--schedule", help="Also the calls that really run.")] = False,
    mode: Annotated[
        ScheduleName, typer.Option("--mode", help="The schedule shown is that of `run --schedule MODE`.")
    ] = ScheduleName.AUTO,
    batch_size: Annotated[
        int | None, typer.Option("--batch-size", min=1, metavar="N", help="The same of `run --batch-size N`.")
    ] = None,
    rows: Annotated[
        bool, typer.Option("--rows", help="Also every row's tokens, and which are read or written.")
    ] = False,
    gen: Gen = None,
    data_root: DataRoot = DEFAULT_DATA_ROOT,
    weights: Weights = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show what a document will do: forwards, writes, reads, in order.

    Needs the data and the model's tokenizer and config; loads no weights.
    """
    from causalab_mini.cli.pages import plan_tree, rows_tree
    from causalab_mini.cli.strips import painted, plain, room, rows_page
    from causalab_mini.plan.explain import explain as plan_page
    from causalab_mini.plan.generation import explain_generation
    from causalab_mini.schedule.explain import explain_schedule
    from causalab_mini.schedule.limits import Limits
    from causalab_mini.schedule.optimize import settled
    from causalab_mini.schedule.prepare import prepare

    voice = voice_of(context)
    compiled = compile_document(document, voice, data_root, weights, gen=gen)
    voice.warn(compiled.experiment.warnings)
    root = compiled.experiment.root
    settings = explain_generation(compiled.experiment)
    pages = [plan_page(root), *([settings] if settings else [])]
    if rows:
        strips = rows_page(compiled.experiment, compiled.checkpoint, room(voice.out))
        pages.append(plain(strips) if voice.as_json else painted(strips, voice.out))
    if schedule:
        settled_mode = settled(mode.value, half=compiled.source.model.dtype != "fp32")
        limits = Limits(lanes=batch_size)
        pages.append(explain_schedule(prepare(compiled.experiment.points, compiled.checkpoint, settled_mode, limits)))
    voice.answer(
        "\n\n".join(pages),
        {
            "ok": True,
            "digest": compiled.experiment.digest,
            "plan": plan_tree(root),
            **({"rows": rows_tree(compiled.experiment, compiled.checkpoint)} if rows else {}),
            "text": "\n\n".join(pages),
            "warnings": list(compiled.experiment.warnings),
        },
    )
