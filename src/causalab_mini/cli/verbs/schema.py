"""schema: the JSON Schema of documents."""

from __future__ import annotations

import json

import typer

from causalab_mini.cli.options import AsJson, Debug, voice_of

EXAMPLES = ("causalab-mini schema > causalab-mini.schema.json",)


def schema(context: typer.Context, as_json: AsJson = False, debug: Debug = False) -> None:
    """Print the JSON Schema of documents, for editors and checkers.

    It knows shapes and words; whether names fit each other is what validate tells.
    """
    from causalab_mini.cli.document_schema import document_schema

    described = document_schema()
    voice_of(context).answer(json.dumps(described, indent=1, ensure_ascii=False), described)
