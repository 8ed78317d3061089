"""Parts of the language that are not built yet, refused by name where they stand.

Works on plain JSON, before shapes are checked. Each rule hands back the part without what is missing, so that the
rest of it is still looked at, or nothing where nothing is left.
"""

from __future__ import annotations

from dataclasses import dataclass

from causalab_mini.errors import Problem
from causalab_mini.spec.text import JsonObject

STEPS = ("fit", "weights")


@dataclass(frozen=True)
class Sifted:
    """A part without what is not built: None where nothing is left of it. `broken` are keys whose value is lost."""

    rest: JsonObject | None
    problems: tuple[Problem, ...] = ()
    broken: tuple[str, ...] = ()


def unbuilt(path: str, what: str, hint: str | None = None) -> Problem:
    """The one message of every part that is not built."""
    return Problem(path, f"{what} is not implemented yet", hint)


def step(raw: JsonObject) -> Sifted:
    """`fit` and `weights` steps."""
    kind = raw.get("kind")
    if isinstance(kind, str) and kind in STEPS:
        return Sifted(None, (unbuilt("kind", f"the step kind '{kind}'", "the kind there is: observe"),))
    return Sifted(raw)
