"""The verbs for Python, with documents as dicts, paths or JSON text.

They go the way of the command line and raise what it prints: `Refusal` and `RunFailure`. What is heavy is imported
where it is needed. Prints nothing.
"""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Literal, TypeAlias
from weakref import finalize

from causalab_mini.errors import Problem, Refusal, RunFailure, join, suggest
from causalab_mini.results.reader import Results

if TYPE_CHECKING:
    from causalab_mini.cli.checking import Checked
    from causalab_mini.cli.explanation import Explanation
    from causalab_mini.cli.reading import Compiled
    from causalab_mini.cli.session import Planned, Settings
    from causalab_mini.results.comparing import Compared
    from causalab_mini.spec.load import Loaded

AnyDocument: TypeAlias = Mapping[str, object] | str | bytes | os.PathLike[str]
"""A document: its objects, its JSON text, or the path of its file."""
Folder: TypeAlias = str | os.PathLike[str]
Mode: TypeAlias = Literal["auto", "fast", "exact", "naive"]
Device: TypeAlias = Literal["cpu", "cuda", "mps", "auto"]
EngineName: TypeAlias = Literal["traced", "hooks"]

DATA_ROOT = "datasets"
NAME = "document"
"""What a document without a file is called."""


def validate(document: AnyDocument) -> Loaded:
    """Check a document: its `digest`, and its `points` with their labels, axes and digests.

    Looks at no data and no model. Raises `Refusal` with every problem at once.
    """
    from causalab_mini.cli.reading import load_document
    from causalab_mini.cli.voice import Voice

    path, text = _given(document)
    return load_document(path, Voice(), text).loaded


def explain(
    document: AnyDocument,
    *,
    rows: bool = False,
    schedule: bool = False,
    mode: Mode = "auto",
    batch_size: int | None = None,
    gen: Mapping[str, object] | None = None,
    sets: Mapping[str, object] | None = None,
    data_root: Folder = DATA_ROOT,
    weights: Folder | None = None,
) -> Explanation:
    """What a document will do: prints as text, and has the `plan` as objects.

    `rows`: every row's tokens too; `schedule`: the calls that `run` makes in `mode`. `gen`: generation settings
    stronger than the document's; `sets`: values of the document, by path. Needs data, tokenizer and config; no weights,
    no torch. Raises `Refusal`.
    """
    from causalab_mini.cli.explanation import explanation

    _known("mode", mode, ("auto", "fast", "exact", "naive"))
    size = _count("batch_size", batch_size)
    compiled = _compiled(document, data_root, weights, gen, sets)
    return explanation(compiled, rows=rows, schedule=schedule, mode=mode, batch_size=size)


def run(
    document: AnyDocument,
    out: Folder | None = None,
    *,
    data_root: Folder = DATA_ROOT,
    weights: Folder | None = None,
    device_map: Device | None = None,
    batch_size: int | None = None,
    engine: EngineName = "traced",
    schedule: Mode = "auto",
    gen: Mapping[str, object] | None = None,
    sets: Mapping[str, object] | None = None,
    limit: int | None = None,
    points: Sequence[str] = (),
    force: bool = False,
    strict: bool = False,
) -> Results:
    """Run a document and read its results.

    They are in the directory `out`, or, without one, in a temporary directory that goes when the results do. A
    directory with points of the same run is finished, as on the command line. What a run warns of are Python warnings.

    `sets`: values of the document, by path, whatever it says. With `limit`, the first rows of every table, or `points`,
    patterns of labels, the results are partial. `strict`: a write that changed nothing is a failure, everything written
    all the same. Raises `Refusal` before anything runs, `RunFailure` after.
    """
    from causalab_mini.cli.session import perform
    from causalab_mini.results.remarks import strange

    compiled, settings = _asked(
        document, data_root, weights, device_map, batch_size, engine, schedule, gen, sets, limit, points, force
    )
    folder = Path(mkdtemp(prefix="causalab-mini-") if out is None else out)
    try:
        done = perform(compiled, folder, settings, _unheard)
        if strict and done.idle:
            raise RunFailure("; ".join(done.idle), "check says what each write does; without strict this is a warning")
        results = Results(folder)
    except BaseException:
        if out is None:
            rmtree(folder, ignore_errors=True)
        raise
    if out is None:
        finalize(results, rmtree, folder, ignore_errors=True)
    said = (*compiled.experiment.warnings, *done.warnings, *done.unscored, *strange(done.summary))
    for warning in dict.fromkeys(said):
        warnings.warn(warning, stacklevel=2)
    return results


def dry_run(
    document: AnyDocument,
    out: Folder,
    *,
    data_root: Folder = DATA_ROOT,
    weights: Folder | None = None,
    device_map: Device | None = None,
    batch_size: int | None = None,
    engine: EngineName = "traced",
    schedule: Mode = "auto",
    gen: Mapping[str, object] | None = None,
    sets: Mapping[str, object] | None = None,
    limit: int | None = None,
    points: Sequence[str] = (),
    force: bool = False,
) -> tuple[Planned, ...]:
    """What `run` would do with every `point`: whether it `runs`, and for what `reason`. Leaves no trace."""
    from causalab_mini.cli.session import planned

    compiled, settings = _asked(
        document, data_root, weights, device_map, batch_size, engine, schedule, gen, sets, limit, points, force
    )
    return planned(compiled, Path(out), settings)


