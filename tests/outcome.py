"""Runs an experiment under a schedule of choice, and makes what comes out comparable: to the bit, or within a bound."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import torch
from tests.words import Bench

from causalab_mini.plan.nodes import Experiment
from causalab_mini.results.records import Observed
from causalab_mini.run.runner import Run
from causalab_mini.schedule import optimize, prepare
from causalab_mini.schedule.optimize import Mode

Outcome = Mapping[str, tuple[Observed, ...]]
"""What a run gives, by the point's label."""


def run(
    bench: Bench, experiment: Experiment, mode: Mode, batch_size: int | None = None, skip: Collection[str] = ()
) -> Outcome:
    """Every point but those to skip; what ran is what was planned."""
    job = Run(experiment, bench.checkpoint, bench.network, bench.engine, batch_size, mode, skip)
    planned = job.prepared.planned
    found = {result.point.label: result.observed for result in job.results()}
    assert found.keys() == {point.label for point in experiment.points} - set(skip)
    assert job.done == planned
    return found


@contextmanager
def passes(names: Iterable[str]) -> Generator[None]:
    """For as long as the block lasts, every mode but naive applies just the passes of these names, in their order."""
    wanted = set(names)
    assert wanted <= {step.name for step in optimize.PASSES}
    modes = frozenset[Mode](("exact", "fast"))
    chosen = tuple(replace(step, modes=modes) for step in optimize.PASSES if step.name in wanted)
    with patch.object(optimize, "PASSES", chosen):
        yield


@contextmanager
def priced(columns: int) -> Generator[None]:
    """For as long as the block lasts, a further call costs as much as so many columns.

    On models as small as these it costs so much that lanes would hardly ever wait for each other.
    """
    with patch.object(prepare, "call_columns", lambda hidden: columns):
        yield


def to_the_bit(observed: Iterable[Observed]) -> list[object]:
    """Tables and bundles, tensors as bytes and numbers as they print."""
    return [
        [
            one.path,
            repr(one.tables),
            [
                (bundle.name, bundle.metadata, {name: _bytes(t) for name, t in bundle.tensors.items()})
                for bundle in one.bundles
            ],
        ]
        for one in observed
    ]


def same(first: Outcome, second: Outcome) -> None:
    """Both hold the same points, with the same bytes and the same reports."""
    assert first.keys() == second.keys()
    for label in first:
        assert to_the_bit(first[label]) == to_the_bit(second[label]), label
        for one, other in zip(first[label], second[label], strict=True):
            assert one.near_ties == other.near_ties, label
            assert repr((one.writes, one.warnings)) == repr((other.writes, other.warnings)), label


def close(first: Outcome, second: Outcome, bound: float) -> None:
    """Ids, reasons and positions are equal; numbers are within `bound` of their size, or of 1, those of reports too."""
    assert first.keys() == second.keys()
    for label in first:
        for one, other in zip(first[label], second[label], strict=True):
            assert one.path == other.path
            _close_tables(one, other, bound, label)
            _close_bundles(one, other, bound, label)
            _close_writes(one, other, bound, label)


def _close_tables(one: Observed, other: Observed, bound: float, label: str) -> None:
    for a, b in zip(one.tables, other.tables, strict=True):
        where = f"{label} {a.name}"
        assert [replace(row, value=None) for row in a.rows] == [replace(row, value=None) for row in b.rows], where
        _near([row.value for row in a.rows], [row.value for row in b.rows], bound, where)


def _close_bundles(one: Observed, other: Observed, bound: float, label: str) -> None:
    for a, b in zip(one.bundles, other.bundles, strict=True):
        assert (a.name, a.metadata, a.tensors.keys()) == (b.name, b.metadata, b.tensors.keys())
        for name, tensor in a.tensors.items():
            if tensor.dtype == torch.int64:
                assert tensor.tolist() == b.tensors[name].tolist(), f"{label} {name}"
            else:
                scale = max(float(tensor.nan_to_num().abs().max()) if tensor.numel() else 0.0, 1.0)
                torch.testing.assert_close(b.tensors[name], tensor, rtol=0, atol=bound * scale, equal_nan=True)


def _close_writes(one: Observed, other: Observed, bound: float, label: str) -> None:
    for a, b in zip(one.writes, other.writes, strict=True):
        assert (a.name, a.model, a.firings) == (b.name, b.model, b.firings), label
        _near(a.largest_change, b.largest_change, bound, f"{label} {a.name}")


def _near(first: object, second: object, bound: float, where: str) -> None:
    if isinstance(first, list | tuple):
        assert isinstance(second, list | tuple)
        assert len(first) == len(second), where
        for one, other in zip(first, second, strict=True):
            _near(one, other, bound, where)
    elif isinstance(first, float) and first == first:
        assert isinstance(second, float), where
        assert abs(first - second) <= bound * max(abs(first), 1.0), f"{where}: {first} and {second}"
    else:
        assert repr(first) == repr(second), where


def _bytes(t: torch.Tensor) -> tuple[torch.dtype, torch.Size, bytes]:
    return t.dtype, t.shape, t.contiguous().numpy().tobytes()
