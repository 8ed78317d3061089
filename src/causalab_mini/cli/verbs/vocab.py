"""vocab: every word of the language, with its limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from causalab_mini.cli.options import AsJson, Debug, voice_of

if TYPE_CHECKING:
    from causalab_mini.cli.words import Section

EXAMPLES = (
    "causalab-mini vocab",
    "causalab-mini vocab --json",
)


def vocab(context: typer.Context, as_json: AsJson = False, debug: Debug = False) -> None:
    """List every word of the language, with its limits.

    Components, positions, mechanisms, featurizers, metrics, and what is not implemented yet.
    """
    from causalab_mini.cli.words import sections

    found = sections()
    voice_of(context).answer("\n\n".join(_text(section) for section in found), {"ok": True, **_json(found)})


def _text(section: Section) -> str:
    width = max((len(word.name) for word in section.words), default=0)
    lines = [section.title + (f": {section.note}" if section.note else "")]
    for word in section.words:
        lines.append(f"  {word.name:<{width}}  {word.summary}")
        lines += [f"  {'':<{width}}    {limit}" for limit in word.limits]
    return "\n".join(lines)


def _json(found: tuple[Section, ...]) -> dict[str, object]:
    return {
        section.key: [{"name": word.name, "summary": word.summary, **word.facts} for word in section.words]
        for section in found
    }
