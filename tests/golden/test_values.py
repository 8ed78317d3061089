"""What the shipped documents give on the checkpoint they name: ids and reasons exactly, numbers by tolerance.

That these are the right numbers is held in `tests/parity`; here they are held still. A golden is never written in the
change that moves it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.desk import Desk, Seen, assert_close
from tests.worlds import document

GOLDEN = Path(__file__).parent / "values"
NAMES = ("generate_probe", "generate_steer", "generated_answer", "patching")


def told(desk: Desk, name: str) -> dict[str, dict[str, list]]:
    """By the point's label: of every metric, each row's value or reason; of every continuation, each row's text."""
    points: dict[str, dict[str, list]] = {}
    for label, steps in desk.run(document(f"v2/{name}")).items():
        ((_, observed),) = steps.items()
        seen = Seen(observed)
        values = {
            table.name: [str(row.reason) if row.reason else _short(row.value) for row in table.rows]
            for table in observed.tables
        }
        values |= {
            bundle.name: [desk.checkpoint.decode(tuple(ids)) for ids in seen.tensor(bundle.name).tolist()]
            for bundle in observed.bundles
        }
        points[label] = values
    return points


def _short(value: object) -> object:
    """A number to five digits."""
    if isinstance(value, list):
        return [_short(entry) for entry in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


@pytest.mark.parametrize("name", NAMES)
def test_values(name: str, shipped: Callable[[str], Desk]) -> None:
    wanted = json.loads((GOLDEN / f"{name}.json").read_text())
    found = told(shipped("weekdays-llama"), name)
    assert list(found) == list(wanted)
    for label, values in wanted.items():
        assert list(found[label]) == list(values)
        for table, rows in values.items():
            assert_close(found[label][table], rows, 1.0, f"{label} {table}")
