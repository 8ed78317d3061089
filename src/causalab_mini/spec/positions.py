"""A position of a document: which tokens of a frame a read or write touches.

Knows the shape of a position and how it is spelled; what it selects in a row is `frames`' business.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from causalab_mini.vocabulary.node import Node, mismatch, whole

CUTS = ("index", "span", "last", "all")


def _pair(value: object) -> object:
    if isinstance(value, list | tuple) and len(value) == 2 and all(whole(end) for end in value):
        return tuple(value)
    raise mismatch("a list of two integers")


class Scope(Node):
    """The run inside a frame that a cut counts in."""

    variable: str | None = None
    segment: str | None = None
    occurrence: int | None = None


class Position(Node):
    """One cut of a run of a frame. Exactly one of `index`, `span`, `last`, `all` is given; `spec.check` sees to it."""

    index: int | None = None
    span: Annotated[tuple[int, int], BeforeValidator(_pair)] | None = None
    last: Annotated[int, Field(gt=0)] | None = None
    all: Literal[True] | None = None
    scope: Scope | None = None
    frame: Literal["prompt", "generated"] = "prompt"
    token: Literal["output", "input"] = "output"

    @property
    def generated(self) -> bool:
        """Whether it counts the tokens the model generates."""
        return self.frame == "generated"

    @property
    def cuts(self) -> tuple[str, ...]:
        """The cuts that are given; a well-formed position has one."""
        return tuple(cut for cut in CUTS if getattr(self, cut) is not None)

    @property
    def width(self) -> int | None:
        """How many tokens it selects, or None where only the row knows."""
        if self.index is not None:
            return 1
        if self.last is not None:
            return self.last
        if self.span is not None and (self.span[0] < 0) == (self.span[1] < 0):
            return self.span[1] - self.span[0]
        return None

    @property
    def ragged(self) -> bool:
        """Whether rows may differ in how many tokens it selects, or in whether it selects any."""
        return self.scope is not None or self.width is None

    @property
    def deferred(self) -> bool:
        """Whether only the finished continuation can locate it: a generated negative cut, `last` or a scope."""
        if not self.generated:
            return False
        ends = (self.index,) if self.index is not None else self.span or ()
        return self.scope is not None or self.last is not None or any(end < 0 for end in ends)

    def compact(self) -> str:
        """The spelling of every message and listing: `{generated index:-1 scope:{segment:eos}}`."""
        parts = ["generated"] if self.generated else []
        if self.index is not None:
            parts.append(f"index:{self.index}")
        if self.span is not None:
            parts.append(f"span:[{self.span[0]}, {self.span[1]}]")
        if self.last is not None:
            parts.append(f"last:{self.last}")
        if self.all:
            parts.append("all")
        if self.scope is not None:
            named = (
                ("segment", self.scope.segment),
                ("variable", self.scope.variable),
                ("occurrence", self.scope.occurrence),
            )
            parts.append("scope:{" + " ".join(f"{key}:{value}" for key, value in named if value is not None) + "}")
        if self.token == "input":
            parts.append("token:input")
        return "{" + " ".join(parts) + "}"


def _spelled_out(value: object) -> object:
    if whole(value):
        return {"index": value}
    if isinstance(value, dict | Position):
        return value
    raise mismatch("an integer or an object")


Pos = Annotated[Position, BeforeValidator(_spelled_out, json_schema_input_type=int | Position)]
"""A position, or an integer that is short for `{"index": int}`."""
