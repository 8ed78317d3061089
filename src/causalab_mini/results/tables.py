"""A metric table as JSON: one object per dataset row (and layer, of a stacked site), always all of them, in order.

Knows records and nothing of tensors. Keys and their order are part of what a run promises.
"""

from __future__ import annotations

from causalab_mini.results.records import MetricTable, TableRow
from causalab_mini.results.strict import is_finite, pretty
from causalab_mini.vocabulary.reasons import Reason


def settled(row: TableRow) -> tuple[object, Reason | None]:
    """The row's value and the reason there is none: a value that is not finite becomes (None, non_finite)."""
    if row.reason is not None:
        return None, row.reason
    if row.value is None or not is_finite(row.value):
        return None, Reason.NON_FINITE
    return row.value, None


def table_rows(table: MetricTable, digest: str) -> list[dict[str, object]]:
    """The table's row objects; `digest` is that of the point which produced them."""
    return [_row_object(table, row, digest) for row in table.rows]


def table_bytes(table: MetricTable, digest: str) -> bytes:
    """The table as the bytes of its file."""
    return pretty(table_rows(table, digest))


def _row_object(table: MetricTable, row: TableRow, digest: str) -> dict[str, object]:
    value, reason = settled(row)
    cells: dict[str, object] = {
        "example_id": row.example_id,
        "metric": table.name,
        "value": value,
        "eligible": reason is None,
        "positions": list(row.positions),
        "reason": None if reason is None else reason.value,
        "unit": table.unit,
        "estimand_version": f"{table.kind}/v1",
        "produced_by": digest,
        "tokens": list(row.tokens),
        "row": row.row,
    }
    if table.decodes:
        cells["stopped_at"] = row.stopped_at
    if row.emitted is not None and row.argmax is not None:
        cells |= {"emitted": list(row.emitted), "argmax": list(row.argmax)}
    if row.layer is not None:
        cells["layer"] = row.layer
    return cells
