"""Getting a document and what it stands on: its points, its model, its plan."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from causalab_mini.cli.voice import Voice
from causalab_mini.errors import Problem, ReferenceRefusal, Refusal, SchemaRefusal, at, suggest

if TYPE_CHECKING:
    from causalab_mini.checkpoint.facts import Checkpoint
    from causalab_mini.plan.nodes import Experiment
    from causalab_mini.spec.document import Model
    from causalab_mini.spec.load import Loaded
    from causalab_mini.spec.text import Json, JsonObject, Lines


@dataclass(frozen=True)
class Source:
    """A document as it was given, and loaded. `overrides`: what the command line set in it, which `text` holds, too."""

    path: Path
    text: bytes
    loaded: Loaded
    overrides: Mapping[str, Json] = field(default_factory=dict[str, "Json"])

    @property
    def model(self) -> Model:
        """The document's model, the same at every point."""
        return self.loaded.points[0].document.model


@dataclass(frozen=True)
class Compiled:
    """A document with its checkpoint and its plan."""

    source: Source
    checkpoint: Checkpoint
    experiment: Experiment
    data_root: Path


def load_document(
    path: Path, voice: Voice, text: bytes | None = None, overrides: Mapping[str, Json] | None = None
) -> Source:
    """The document at `path`, which the voice's problems point into from now on. `text`: its bytes, if at hand.

    `overrides`: values that are set in it, by path.
    """
    from causalab_mini.spec.load import load_parsed

    text = read_document(path) if text is None else text
    voice.document = path
    raw, lines = parsed(text, overrides)
    if overrides:
        text = (json.dumps(raw, indent=2, ensure_ascii=False) + "\n").encode()
    return Source(path, text, load_parsed(raw, lines, path.name), overrides or {})


def parsed(text: bytes, overrides: Mapping[str, Json] | None) -> tuple[JsonObject, Lines]:
    """The object in `text` with what is set in it, and where its parts stand."""
    from causalab_mini.spec.load import placed
    from causalab_mini.spec.overrides import overridden
    from causalab_mini.spec.text import parse

    raw, lines = parse(text)
    try:
        return (overridden(raw, overrides) if overrides else raw), lines
    except Refusal as refusal:
        raise type(refusal)(placed(refusal.problems, lines)) from refusal


def compile_document(
    path: Path,
    voice: Voice,
    data_root: Path,
    weights: Path | None,
    *,
    need_weights: bool = False,
    text: bytes | None = None,
    gen: Sequence[str] | None = None,
    limit: int | None = None,
    sets: Sequence[str] | None = None,
) -> Compiled:
    """The document at `path` with its rows and its model's tokenizer and config. No torch.

    `gen`: generation settings of the command line, each KEY=VALUE; `sets`: values of the document, each PATH=VALUE.
    `limit`: how many rows of every table are used. `text`: the document's bytes, where they do not come from the file.
    """
    from causalab_mini.checkpoint.resolve import resolve
    from causalab_mini.cli.settings import settings
    from causalab_mini.plan.compile import compile_experiment

    overrides = settings("--set", sets)
    try:
        source = load_document(path, voice, text, overrides)
    except (SchemaRefusal, ReferenceRefusal) as refusal:
        found = parsed(read_document(path) if text is None else text, overrides)
        raise _with_columns(refusal, *found, data_root) from refusal
    source = replace(source, loaded=source.loaded.commanded(settings("--gen", gen)).limited(limit))
    model = source.model
    try:
        with at("model", "key"):
            checkpoint = resolve(model.key, model.revision, weights=weights, document=path, need_weights=need_weights)
        experiment = compile_experiment(source.loaded, checkpoint, data_root, path)
    except Refusal as refusal:
        raise source.loaded.placed(refusal) from refusal
    return Compiled(source, checkpoint, experiment, data_root)


def compile_again(compiled: Compiled, checkpoint: Checkpoint) -> Compiled:
    """The same of a checkpoint about which more is known by now: what it turned out to lack is refused."""
    from causalab_mini.plan.compile import compile_experiment

    source, data_root = compiled.source, compiled.data_root
    try:
        experiment = compile_experiment(source.loaded, checkpoint, data_root, source.path)
    except Refusal as refusal:
        raise source.loaded.placed(refusal) from refusal
    return Compiled(source, checkpoint, experiment, data_root)


def _with_columns(refusal: Refusal, raw: JsonObject, lines: Lines, data_root: Path) -> Refusal:
    """The refusal of a document, and the columns in it that no row has."""
    from causalab_mini.plan.columns import unknown_columns
    from causalab_mini.spec.load import placed

    return type(refusal)(placed((*refusal.problems, *unknown_columns(raw, data_root)), lines))


def read_document(path: Path) -> bytes:
    """The bytes of the document at `path`. `Refusal` where there are none to be had."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        folder = path.parent
        others = [other.name for other in folder.glob("*.json")] if folder.is_dir() else []
        hint = suggest(path.name, others, f"documents in {folder}") if others else None
        raise Refusal(Problem("", f"there is no document {path}", hint)) from None
    except IsADirectoryError:
        raise Refusal(Problem("", f"{path} is a directory, not a document", "name a .json file")) from None
    except OSError as error:
        raise Refusal(Problem("", f"{path} cannot be read: {error.strerror}")) from error
