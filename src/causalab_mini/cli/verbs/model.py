"""model: which components a checkpoint has, how wide they are, and how far each is proved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from causalab_mini.cli.options import AsJson, Debug, Weights, voice_of

if TYPE_CHECKING:
    from causalab_mini.checkpoint.facts import Checkpoint
    from causalab_mini.vocabulary.components import Component

EXAMPLES = (
    "causalab-mini model causalab-mini/weekdays-llama",
    "causalab-mini model causalab-mini/weekdays-llama --self-test",
)


def model(
    context: typer.Context,
    key: Annotated[str, typer.Argument(metavar="KEY", help="A model, as a document names it.", show_default=False)],
    revision: Annotated[str, typer.Option("--revision", help="The revision of a hub model.")] = "main",
    self_test: Annotated[
        bool, typer.Option("--self-test", help="Load the weights and prove what each component holds.")
    ] = False,
    weights: Weights = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show which components a model has, how wide they are, and how far each is proved.

    Reads its config and tokenizer, and what a self-test of these weights has found before; loads no weights unless the
    self-test is asked for.
    """
    from causalab_mini.checkpoint.resolve import resolve
    from causalab_mini.vocabulary.components import COMPONENTS

    checkpoint = resolve(key, revision, weights=weights, need_weights=self_test)
    if self_test:
        checkpoint = _tested(checkpoint)
    components = [_facts(checkpoint, component) for component in COMPONENTS]
    verdict = checkpoint.verdict
    facts: dict[str, object] = {
        "key": checkpoint.key,
        "family": checkpoint.model_type,
        "known": checkpoint.config.supported,
        "layers": checkpoint.depth,
        "hidden": checkpoint.hidden,
        "vocabulary": checkpoint.vocab,
        "heads": checkpoint.heads,
        "kv_heads": checkpoint.kv_heads,
        "context": checkpoint.context,
        "prefix": [checkpoint.token_text(token) for token in checkpoint.prefix],
        "eos_ids": sorted(checkpoint.eos_ids),
        "self_test": None if verdict is None else {"dtype": verdict.dtype, "unusable": verdict.whole or None},
        "views": _views(checkpoint),
    }
    voice_of(context).answer("\n".join(_page(facts, components)), {"ok": True, **facts, "components": components})


def _tested(checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint with what its weights say, in fp32."""
    from causalab_mini.cli.session import examine_and_remember
    from causalab_mini.engine.modules import load

    capability = checkpoint.config.capability
    network = load(checkpoint.folder, "fp32", None if capability is None else capability.attention)
    return replace(checkpoint, verdict=examine_and_remember(network, checkpoint))


def _facts(checkpoint: Checkpoint, component: Component) -> dict[str, object]:
    """One component: where it is, how wide, and its proof with the reason."""
    from causalab_mini.checkpoint.verdicts import UNTESTED, Finding, Proof

    bare = checkpoint.untested()
    layers = [layer for layer in range(checkpoint.depth) if bare.lacks(component, layer) is None]
    missing = bare.lacks(component)
    if missing is not None:
        finding = Finding(Proof.REFUSED, missing)
    elif checkpoint.verdict is None:
        finding = Finding(Proof.UNPROVEN, UNTESTED)
    else:
        finding = checkpoint.verdict.of(component.name)
    parts = component.width.parts
    return {
        "name": component.name,
        "layers": len(layers) if component.per_layer else None,
        "width": checkpoint.width(component),
        "heads": checkpoint.heads_of(component) if parts == "heads" else None,
        "writable": component.writable,
        "usable": checkpoint.lacks(component) is None and (checkpoint.supported or checkpoint.verdict is None),
        "verdict": finding.proof.value,
        "reason": finding.reason or None,
    }


def _views(checkpoint: Checkpoint) -> dict[str, object]:
    from causalab_mini.checkpoint.verdicts import UNTESTED, VIEWS, Finding, Proof

    verdict = checkpoint.verdict
    finding = Finding(Proof.UNPROVEN, UNTESTED) if verdict is None else verdict.of(VIEWS)
    return {"verdict": finding.proof.value, "reason": finding.reason or None}


def _page(facts: dict[str, object], components: list[dict[str, object]]) -> Iterator[str]:
    """The facts, the components there are as a table, and those there are not, by their reasons."""
    from causalab_mini.vocabulary.components import COMPONENTS

    tested, views = facts["self_test"], facts["views"]
    for name, value in facts.items():
        if value is not None and name not in ("self_test", "views", "known"):
            yield f"{name:<12}{value}"
    if not facts["known"]:
        yield "            a family without a row: only what the self-test proves can be used"
    if isinstance(tested, dict):
        yield f"self-test   in {tested['dtype']}" + (f": {tested['unusable']}" if tested["unusable"] else "")
        if isinstance(views, dict) and views["verdict"] != "proved":
            yield f"views       {views['verdict']}: {views['reason']}"
    else:
        yield "self-test   not run on these weights; --self-test runs it"
    reasons: dict[str, list[str]] = {}
    wide = max(len(str(component["name"])) for component in components) + 2
    for component in components:
        if component["layers"] == 0 or (component["verdict"] == "refused" and not component["usable"]):
            reasons.setdefault(str(component["reason"]), []).append(str(component["name"]))
            continue
        layers = "whole model" if component["layers"] is None else f"{component['layers']} layers"
        heads = "" if component["heads"] is None else f"{component['heads']} heads"
        said = str(component["verdict"]) if tested is not None else ""
        said += f": {component['reason']}" if tested is not None and component["reason"] else ""
        width = f"{component['width']}{'/key' if COMPONENTS.get(str(component['name'])).pattern else ''}"
        line = f"  {component['name']:<{wide}}{layers:<13}width {width:<7}{heads:<10}"
        yield f"{line}{'' if component['writable'] else 'read only  '}{said}".rstrip()
    for reason, names in reasons.items():
        yield from wrap(f"no {', '.join(names)}:", 100)
        yield f"  {reason}"
