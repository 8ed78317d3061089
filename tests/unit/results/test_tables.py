"""A metric table as a file."""

from __future__ import annotations

import json
import math

import pytest
from tests.unit.results.build import row, stacked, table

from causalab_mini.results.records import MetricTable
from causalab_mini.results.tables import settled, table_bytes, table_rows
from causalab_mini.vocabulary.reasons import Reason

KEYS = [
    *("example_id", "metric", "value", "eligible", "positions", "reason", "unit", "estimand_version"),
    *("produced_by", "tokens", "row"),
]


def test_keys_stand_in_the_promised_order() -> None:
    (cells,) = table_rows(table(0.5), "d1")
    assert list(cells) == KEYS
    assert cells == {
        "example_id": "row-0",
        "metric": "p",
        "value": 0.5,
        "eligible": True,
        "positions": [3],
        "reason": None,
        "unit": "probability",
        "estimand_version": "token_prob/v1",
        "produced_by": "d1",
        "tokens": [" Friday"],
        "row": 0,
    }


def test_a_decoding_pass_adds_stopped_at() -> None:
    (cells,) = table_rows(table(0.5, decodes=True), "d1")
    assert list(cells) == [*KEYS, "stopped_at"]
    assert cells["stopped_at"] is None


def test_a_stacked_site_adds_the_layer() -> None:
    found = table_rows(stacked({0: (0.25,), 2: (None,)}), "d1")
    assert [list(cells) for cells in found] == [[*KEYS, "layer"]] * 2
    assert [(cells["row"], cells["layer"], cells["reason"]) for cells in found] == [(0, 0, None), (0, 2, "non_finite")]


def test_the_file_is_an_array_with_one_space_of_indent() -> None:
    text = table_bytes(table(0.5), "d1").decode()
    assert text.startswith('[\n {\n  "example_id": "row-0",\n')
    assert text.endswith("\n]\n")


def test_text_is_written_as_it_is() -> None:
    rows = (row([[7, "é", 0.5]]),)
    assert "é" in table_bytes(MetricTable("t", "top_k", "list", False, rows), "d").decode()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, [[1, "a", math.nan]]])
def test_what_is_not_finite_becomes_null_with_a_reason(value: object) -> None:
    assert settled(row(value)) == (None, Reason.NON_FINITE)
    (cells,) = json.loads(table_bytes(table(value), "d"))
    assert (cells["value"], cells["eligible"], cells["reason"]) == (None, False, "non_finite")


def test_a_reason_wins_over_a_value() -> None:
    assert settled(row(math.nan, Reason.EMPTY_CELL)) == (None, Reason.EMPTY_CELL)


def test_zero_and_lists_are_values() -> None:
    assert settled(row(0.0)) == (0.0, None)
    assert settled(row([[1, "a", 0.5]])) == ([[1, "a", 0.5]], None)
