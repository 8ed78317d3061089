"""debug: look at prompts and at what a model says, and leave nothing behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from causalab_mini.cli.options import DEFAULT_DATA_ROOT, AsJson, DataRoot, Debug, Gen, Weights, voice_of
from causalab_mini.cli.settings import settings

if TYPE_CHECKING:
    from causalab_mini.checkpoint.facts import Checkpoint
    from causalab_mini.cli.looking import Look
    from causalab_mini.plan.nodes import Batch
    from causalab_mini.run.free import Said

GENERATE_EXAMPLES = (
    'causalab-mini debug generate --model causalab-mini/weekdays-llama --prompt "If today is Thursday, tomorrow is"',
    "causalab-mini debug generate documents/v2/generate_steer.json --intervention steer --steps 4",
    "causalab-mini debug generate --model causalab-mini/weekdays-llama --rows weekdays/train "
    "--gen repetition_penalty=1.3 --sample seed=0 --serial",
)
PROMPTS_EXAMPLES = (
    "causalab-mini debug prompts documents/v2/patching.json",
    'causalab-mini debug prompts --model causalab-mini/weekdays-llama --prompt "Friday is"',
)

Doc = Annotated[Path | None, typer.Argument(metavar="[DOC]", help="A document: a JSON file.", show_default=False)]
Key = Annotated[str | None, typer.Option("--model", metavar="KEY", help="A model alone, in place of a document.")]
Prompt = Annotated[list[str] | None, typer.Option("--prompt", metavar="TEXT", help="A text to read. May be repeated.")]
RowsRef = Annotated[str | None, typer.Option("--rows", metavar="REF", help="A table whose rows are read.")]
Field = Annotated[str, typer.Option("--field", metavar="PATH", help="With --model and --rows: the column of the text.")]


class Eos(StrEnum):
    """What becomes of an id that ends a text."""

    HOLD = "hold"
    STOP = "stop"


def generate(
    context: typer.Context,
    document: Doc = None,
    model: Key = None,
    prompt: Prompt = None,
    rows: RowsRef = None,
    field: Field = "input",
    intervention: Annotated[
        str | None, typer.Option("--intervention", metavar="NAME", help="Write what this intervention writes.")
    ] = None,
    steps: Annotated[int | None, typer.Option("--steps", min=1, metavar="N", help="At most N tokens a row.")] = None,
    eos: Annotated[Eos | None, typer.Option("--eos", help="Whether a row ends at its first end-of-text id.")] = None,
    sample: Annotated[
        list[str] | None,
        typer.Option("--sample", metavar="KEY=VALUE", help="seed, temperature, top_k, top_p or min_p: draw tokens."),
    ] = None,
    gen: Gen = None,
    decode_text: Annotated[
        list[str] | None,
        typer.Option("--decode-text", metavar="KEY=VALUE", help="How ids become text: skip_special_tokens=true."),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, metavar="K", help="Show the K likeliest tokens a step.")] = 5,
    serial: Annotated[bool, typer.Option("--serial", help="One row at a time, without padding.")] = False,
    data_root: DataRoot = DEFAULT_DATA_ROOT,
    weights: Weights = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Generate from prompts: with a model as it is, or with what an intervention of a document writes.

    Shows every row's text and tokens, what was said and why it ended, and for every step the token emitted, the raw
    logits' most likely one and the few likeliest. Writes no file.
    """
    from causalab_mini.cli.looking import Asked, looking
    from causalab_mini.spec.document import Sample

    voice = voice_of(context)
    decode: dict[str, object] = {}
    if steps is not None:
        decode["steps"] = steps
    if eos is not None:
        decode["eos"] = eos.value
    if sample:
        decode["sample"] = settings("--sample", sample, tuple(Sample.model_fields))
    text = settings("--decode-text", decode_text, ("skip_special_tokens",))
    skip = text.get("skip_special_tokens", False) is True
    asked = Asked(
        *(document, model, tuple(prompt or ()), rows, field, intervention, decode, settings("--gen", gen)),
        *(data_root, weights),
    )
    with looking(asked, voice, need_weights=True) as look:
        voice.warn(look.experiment.warnings)
        told = [_row(look, one, skip=skip, serial=serial) for one in _generated(look, top, serial=serial)]
        lines = _page(look, told)
        voice.answer(
            "\n".join(lines),
            {"ok": True, "model": look.checkpoint.key, "settings": _settings(look), "rows": told},
        )


