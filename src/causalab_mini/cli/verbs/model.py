"""model: which components resolve on a checkpoint, and how wide."""

from __future__ import annotations

from typing import Annotated

import typer

from causalab_mini.cli.options import AsJson, Debug, Weights, voice_of

EXAMPLES = ("causalab-mini model causalab-mini/weekdays-llama",)


def model(
    context: typer.Context,
    key: Annotated[str, typer.Argument(metavar="KEY", help="A model, as a document names it.", show_default=False)],
    revision: Annotated[str, typer.Option("--revision", help="The revision of a hub model.")] = "main",
    weights: Weights = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show which components of a model resolve, and how wide they are.

    Reads its config and tokenizer; loads no weights.
    """
    from causalab_mini.checkpoint.resolve import resolve
    from causalab_mini.vocabulary.components import COMPONENTS

    checkpoint = resolve(key, revision, weights=weights)
    components = [
        {
            "name": component.name,
            "layers": checkpoint.depth if component.per_layer else None,
            "width": checkpoint.width(component),
            "writable": component.writable,
        }
        for component in COMPONENTS
        if component.name in checkpoint.components()
    ]
    facts: dict[str, object] = {
        "key": checkpoint.key,
        "family": checkpoint.model_type,
        "supported": checkpoint.supported,
        "layers": checkpoint.depth,
        "hidden": checkpoint.hidden,
        "vocabulary": checkpoint.vocab,
        "heads": checkpoint.heads,
        "kv_heads": checkpoint.kv_heads,
        "context": checkpoint.context,
        "prefix": [checkpoint.token_text(token) for token in checkpoint.prefix],
        "eos_ids": sorted(checkpoint.eos_ids),
    }
    lines = [f"{name:<12}{value}" for name, value in facts.items() if value is not None]
    if not checkpoint.supported:
        lines.append(f"no component resolves on the family '{checkpoint.model_type}'")
    for component in components:
        layers = "whole model" if component["layers"] is None else f"{component['layers']} layers"
        writable = "" if component["writable"] else "  read only"
        lines.append(f"  {component['name']:<22}{layers:<14}width {component['width']}{writable}")
    voice_of(context).answer("\n".join(lines), {"ok": True, **facts, "components": components})
