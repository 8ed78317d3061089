"""What every metric is: its fields, what its read must be, and what it scores.

Knows tensors only as something with arithmetic; the kinds themselves are in `vocabulary.metrics`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Literal

from causalab_mini.vocabulary.node import Name, Node

if TYPE_CHECKING:
    from torch import Tensor

TokenForm = Literal["space_prefixed", "bare", "in_context", "id"]
TopTokens = list[list[int | str | float]]


class Needs(Enum):
    """What a metric's read must be."""

    LOGITS = "logits over the vocabulary"
    DISTRIBUTION = "logits or probabilities over the vocabulary"
    VECTOR = "a vector"
    CONTINUATION = "the head over every generated token"


@dataclass(frozen=True)
class Scored:
    """What `score` works on: n eligible rows.

    `value` and `against`: [n, V] logits or [n, w] vectors, fp32. `tokens`: answer ids [n] (int64) by field name.
    Of a continuation, `value` has a row for every token of every row, `lengths` says how many are whose, and
    `tokens["fed"]` are the ids.
    """

    value: Tensor
    against: Tensor | None
    tokens: dict[str, Tensor]
    lengths: tuple[int, ...] = ()

    def token(self, field: str) -> Tensor:
        """The value's entry at each row's token: [n]."""
        return self.value.gather(-1, self.tokens[field][:, None])[:, 0]

    def other(self) -> Tensor:
        """`against`, which this metric must have: same shape as `value`."""
        if self.against is None or self.against.shape != self.value.shape:
            raise ValueError("a metric with 'against' needs two values of one shape")
        return self.against


class Metric(Node):
    """A number per row. Fields that name answer columns are listed in `answers`."""

    keyword: ClassVar[str]
    unit: ClassVar[str]
    needs: ClassVar[Needs]
    answers: ClassVar[tuple[str, ...]] = ()
    formula: ClassVar[str]

    of: Name

    def score(self, scored: Scored) -> Tensor | list[TopTokens]:
        """One number per row: a tensor [n], fp32, or a list of n lists."""
        raise NotImplementedError

    @property
    def compared(self) -> str | None:
        """The read this one is compared with, if any."""
        return None


class AnswerMetric(Metric):
    """A metric over answer columns; `token_form` says how text becomes a token."""

    token_form: TokenForm = "space_prefixed"


class ComparedMetric(Metric):
    """A metric of one read against another."""

    against: Name

    @property
    def compared(self) -> str | None:
        """The read named by `against`."""
        return self.against
