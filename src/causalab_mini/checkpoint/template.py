"""A checkpoint's chat template: messages to the text the model was made for, as transformers renders it.

Runs in a sandbox that changes nothing, and refuses the two things that would make a row's text differ from run to
run: the clock and chance. Knows texts; refuses to know tokens.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, cast

from causalab_mini.checkpoint import files
from causalab_mini.checkpoint.files import Json
from causalab_mini.errors import ModelUnavailable, PlanRefusal, Problem
from causalab_mini.vocabulary.message import Chat

if TYPE_CHECKING:
    from jinja2 import Environment
    from jinja2 import Template as Compiled

DEFAULT = "default"
NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
"""The special tokens that a template may write, by the names it knows them under."""


@dataclass(frozen=True)
class Template:
    """The source of a template, and the special tokens it may write."""

    source: str
    tokens: Mapping[str, str]

    def render(self, chat: Chat) -> str:
        """The text of `chat` up to where the assistant is to speak. `PlanRefusal` where the template refuses it."""
        from jinja2.exceptions import TemplateError

        messages = [{"role": message.role, "content": message.content} for message in chat]
        try:
            return self._compiled.render(
                messages=messages, tools=None, documents=None, add_generation_prompt=True, **self.tokens
            )
        except PlanRefusal:
            raise
        except TemplateError as error:
            raise _refusal(f"the checkpoint's chat template refuses the messages: {error}") from error
        except Exception as error:
            # A template is a program: what it adds, indexes or calls can fail in any way.
            raise _refusal(f"the checkpoint's chat template fails: {type(error).__name__}: {error}") from error

    @cached_property
    def _compiled(self) -> Compiled:
        from jinja2.exceptions import TemplateSyntaxError

        try:
            return _environment().from_string(self.source)
        except TemplateSyntaxError as error:
            message = f"the checkpoint's chat template cannot be read: line {error.lineno}: {error.message}"
            raise _refusal(message) from error


def load(folder: Path) -> Template | None:
    """The template of the checkpoint in `folder`: its own file's, else its tokenizer_config's; None without one.

    Of several it is the one called `default`.
    """
    config = files.read_optional(folder / files.TOKENIZER_CONFIG)
    source = _source(folder, config)
    if source is None:
        return None
    named = files.read_optional(folder / files.SPECIAL_TOKENS)
    tokens = {
        name: text for name in NAMED if (text := files.token_content(config.get(name, named.get(name)))) is not None
    }
    return Template(source, tokens)


def _source(folder: Path, config: Mapping[str, Json]) -> str | None:
    path = folder / files.CHAT_TEMPLATE
    if path.is_file():
        try:
            return path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ModelUnavailable(f"{path} cannot be read: {error}") from error
    given = config.get("chat_template")
    if not isinstance(given, list):
        return given if isinstance(given, str) else None
    entries = [entry for entry in given if isinstance(entry, dict)]
    sources = {str(entry.get("name")): entry.get("template") for entry in entries}
    source = sources.get(DEFAULT)
    if not isinstance(source, str):
        names = ", ".join(f"'{name}'" for name in sources) or "none"
        message = f"the checkpoint has several chat templates and none is called '{DEFAULT}': {names}"
        raise _refusal(message, f"call one of them '{DEFAULT}' in {files.TOKENIZER_CONFIG}")
    return source


def _environment() -> Environment:
    """Jinja as transformers sets it up for chat templates, without a clock."""
    from jinja2 import ext, nodes, pass_eval_context
    from jinja2.exceptions import SecurityError, TemplateError
    from jinja2.parser import Parser
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from jinja2.utils import Namespace

    class Generation(ext.Extension):
        """`{% generation %}…{% endgeneration %}` marks what an assistant says; here it is its content."""

        tags = {"generation"}

        def parse(self, parser: Parser) -> nodes.Node:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.CallBlock(self.call_method("_content"), [], [], body).set_lineno(line)

        @pass_eval_context
        def _content(self, context: nodes.EvalContext, caller: Callable[[], str]) -> str:
            return caller()

    class Names(Namespace):
        """A namespace without underscored names, which reach into the interpreter."""

        def __setitem__(self, name: str, value: object) -> None:
            if name.startswith("_"):
                raise SecurityError(f"a chat template may not store '{name}'")
            super().__setitem__(name, value)

    def raise_exception(message: str) -> NoReturn:
        raise TemplateError(message)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, ext.loopcontrols]
    )
    environment.filters["tojson"] = _tojson
    environment.filters["random"] = _chance
    known = cast(dict[str, object], environment.globals)
    known.update(raise_exception=raise_exception, strftime_now=_clock, lipsum=_chance, namespace=Names)
    return environment


def _tojson(
    value: object,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _clock(*_: object) -> NoReturn:
    message = "the checkpoint's chat template reads the clock (strftime_now), so a row's text would change by the day"
    raise _refusal(message, f"write a fixed date into {files.CHAT_TEMPLATE} of a copy of the checkpoint")


def _chance(*_: object, **__: object) -> NoReturn:
    message = "the checkpoint's chat template draws at random, so a row's text would change from run to run"
    raise _refusal(message, f"take the draw out of {files.CHAT_TEMPLATE} in a copy of the checkpoint")


def _refusal(message: str, hint: str | None = None) -> PlanRefusal:
    return PlanRefusal(Problem("", message, hint))
