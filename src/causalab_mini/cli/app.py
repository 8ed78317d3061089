"""The command: its verbs, and the one place where it ends.

Every error leaves the package here: a refusal or failure becomes text (or JSON) and an exit code, never a traceback.
"""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, redirect_stdout
from io import StringIO
from typing import Annotated, NoReturn, Protocol, cast

import typer

from causalab_mini import __version__
from causalab_mini.cli.options import AsJson, Debug, voice_from, voice_of
from causalab_mini.cli.verbs import (
    check,
    compare,
    data,
    debug,
    explain,
    model,
    plot,
    report,
    run,
    schema,
    tokens,
    validate,
    vocab,
)
from causalab_mini.errors import EXIT_DONE, EXIT_INTERRUPTED
from causalab_mini.garbage import uncollected

NAME = "causalab-mini"
# typer exports this class and not its base, which is the error of any command line that cannot be read.
UsageError: type[Exception] = typer.BadParameter.__base__ or Exception

VERBS: tuple[tuple[Callable[..., None], tuple[str, ...]], ...] = (
    (validate.validate, validate.EXAMPLES),
    (explain.explain, explain.EXAMPLES),
    (run.run, run.EXAMPLES),
    (check.check, check.EXAMPLES),
    (compare.compare, compare.EXAMPLES),
    (report.report, report.EXAMPLES),
    (plot.plot, plot.EXAMPLES),
    (data.data, data.EXAMPLES),
    (schema.schema, schema.EXAMPLES),
    (vocab.vocab, vocab.EXAMPLES),
    (tokens.tokens, tokens.EXAMPLES),
    (model.model, model.EXAMPLES),
)
DEBUG = "debug"
DEBUG_VERBS: tuple[tuple[Callable[..., None], tuple[str, ...]], ...] = (
    (debug.generate, debug.GENERATE_EXAMPLES),
    (debug.prompts, debug.PROMPTS_EXAMPLES),
)


class _Context(Protocol):
    command_path: str


class _Misuse(Protocol):
    """What an error of the command line knows."""

    ctx: _Context | None

    def format_message(self) -> str: ...


def _version(context: typer.Context, asked: bool) -> None:
    if asked:
        voice_of(context).answer(f"{NAME} {__version__}", {"ok": True, "name": NAME, "version": __version__})
        raise typer.Exit(EXIT_DONE)


def _root(
    as_json: AsJson = False,
    debug: Debug = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Experiments on a language model's internals, as JSON documents.

    --json and --debug may stand before or after the verb. Exit codes: 0 done, 1 a run failed, 2 the document, the
    data or the command was refused, 130 interrupted.
    """


def build() -> typer.Typer:
    """The command with all its verbs."""
    app = typer.Typer(
        name=NAME,
        rich_markup_mode=None,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )
    app.callback()(_root)
    looks = typer.Typer(help="Look at prompts and at what a model says.", rich_markup_mode=None)
    for to, verbs in ((app, VERBS), (looks, DEBUG_VERBS)):
        for verb, examples in verbs:
            to.command(epilog="\n".join(["\b", "Examples:", *(f"  {example}" for example in examples)]))(verb)
    app.add_typer(looks, name=DEBUG, no_args_is_help=True)
    return app


def execute(arguments: Sequence[str]) -> int:
    """Run the command with `arguments`; the exit code it leaves with."""
    arguments = arguments or ["--help"]
    voice = voice_from(arguments)
    command = typer.main.get_command(build())
    page = StringIO()  # what typer prints by itself: pages of help
    try:
        with uncollected(), redirect_stdout(page) if voice.as_json else nullcontext():
            code = command.main(list(arguments), prog_name=NAME, standalone_mode=False, obj=voice)
    except UsageError as error:
        misuse = cast(_Misuse, error)
        where = NAME if misuse.ctx is None else misuse.ctx.command_path
        message = re.sub(
            r"^Invalid value for '?(.+?)'?: (Value error, )?", r"\1: ", misuse.format_message().rstrip(".")
        )
        return voice.misused(message[:1].lower() + message[1:], f"{where} --help shows how")
    except (KeyboardInterrupt, typer.Abort):
        return voice.failed(KeyboardInterrupt())
    except Exception as error:
        return voice.failed(error)
    if code == EXIT_INTERRUPTED:
        return voice.failed(KeyboardInterrupt())
    if voice.as_json and not voice.answered:
        voice.answer("", {"ok": True, "help": page.getvalue()})
    return code if isinstance(code, int) else EXIT_DONE


def main() -> NoReturn:
    """The console script."""
    for stream in ("stdout", "stderr"):
        if getattr(sys, stream) is None:  # closed by who started it
            setattr(sys, stream, open(os.devnull, "w"))  # noqa: SIM115 (it stays open)
    code = execute(sys.argv[1:])
    gc.freeze()  # the process ends: no last look for garbage
    sys.exit(code)
