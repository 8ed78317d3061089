"""schema: the JSON Schema of documents, and of what verbs answer."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from causalab_mini.cli.options import AsJson, Debug, voice_of

EXAMPLES = (
    "causalab-mini schema > causalab-mini.schema.json",
    "causalab-mini schema --of run > run.schema.json",
)


class Described(StrEnum):
    """What there is a schema of."""

    DOCUMENT = "document"
    RUN = "run"
    CHECK = "check"
    COMPARE = "compare"


def schema(
    context: typer.Context,
    of: Annotated[
        Described, typer.Option("--of", help="A document, or what a verb answers with --json.")
    ] = Described.DOCUMENT,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Print the JSON Schema of documents, or of what a verb answers.

    It knows shapes and words; whether names of a document fit each other is what validate tells.
    """
    if of is Described.DOCUMENT:
        from causalab_mini.cli.document_schema import document_schema

        described = document_schema()
    else:
        from causalab_mini.cli.answer_schema import answer_schema

        described = answer_schema(of.value)
    voice_of(context).answer(json.dumps(described, indent=1, ensure_ascii=False), described)
