"""validate: every problem of a document, at once."""

from __future__ import annotations

import typer

from causalab_mini.cli.options import AsJson, Debug, DocumentPath, voice_of
from causalab_mini.cli.reading import load_document

EXAMPLES = (
    "causalab-mini validate documents/v2/patching.json",
    "causalab-mini validate documents/v2/patching.json --json",
)


def validate(context: typer.Context, document: DocumentPath, as_json: AsJson = False, debug: Debug = False) -> None:
    """Check a document: every problem at once, with path and line.

    Looks at nothing but the document: no data, no tokenizer, no model.
    """
    voice = voice_of(context)
    loaded = load_document(document, voice).loaded
    points = [{"label": point.label, "axes": dict(point.axes), "digest": point.digest} for point in loaded.points]
    lines = [f"{document.name}: nothing wrong"]
    if loaded.swept:
        axes = ", ".join(dict.fromkeys(axis for point in loaded.points for axis, _ in point.axes))
        lines.append(f"  {len(points)} points over {axes}")
    lines.append(f"  digest {loaded.digest}")
    voice.answer("\n".join(lines), {"ok": True, "digest": loaded.digest, "swept": loaded.swept, "points": points})
