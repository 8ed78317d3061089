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
    Set,
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
    sets: Set = None,
    data_root: DataRoot = DEFAULT_DATA_ROOT,
    weights: Weights = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show what a document will do: forwards, writes, reads, in order.

    Needs the data and the model's tokenizer and config; loads no weights.
    """
    from causalab_mini.cli.explanation import explanation
    from causalab_mini.cli.strips import painted, plain, room

    voice = voice_of(context)
    compiled = compile_document(document, voice, data_root, weights, gen=gen, sets=sets)
    voice.warn(compiled.experiment.warnings)
    page = explanation(
        compiled,
        rows=rows,
        schedule=schedule,
        mode=mode.value,
        batch_size=batch_size,
        width=room(voice.out),
        strips=plain if voice.as_json else lambda lines: painted(lines, voice.out),
    )
    voice.answer(page.text, {"ok": True, **page.as_json()})
