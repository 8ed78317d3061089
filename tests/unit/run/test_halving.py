"""A call that runs out of memory is run in halves, and gives what it would have given whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from causalab_mini.checkpoint.resolve import resolve
from causalab_mini.engine.contract import Inputs, Visit
from causalab_mini.engine.hooks import Hooks
from causalab_mini.engine.modules import load
from causalab_mini.errors import OutOfMemory
from causalab_mini.plan.compile import compile_experiment
from causalab_mini.run.runner import Run
from causalab_mini.schedule.optimize import Mode
from causalab_mini.spec.load import load as load_document

ROOT = Path(__file__).parents[3]


class Small:
    """An engine with room for a few lanes: it runs out of memory on more, some of them after the prefill."""

    def __init__(self, inner: Hooks, lanes: int, *, late: bool) -> None:
        self.device = inner.device
        self._inner = inner
        self._lanes = lanes
        self._late = late

    def forward(self, inputs: Inputs, visits: Sequence[Visit]) -> dict[str, Tensor]:
        started = inputs.cache is not None and inputs.cache.get_seq_length() > 8
        if inputs.ids.shape[0] > self._lanes and (started or not self._late):
            raise OutOfMemory("no room")
        return self._inner.forward(inputs, visits)


@pytest.fixture(scope="module")
def parts():
    checkpoint = resolve("causalab-mini/weekdays-llama")
    network = load(checkpoint.folder, "fp32", None, "cpu")
    path = ROOT / "documents/v2/generate_probe.json"
    experiment = compile_experiment(load_document(path.read_bytes(), path.name), checkpoint, ROOT / "datasets")
    return experiment, checkpoint, network


def outcome(run: Run) -> dict[str, object]:
    found: dict[str, object] = {}
    for result in run.results():
        for observed in result.observed:
            for table in observed.tables:
                found[result.point.label, table.name] = [row.value for row in table.rows]
            for bundle in observed.bundles:
                found[result.point.label, bundle.name] = json.dumps(
                    {name: tensor.tolist() for name, tensor in bundle.tensors.items()}
                )
            found[result.point.label, "writes"] = [report.firings for report in observed.writes]
    return found


@pytest.mark.parametrize("mode", ["naive", "exact", "fast"])
@pytest.mark.parametrize("late", [False, True])
def test_halves_give_what_the_whole_gives(parts, mode: Mode, late: bool) -> None:
    experiment, checkpoint, network = parts
    whole = Run(experiment, checkpoint, network, Hooks(network), mode=mode)
    halved = Run(experiment, checkpoint, network, Small(Hooks(network), 1, late=late), mode=mode)
    wanted, found = outcome(whole), outcome(halved)
    assert whole.halved == 0
    assert halved.halved > 0
    assert found.keys() == wanted.keys()
    for key, value in wanted.items():
        if isinstance(value, list) and isinstance(value[0], float):
            assert torch.allclose(torch.tensor(found[key]), torch.tensor(value), rtol=1e-4, atol=1e-9)
        else:
            assert found[key] == value


def test_one_lane_that_does_not_fit_ends_the_run(parts) -> None:
    experiment, checkpoint, network = parts
    with pytest.raises(OutOfMemory, match="no room"):
        list(Run(experiment, checkpoint, network, Small(Hooks(network), 0, late=False)).results())
