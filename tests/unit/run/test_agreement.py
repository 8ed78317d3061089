"""How far two executions are apart: values by row, tokens, reasons."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from tests.unit.results.build import row, table

from causalab_mini.results.records import Bundle, NearTie, Observed
from causalab_mini.run.agreement import Apart, Gap, apart, by_row
from causalab_mini.vocabulary.reasons import Reason


def bundle(name: str, tensor: list, dims: tuple[str, ...], lengths: list[int] | None = None) -> Bundle:
    tensors = {name: torch.tensor(tensor)}
    if lengths is not None:
        tensors[f"{name}.lengths"] = torch.tensor(lengths)
    return Bundle(name, tensors, {"dims": json.dumps(dims), "example_ids": '["a", "b"]'})


def observed(*bundles: Bundle, **more) -> Observed:
    return Observed("k=1", ("score",), more.pop("tables", ()), bundles, **more)


def test_values_are_compared_row_by_row() -> None:
    one = observed(bundle("v", [[1.0, -8.0], [0.5, 0.25]], ("row", "feature")))
    other = observed(bundle("v", [[1.0, -7.5], [0.5, 0.0]], ("row", "feature")))
    first, second = apart(one, other)
    assert first == Gap("k=1", "score", "v", "a", 0.5, 8.0)
    assert second == Gap("k=1", "score", "v", "b", 0.25, 0.5)
    assert isinstance(first, Gap)
    assert isinstance(second, Gap)
    assert (first.relative, second.relative) == (0.0625, 0.25)


@pytest.mark.parametrize(("value", "other"), [(float("nan"), 1.0), (float("inf"), 1.0), (1.0, float("-inf"))])
def test_a_number_that_is_none_differs_in_kind(value: float, other: float) -> None:
    one, two = (observed(bundle("v", [[x], [1.0]], ("row", "feature"))) for x in (value, other))
    assert next(iter(apart(one, two))) == Apart("k=1", "score", "v", "a")
    assert next(iter(apart(one, one))) == Gap("k=1", "score", "v", "a", 0.0, 0.0 if value != 1.0 else 1.0)


def test_rows_of_unequal_length_and_stacked_layers_are_cut() -> None:
    ragged = by_row(bundle("v", [[1.0], [2.0], [3.0]], ("token", "feature"), [1, 2]))
    assert ragged["b"].tolist() == [[2.0], [3.0]]
    said = by_row(bundle("m.generated", [[5, 6], [7, 0]], ("row", "step"), [2, 1]))
    assert said["b"].tolist() == [7]
    stacked = by_row(bundle("v", [[[1.0], [2.0]], [[3.0], [4.0]]], ("layer", "row", "feature")))
    assert stacked["b"].tolist() == [[2.0], [4.0]]
    one = observed(bundle("v", [[1.0], [2.0], [3.0]], ("token", "feature"), [1, 2]))
    other = observed(bundle("v", [[1.0], [2.0], [3.0]], ("token", "feature"), [2, 1]))
    assert list(apart(one, other)) == [Apart("k=1", "score", "v", "a"), Apart("k=1", "score", "v", "b")]


def test_other_tokens_are_told_once_and_forgiven_after_a_near_tie() -> None:
    values = [bundle("v", [[float(n)], [1.0]], ("row", "feature")) for n in (1, 9)]
    said = [bundle("m.generated", [[5, n], [7, 8]], ("row", "step")) for n in (6, 7)]
    one, other = observed(values[0], said[0]), observed(values[1], said[1])
    assert list(apart(one, other)) == [
        Apart("k=1", "score", "m.generated", "a"),
        Gap("k=1", "score", "v", "b", 0.0, 1.0),
    ]
    close = replace(other, near_ties=(NearTie("m on base", "a", 1, 0.0004),))
    assert next(iter(apart(one, close))) == Apart("k=1", "score", "m.generated", "a", near=True)
    elsewhere = replace(other, near_ties=(NearTie("m on base", "b", 1, 0.0004),))
    assert next(iter(apart(one, elsewhere))) == Apart("k=1", "score", "m.generated", "a", near=False)


def test_another_reason_differs_in_kind() -> None:
    one = observed(tables=(table(0.5, 0.5),))
    missing = replace(table(0.5), rows=(row(0.5), row(None, Reason.OUT_OF_RANGE, 1)))
    assert list(apart(one, observed(tables=(missing,))))[1:] == [Apart("k=1", "score", "'p'", "row-1")]


def test_scores_are_compared_at_the_size_of_what_they_are_made_of() -> None:
    read = bundle("read 'x'", [[30.0, -40.0], [1.0, 2.0]], ("row", "feature"))
    ids = ("a", "b")
    one, other = (
        replace(
            table(value, 1.0, name="gap"),
            unit="logit",
            reads=("x",),
            rows=tuple(replace(line, example_id=name) for line, name in zip(table(value, 1.0).rows, ids, strict=True)),
        )
        for value in (0.5, 0.25)
    )
    *_, first, second = apart(observed(read, tables=(one,)), observed(read, tables=(other,)))
    assert (first, second) == (
        Gap("k=1", "score", "'gap'", "a", 0.25, 40.0),
        Gap("k=1", "score", "'gap'", "b", 0.0, 2.0),
    )
    stepped = [replace(one, unit="fraction"), replace(other, unit="fraction")]
    assert [gap.what for gap in apart(*(observed(read, tables=(it,)) for it in stepped))] == ["read 'x'", "read 'x'"]
