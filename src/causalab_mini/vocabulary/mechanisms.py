"""How a write changes a value. The node that validates a mechanism's parameters is the class that computes it.

Knows tensors only as something with arithmetic. Every mechanism maps a value `f` [n, w] (n places, w features, the
value in its featurizer's space) and an argument to a new value of the same shape and dtype. `argument` says what
that argument is.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from causalab_mini.vocabulary.node import Kind, Node, Registry

if TYPE_CHECKING:
    from torch import Tensor


class Argument(Enum):
    """What a mechanism computes with, beside the value it changes."""

    OPERAND = "operand"
    NOISE = "noise"
    BEFORE = "the value before any write"
    NOTHING = "nothing"


class Mechanism(Node):
    """A rule for a new value; its fields are the write's `params`.

    `absolute`: the new value forgets the old one, so two of them on one token contradict each other.
    """

    keyword: ClassVar[str]
    argument: ClassVar[Argument]
    absolute: ClassVar[bool] = False
    formula: ClassVar[str]

    def apply(self, f: Tensor, argument: Tensor | None) -> Tensor:
        """The new value [n, w]; `argument` is [n, w] too, or None where the mechanism takes nothing."""
        raise NotImplementedError

    def complaint(self) -> str | None:
        """What is wrong with the parameters together, if anything is."""
        return None

    def spelled(self, operand: str | None) -> str:
        """How a plan prints it: `add_scaled(v_last, scale=4.0)`."""
        parts = [] if operand is None else [operand]
        parts += [f"{key}={value!r}" for key, value in self.model_dump().items() if value is not None]
        return f"{self.keyword}({', '.join(parts)})"


def _given(argument: Tensor | None) -> Tensor:
    if argument is None:
        raise ValueError("this mechanism needs an argument")
    return argument


class Swap(Mechanism):
    """Put the operand in the value's place."""

    keyword = "swap"
    argument = Argument.OPERAND
    absolute = True
    formula = "o"

    def apply(self, f: Tensor, argument: Tensor | None) -> Tensor:
        """The operand [n, w]."""
        return _given(argument).to(f.dtype).expand_as(f)


class AddScaled(Mechanism):
    """Add a multiple of the operand."""

    keyword = "add_scaled"
    argument = Argument.OPERAND
    formula = "f + scale·o"
    scale: float = 1.0

    def apply(self, f: Tensor, argument: Tensor | None) -> Tensor:
        """f + scale·o, [n, w]."""
        return f + self.scale * _given(argument).to(f.dtype)


class Lerp(Mechanism):
    """Move along the line from the value to the operand."""

    keyword = "lerp"
    argument = Argument.OPERAND
    absolute = True
    formula = "(1−t)f + t·o"
    t: float

    def apply(self, f: Tensor, argument: Tensor | None) -> Tensor:
        """(1−t)f + t·o, [n, w]."""
        return (1.0 - self.t) * f + self.t * _given(argument).to(f.dtype)


class Clamp(Mechanism):
    """Limit every feature to a range."""

    keyword = "clamp"
    argument = Argument.NOTHING
    absolute = True
    formula = "min(max(f, lo), hi)"
    lo: float | None = None
    hi: float | None = None

    def complaint(self) -> str | None:
        """At least one bound, and in order."""
        if self.lo is None and self.hi is None:
            return "clamp needs 'lo', 'hi' or both"
        if self.lo is not None and self.hi is not None and self.lo > self.hi:
            return f"clamp's lo {self.lo} is above its hi {self.hi}"
        return None

    def apply(self, f: Tensor, argument: Tensor | None) -> Tensor:
        """The clamped value, [n, w]."""
        return f.clamp(min=self.lo, max=self.hi)


class Gaussian(Mechanism):
    """Add normal noise that depends on the seed, the row and the step alone."""

    keyword = "gaussian"
    argument = Argument.NOISE
    formula = "f + scale·ε"
    seed: int
    scale: float = Field(default=1.0)

    def apply(self, f: Tensor, argument: Tensor | None) -> Tensor:
        """f + scale·ε with ε = `argument`, [n, w]."""
        return f + self.scale * _given(argument).to(f.dtype)


class Renormalize(Mechanism):
    """Rescale to the norm the value had before any write of the model at this site."""

    keyword = "renormalize"
    argument = Argument.BEFORE
    formula = "f·‖before‖/‖f‖"

    def apply(self, f: Tensor, argument: Tensor | None) -> Tensor:
        """f rescaled to `argument`'s norm, [n, w]; a zero vector stays zero."""
        norm = f.float().norm(dim=-1, keepdim=True)
        wanted = _given(argument).float().norm(dim=-1, keepdim=True)
        return (f.float() * (wanted / norm.clamp(min=1e-30))).to(f.dtype)


MECHANISMS = Registry(
    "mechanism",
    tuple(Kind(node.keyword, node) for node in (Swap, AddScaled, Lerp, Clamp, Gaussian, Renormalize)),
)
