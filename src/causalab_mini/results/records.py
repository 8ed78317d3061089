"""What a run hands to the files: tables and bundles of one observe step, already in the words of the outputs.

Knows tensors only as values to store.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from causalab_mini.vocabulary.reasons import Reason

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class TableRow:
    """One dataset row under one metric.

    `value` is None exactly when `reason` is given. `positions` are prompt indices in the row's text, or step numbers;
    `tokens` the texts there. `stopped_at` is the first step whose raw argmax is an EOS id. `layer` is the one the value
    is of, where the site is stacked: a dataset row then has a row for each. `emitted` and `argmax` are the ids the row
    generated and the raw logits' most likely ones, step by step, where settings or sampling may tell them apart.
    """

    example_id: str
    row: int
    value: object
    reason: Reason | None
    positions: tuple[int, ...]
    tokens: tuple[str, ...]
    stopped_at: int | None = None
    layer: int | None = None
    emitted: tuple[int, ...] | None = None
    argmax: tuple[int, ...] | None = None


@dataclass(frozen=True)
class MetricTable:
    """All rows of a step under one metric, in dataset order. `decodes`: whether `stopped_at` means anything.

    `reads`: the reads it was made of.
    """

    name: str
    kind: str
    unit: str
    decodes: bool
    rows: tuple[TableRow, ...]
    reads: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bundle:
    """Tensors under their own names, with the string metadata a safetensors file carries."""

    name: str
    tensors: dict[str, Tensor]
    metadata: dict[str, str]


@dataclass(frozen=True)
class NearTie:
    """A greedy choice with a margin under 1e-3."""

    forward: str
    example_id: str
    step: int
    margin: float


@dataclass(frozen=True)
class WriteReport:
    """How often a write acted and the largest change it made, per row (None where it did not act).

    `still`: the rows on which that is nothing, but for what other calls round otherwise. `missed`: how often it was to
    act and did not, which is a fault.
    """

    name: str
    model: str
    firings: tuple[int, ...]
    largest_change: tuple[float | None, ...]
    still: tuple[bool, ...] = ()
    missed: tuple[int, ...] = ()


@dataclass(frozen=True)
class Observed:
    """Everything one observe step produced."""

    point: str
    path: tuple[str, ...]
    tables: tuple[MetricTable, ...]
    bundles: tuple[Bundle, ...]
    near_ties: tuple[NearTie, ...] = ()
    writes: tuple[WriteReport, ...] = ()
    warnings: tuple[str, ...] = field(default=())