def prompts(
    context: typer.Context,
    document: Doc = None,
    model: Key = None,
    prompt: Prompt = None,
    rows: RowsRef = None,
    field: Field = "input",
    data_root: DataRoot = DEFAULT_DATA_ROOT,
    weights: Weights = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show how prompts become tokens: as they stand, rendered, and as ids in a padded batch. Loads no weights."""
    from causalab_mini.cli.looking import Asked, looking

    voice = voice_of(context)
    asked = Asked(document, model, tuple(prompt or ()), rows, field, None, {}, {}, data_root, weights)
    with looking(asked, voice, every_role=True) as look:
        voice.warn(look.experiment.warnings)
        told = [
            {"role": forward.role, "example_id": example_id, **_text(look, forward.role, forward.batch, row)}
            for forward in look.observe.forwards
            for row, example_id in enumerate(look.observe.example_ids)
        ]
        lines = [line for row in told for line in _prompt_lines(row, f"{row['role']} '{row['example_id']}'")]
        voice.answer("\n".join(lines), {"ok": True, "model": look.checkpoint.key, "rows": told})


def _generated(look: Look, top: int, *, serial: bool) -> Iterator[Said]:
    from causalab_mini.checkpoint.naming import self_test
    from causalab_mini.engine.hooks import Hooks
    from causalab_mini.engine.modules import best_device, load
    from causalab_mini.errors import PlanRefusal, Problem
    from causalab_mini.garbage import collected
    from causalab_mini.run.free import said
    from causalab_mini.run.runner import Run

    checkpoint = look.checkpoint
    if not checkpoint.supported:
        hint = f"{self_test(checkpoint)} proves what it can"
        raise PlanRefusal(Problem("model.key", f"nothing is proved of the family '{checkpoint.model_type}'", hint))
    network = load(checkpoint.folder, look.dtype, look.attention, best_device().type)
    run = Run(look.experiment, checkpoint, network, Hooks(network), 1 if serial else None, "naive")
    with collected():
        (result,) = run.results()
    yield from said(look.observe, result.observed[-1], checkpoint, top)


def _settings(look: Look) -> dict[str, object]:
    from causalab_mini.plan.generation import forward_name, settings_record

    return {forward_name(forward): settings_record(forward.decoding) for forward in look.observe.forwards}


def _text(look: Look, role: str, batch: Batch, row: int, *, serial: bool = False) -> dict[str, object]:
    """A row's prompt as it stands, as it is rendered, and as tokens; `mask` is that of its batch."""
    text = batch.rows[row]
    padding = 0 if serial else batch.width - len(text.ids)
    return {
        "prompt": look.cells[role][row],
        "rendered": text.text,
        "prefix": text.prefix,
        "ids": list(text.ids),
        "tokens": [look.checkpoint.token_text(token) for token in text.ids],
        "mask": [0] * padding + [1] * len(text.ids),
    }


def _row(look: Look, one: Said, *, skip: bool, serial: bool) -> dict[str, object]:
    from causalab_mini.plan.generation import forward_name

    forward = next(each for each in look.observe.forwards if forward_name(each) == one.forward)
    return {
        "forward": one.forward,
        "example_id": one.example_id,
        **_text(look, forward.role, forward.batch, one.row, serial=serial),
        "generated": list(one.ids),
        "text": _decoded(look.checkpoint, one.ids, skip=skip),
        "stop": one.stop,
        "steps": [{**asdict(step), "differs": step.emitted != step.argmax} for step in one.steps],
    }


def _decoded(checkpoint: Checkpoint, ids: Sequence[int], *, skip: bool) -> str:
    return checkpoint.tokenizer.backend.decode(list(ids), skip_special_tokens=skip)


def _page(look: Look, rows: Sequence[Mapping[str, object]]) -> Iterator[str]:
    from causalab_mini.plan.generation import forward_name, spelled

    for forward in look.observe.forwards:
        ours = [row for row in rows if row["forward"] == forward_name(forward)]
        if not ours:
            continue
        yield f"{forward_name(forward)}: {spelled(forward.decoding)}"
        for row in ours:
            yield from _prompt_lines(row, f"'{row['example_id']}'")
            yield f"  said    {row['text']!r}  ({row['stop']})"
            steps = row["steps"]
            assert isinstance(steps, list)
            yield from (_step(look.checkpoint, step) for step in steps)


def _step(checkpoint: Checkpoint, step: Mapping[str, object]) -> str:
    argmax, candidates = step["argmax"], step["top"]
    assert isinstance(argmax, int)
    assert isinstance(candidates, tuple | list)
    other = f"  argmax {checkpoint.token_text(argmax)!r} ({argmax})" if step["differs"] else ""
    top = ", ".join(f"{one['text']!r} {one['probability']:.4f}" for one in candidates)
    return f"    {step['step']:>4}  {step['text']!r} ({step['emitted']}){other}  of {top}"


def _prompt_lines(row: Mapping[str, object], name: str) -> Iterator[str]:
    mask, tokens = row["mask"], row["tokens"]
    assert isinstance(mask, list)
    assert isinstance(tokens, list)
    padding = mask.count(0)
    padded = f", {padding} of padding before them" if padding else ""
    yield f"{name}  {len(tokens)} tokens, {row['prefix']} of them prefix{padded}"
    if row["prompt"] != row["rendered"]:
        yield f"  prompt  {row['prompt']!r}"
    yield f"  text    {row['rendered']!r}"
    yield f"  tokens  {' '.join(repr(token) for token in tokens)}"
