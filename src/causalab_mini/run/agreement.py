"""How far two executions of one plan are apart, row by row: kept values, continuations, scores, reasons.

Knows records; refuses to know how they came about.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from causalab_mini.plan.probes import shown_as
from causalab_mini.results.records import Bundle, Observed

GENERATED = ".generated"
STEPPED = ("fraction", "rank", "list")
"""Units of metrics that jump where two tokens change places, however little it took."""


@dataclass(frozen=True)
class Gap:
    """The largest difference of one value in one row, and the value's largest entry there."""

    point: str
    observe: str
    what: str
    example_id: str
    largest: float
    size: float

    @property
    def relative(self) -> float:
        """The difference as a part of the value's size, or of 1 where it is smaller."""
        return self.largest / max(self.size, 1.0)


@dataclass(frozen=True)
class Apart:
    """A row that differs in kind: other tokens, another reason, another length. `near`: a choice there was close."""

    point: str
    observe: str
    what: str
    example_id: str
    near: bool = False


def apart(one: Observed, other: Observed) -> Iterator[Gap | Apart]:
    """All that can be told apart of one observe step, run twice.

    A row whose tokens differ is told of once: what it generated further on is no longer about the same text.
    """
    where = (one.point, "/".join(one.path))
    strayed: dict[str, bool] = {}
    close = {tie.example_id for tie in (*one.near_ties, *other.near_ties)}
    again = {bundle.name: bundle for bundle in other.bundles}
    for bundle in one.bundles:
        if not bundle.name.endswith(GENERATED):
            continue
        mine, its = by_row(bundle), by_row(again[bundle.name])
        for example_id, value in mine.items():
            if not torch.equal(value, its[example_id]) and example_id not in strayed:
                strayed[example_id] = example_id in close
                yield Apart(*where, bundle.name, example_id, near=example_id in close)
    for bundle in one.bundles:
        if bundle.name.endswith(GENERATED):
            continue
        mine, its = by_row(bundle), by_row(again[bundle.name])
        for example_id, value in mine.items():
            if example_id not in strayed:
                yield _gap(where, bundle.name, example_id, value, its[example_id])
    for table, second in zip(one.tables, other.tables, strict=True):
        seen = [by_row(bundle) for bundle in one.bundles if bundle.name in map(shown_as, table.reads)]
        for row, same in zip(table.rows, second.rows, strict=True):
            if row.example_id in strayed:
                continue
            what = f"'{table.name}'"
            if (row.reason, row.positions) != (same.reason, same.positions):
                yield Apart(*where, what, row.example_id)
            elif isinstance(row.value, float) and isinstance(same.value, float) and table.unit not in STEPPED:
                # A score is as exact as what it is made of: a difference of large logits is no more so for being small.
                size = max((_size(values[row.example_id]) for values in seen), default=abs(row.value))
                yield Gap(*where, what, row.example_id, abs(row.value - same.value), size)


def _gap(where: tuple[str, str], what: str, example_id: str, value: Tensor, other: Tensor) -> Gap | Apart:
    if value.shape != other.shape or not torch.equal(value.isfinite(), other.isfinite()):
        return Apart(*where, what, example_id)
    return Gap(*where, what, example_id, largest(value, other), _size(value))


def largest(one: Tensor, other: Tensor) -> float:
    """The largest difference of two values of one shape; entries that are equal do not differ, infinite ones too."""
    difference = torch.where(one == other, 0.0, (one - other).abs())
    return float(difference.nan_to_num(0.0).max()) if difference.numel() else 0.0


def _size(value: Tensor) -> float:
    finite = value[value.isfinite()]
    return float(finite.abs().max()) if finite.numel() else 0.0


def by_row(bundle: Bundle) -> Mapping[str, Tensor]:
    """A bundle's own tensor, cut into what each row has: rows that may differ in length, to their own."""
    tensor = bundle.tensors[bundle.name]
    ids: Sequence[str] = json.loads(bundle.metadata["example_ids"])
    dims: Sequence[str] = json.loads(bundle.metadata["dims"])
    lengths = bundle.tensors.get(f"{bundle.name}.lengths")
    axis = 1 if dims[0] == "layer" else 0
    tensor = tensor.movedim(axis, 0)
    if lengths is None:
        return dict(zip(ids, tensor, strict=True))
    if dims[axis] == "token":
        return dict(zip(ids, tensor.split(lengths.tolist()), strict=True))
    return {name: row[:count] for name, row, count in zip(ids, tensor, lengths.tolist(), strict=True)}
