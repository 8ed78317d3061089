"""The options and arguments that verbs share, and what the command line says before a parser reads it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from causalab_mini.cli.voice import Voice

AsJson = Annotated[bool, typer.Option("--json", help="Answer with one JSON value on stdout, errors included.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
DocumentPath = Annotated[Path, typer.Argument(metavar="DOC", help="A document: a JSON file.", show_default=False)]
DataRoot = Annotated[Path, typer.Option("--data-root", metavar="DIR", help="Where dataset refs are looked up.")]
DEFAULT_DATA_ROOT = Path("datasets")
Weights = Annotated[
    Path | None,
    typer.Option(
        "--weights", metavar="DIR", help="Take the document's model from this folder instead.", show_default=False
    ),
]
Gen = Annotated[
    list[str] | None,
    typer.Option(
        "--gen",
        metavar="KEY=VALUE",
        help="A generation setting, stronger than any in the document. May be said again.",
        show_default=False,
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Set a value of the document, whatever it says: JSON, or a word. May be said again.",
        show_default=False,
    ),
]
Points = Annotated[
    list[str] | None,
    typer.Option(
        "--points",
        metavar="LABEL",
        help="Only these points: a label or parts of it (layer=3), * for anything. May be said again.",
        show_default=False,
    ),
]
RunDirectory = Annotated[Path, typer.Argument(metavar="DIR", help="The --out of a run.", show_default=False)]
OfRun = Annotated[
    Path | None,
    typer.Option(
        "--document", metavar="DOC", help="The document that was run, if files lie beside it.", show_default=False
    ),
]
Limit = Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="Only the first N rows of every table.")]


def voice_from(arguments: Sequence[str]) -> Voice:
    """The voice that `arguments` ask for.

    --json and --debug count wherever they stand, before the verb or after it, and hold for errors in the arguments
    themselves; so they are looked for here, and declared on every verb only to be accepted and listed.
    """
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return Voice(as_json="--json" in own, debug="--debug" in own)


def voice_of(context: typer.Context) -> Voice:
    """The voice of the running command."""
    voice = context.find_root().obj
    return voice if isinstance(voice, Voice) else Voice()


class ScheduleName(StrEnum):
    """How many of the plan's forwards are run as they stand."""

    AUTO = "auto"
    FAST = "fast"
    EXACT = "exact"
    NAIVE = "naive"


class EngineName(StrEnum):
    """What runs a call."""

    TRACED = "traced"
    HOOKS = "hooks"


class DeviceMap(StrEnum):
    """Where the weights sit."""

    CPU = "cpu"
    CUDA = "cuda"
    MPS = "mps"
    AUTO = "auto"
