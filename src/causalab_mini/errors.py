"""Everything this package raises on purpose, and the exit code each kind leaves with.

    CausalabError
    ├── Refusal(problems)        exit 2   the author can fix it; nothing ran, nothing was written
    │   ├── SyntaxRefusal                 the bytes are not one JSON object without duplicate keys
    │   ├── SchemaRefusal                 an object of the document has a wrong shape
    │   ├── ReferenceRefusal              names and numbers of the document do not fit each other
    │   ├── SweepRefusal                  the sweeps do not expand to a bounded set of labelled points
    │   ├── DataRefusal                   a table, split, column or row
    │   ├── PlanRefusal                   document, rows and checkpoint together
    │   └── OutputRefusal                 the output directory
    └── RunFailure               exit 1   the run started and could not go on
        ├── Interrupted      exit 130     somebody stopped it, between two calls
        ├── ModelUnavailable              the weights, config or tokenizer cannot be had
        └── EngineFailure                 a foreign error, wrapped once at the border, cause kept
            └── OutOfMemory               memory ran out inside a forward: a smaller call may do

Knows nothing of documents, tensors or terminals.
"""

from __future__ import annotations

import difflib
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, replace

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_REFUSED = 2
EXIT_INTERRUPTED = 130


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that is wrong: where, what was found, and one way out.

    `path` is a dotted document path (`interventions.steer.writes.push.pos`, list items as `[0]`), or
    "" when no place in the document is at fault. `line` is filled in by whoever still has the text.
    """

    path: str
    message: str
    hint: str | None = None
    line: int | None = None

    def within(self, prefix: str) -> Problem:
        """The same problem, its path prefixed."""
        return replace(self, path=join(prefix, self.path))


def join(*parts: str | int) -> str:
    """A dotted path of `parts`: strings by dots, integers as `[i]`, empty strings left out."""
    path = ""
    for part in parts:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part:
            path += part if not path or part.startswith("[") else f".{part}"
    return path


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name closest to `name`, or None when none is close."""
    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return close[0] if close else None


def suggest(name: str, known: Iterable[str], noun: str = "names") -> str:
    """A way out for an unknown name: the nearest known one, then the list."""
    names = sorted(known)
    if not names:
        return f"there are no {noun} here"
    close = nearest(name, names)
    listing = ", ".join(names)
    return f"did you mean '{close}'? the {noun} are: {listing}" if close else f"the {noun} are: {listing}"


class CausalabError(Exception):
    """Base of all errors of this package."""

    exit_code = EXIT_FAILED


class Refusal(CausalabError):
    """What was asked cannot be done as stated; `problems` says all that is wrong, sorted by path."""

    exit_code = EXIT_REFUSED

    def __init__(self, problems: Iterable[Problem] | Problem) -> None:
        found = (problems,) if isinstance(problems, Problem) else tuple(problems)
        self.problems: tuple[Problem, ...] = found
        super().__init__("; ".join(f"{p.path}: {p.message}" if p.path else p.message for p in found))

    def within(self, prefix: str) -> Refusal:
        """The same refusal, every path prefixed."""
        return type(self)(problem.within(prefix) for problem in self.problems)


class SyntaxRefusal(Refusal):
    """The bytes are not one JSON object without duplicate keys."""


class SchemaRefusal(Refusal):
    """An object of the document has a wrong shape."""


class ReferenceRefusal(Refusal):
    """Names and numbers of the document do not fit each other."""


class SweepRefusal(Refusal):
    """The sweeps do not expand to a bounded set of labelled points."""


class DataRefusal(Refusal):
    """A table, split, column or row is not what the document needs."""


class PlanRefusal(Refusal):
    """Document, rows and checkpoint do not go together."""


class OutputRefusal(Refusal):
    """The output directory cannot take this run."""


class RunFailure(CausalabError):
    """The run started and could not go on. `hint`: a way out; `path`: the place in the document it comes from."""

    hint: str | None = None
    path: str = ""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint or self.hint


class Interrupted(RunFailure):
    """Somebody stopped the run, which ended between two calls."""

    exit_code = EXIT_INTERRUPTED


class ModelUnavailable(RunFailure):
    """The weights, the config or the tokenizer of a model cannot be had."""

    hint = "name a folder as transformers saves one: config.json, tokenizer.json and *.safetensors; --weights takes one"


class EngineFailure(RunFailure):
    """A foreign error from inside a forward; its cause is kept."""


class OutOfMemory(EngineFailure):
    """Memory ran out inside a forward: a smaller call may do."""


@contextmanager
def at(*parts: str | int) -> Generator[None]:
    """Prefix the path of any refusal or failure that leaves the block."""
    try:
        yield
    except Refusal as refusal:
        raise refusal.within(join(*parts)) from refusal.__cause__
    except RunFailure as failure:
        failure.path = join(*parts, failure.path)
        raise