def check(
    document: AnyDocument,
    *,
    data_root: Folder = DATA_ROOT,
    weights: Folder | None = None,
    device_map: Device | None = None,
    engine: EngineName = "traced",
    schedule: Mode = "auto",
    gen: Mapping[str, object] | None = None,
    sets: Mapping[str, object] | None = None,
    limit: int | None = 16,
    points: Sequence[str] = (),
) -> Checked:
    """Hold a document's numbers against those of every other way to compute them: `holds`, and what differs.

    Writes no file. Looks at a few of the points, unless `points` names others. Raises `Refusal` and `RunFailure`.
    """
    from causalab_mini.cli.checking import POINTS, checked
    from causalab_mini.cli.selection import spread
    from causalab_mini.garbage import collected

    compiled, settings = _asked(
        document, data_root, weights, device_map, None, engine, schedule, gen, sets, limit, points, False
    )
    labels = settings.points or spread(compiled.experiment, POINTS)
    with collected():
        return checked(compiled, labels, engine, device_map, schedule)


def compare(first: Results | Folder, second: Results | Folder) -> Compared:
    """Two finished runs, joined by example id and point: whether they are the `same`, and what differs. No torch."""
    from causalab_mini.results.comparing import compare as compared

    return compared(*(run if isinstance(run, Results) else load(run) for run in (first, second)))


def load(directory: Folder) -> Results:
    """The results of a run that has finished in `directory`. No torch. Raises `Refusal` where there are none."""
    return Results(Path(directory))


def _unheard(label: str, fate: str) -> None:
    """Progress, which nobody asked for."""


def _asked(
    document: AnyDocument,
    data_root: Folder,
    weights: Folder | None,
    device_map: str | None,
    batch_size: int | None,
    engine: str,
    schedule: Mode,
    gen: Mapping[str, object] | None,
    sets: Mapping[str, object] | None,
    limit: int | None,
    points: Sequence[str],
    force: bool,
) -> tuple[Compiled, Settings]:
    """The document with its plan, and how it is to be run."""
    from causalab_mini.cli.selection import selected
    from causalab_mini.cli.session import Settings

    _known("engine", engine, ("traced", "hooks"))
    _known("schedule", schedule, ("auto", "fast", "exact", "naive"))
    _known("device_map", device_map or "auto", ("cpu", "cuda", "mps", "auto"))
    size, rows = _count("batch_size", batch_size), _count("limit", limit)
    compiled = _compiled(document, data_root, weights, gen, sets, limit=rows, need_weights=True)
    chosen = selected(compiled.experiment, [points] if isinstance(points, str) else points) if points else None
    return compiled, Settings(engine, device_map, size, schedule, force, chosen)


def _compiled(
    document: AnyDocument,
    data_root: Folder,
    weights: Folder | None,
    gen: Mapping[str, object] | None,
    sets: Mapping[str, object] | None,
    *,
    limit: int | None = None,
    need_weights: bool = False,
) -> Compiled:
    from causalab_mini.cli.reading import compile_document
    from causalab_mini.cli.voice import Voice

    path, text = _given(document)
    folder = None if weights is None else Path(weights)
    return compile_document(
        path,
        Voice(),
        Path(data_root),
        folder,
        need_weights=need_weights,
        text=text,
        gen=_pairs("gen", gen),
        sets=_pairs("sets", sets),
        limit=limit,
    )


def _given(document: object) -> tuple[Path, bytes | None]:
    """Where a document lies, and its bytes where that is no file: files it names are then relative to here."""
    if isinstance(document, bytes):
        return Path(NAME), document
    if isinstance(document, str) and document.lstrip().startswith("{"):
        return Path(NAME), document.encode(errors="surrogatepass")
    if isinstance(document, str | os.PathLike):
        return Path(document), None
    if not isinstance(document, Mapping):
        message = f"a document is a dict, a path or JSON text, and a {type(document).__name__} was given"
        raise Refusal(Problem("", message))
    if problems := list(_strangers(document, "")):
        raise Refusal(problems)
    return Path(NAME), json.dumps(_plain(document), indent=1, ensure_ascii=False).encode(errors="surrogatepass")


def _strangers(value: object, path: str) -> Iterator[Problem]:
    """What is in a document and not in JSON."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(key, str):
                yield from _strangers(item, join(path, key))
            else:
                yield Problem(path, f"the key {key!r} is no text", "keys of a document are strings")
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from _strangers(item, join(path, i))
    elif isinstance(value, float) and not math.isfinite(value):
        yield Problem(path, f"{value} is no number of JSON", "a document holds finite numbers")
    elif value is not None and not isinstance(value, str | int | float):
        yield Problem(
            path, f"a {type(value).__name__} is nothing JSON has", "a document is numbers, texts, lists and dicts"
        )


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _pairs(name: str, settings: object) -> list[str] | None:
    """Settings as the command line spells them."""
    if settings is None:
        return None
    if not isinstance(settings, Mapping):
        raise Refusal(Problem("", f"{name} is a dict of settings, and a {type(settings).__name__} was given"))
    if problems := list(_strangers(settings, "")):
        raise Refusal(problems)
    return [f"{key}={json.dumps(_plain(value))}" for key, value in settings.items()]


def _known(name: str, word: str, words: Sequence[str]) -> None:
    if word not in words:
        raise Refusal(Problem("", f"{name}: there is no {word!r}", suggest(str(word), words, "choices")))


def _count(name: str, count: object) -> int | None:
    if count is None:
        return None
    if isinstance(count, int) and not isinstance(count, bool) and count >= 1:
        return count
    raise Refusal(Problem("", f"{name} is at least 1, and {count!r} was given", "None sets no bound"))
