"""Runs documents with the product, and holds what comes out against `tests.oracle`.

A desk is a checkpoint folder, its loaded model and a data root. Documents are plain dicts.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

import pytest
import torch
from tests import oracle
from tests.worlds import DATASETS, DOCUMENTS
from torch import Tensor

from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.checkpoint.resolve import BUNDLED_FOLDER, BUNDLED_PREFIX, resolve
from causalab_mini.engine.contract import Engine
from causalab_mini.engine.hooks import Hooks
from causalab_mini.engine.modules import Network, load
from causalab_mini.engine.traced import Traced
from causalab_mini.errors import Problem, Refusal
from causalab_mini.plan.compile import compile_experiment
from causalab_mini.plan.nodes import Experiment
from causalab_mini.results.records import MetricTable, Observed, TableRow
from causalab_mini.run.runner import Run
from causalab_mini.schedule.optimize import Mode
from causalab_mini.spec.load import load as load_document

ENGINES: dict[str, type[Engine]] = {"hooks": Hooks, "traced": Traced}

Points = Mapping[str, Mapping[tuple[str, ...], Observed]]
"""What a run gives: by the point's label, by the step's path."""


@dataclass(frozen=True)
class Desk:
    """Where documents are run."""

    folder: Path
    network: Network
    root: Path = DATASETS

    @cached_property
    def checkpoint(self) -> Checkpoint:
        shipped = self.folder.parent == BUNDLED_FOLDER
        return resolve(f"{BUNDLED_PREFIX}{self.folder.name}" if shipped else str(self.folder), weights=self.folder)

    @cached_property
    def world(self) -> oracle.World:
        return oracle.World(self.folder, self.network.model, self.root)

    @cached_property
    def engines(self) -> dict[str, Engine]:
        return {name: engine(self.network) for name, engine in ENGINES.items()}

    def under(self, attention: str | None) -> Desk:
        """The same checkpoint under the attention that a document asks for."""
        own = self.network.model.config._attn_implementation
        return self if attention in (None, own) else replace(self, network=_loaded(self.folder, attention))

    def over(self, root: Path) -> Desk:
        """The same model over other data."""
        return Desk(self.folder, self.network, root)

    def compile(self, document: dict) -> Experiment:
        loaded = load_document(json.dumps(document, indent=1).encode(), "document.json")
        return compile_experiment(loaded, self.checkpoint, self.root, DOCUMENTS / "v2" / "document.json")

    def run(
        self,
        document: dict,
        engine: str = "hooks",
        batch_size: int | None = None,
        mode: Mode = "auto",
        skip: Collection[str] = (),
    ) -> Points:
        """Every point but those to skip, in the order in which they were done."""
        at = self.under(document["model"].get("attn_implementation"))
        run = Run(at.compile(document), at.checkpoint, at.network, at.engines[engine], batch_size, mode, skip)
        return {
            result.point.label: {observed.path: observed for observed in result.observed} for result in run.results()
        }

    def one(self, document: dict, engine: str = "hooks", batch_size: int | None = None, mode: Mode = "auto") -> Seen:
        """The only step of the only point."""
        ((_, steps),) = self.run(document, engine, batch_size, mode).items()
        ((_, observed),) = steps.items()
        return Seen(observed)

    def tell(self, document: dict) -> dict[str, dict[tuple[str, ...], oracle.Told]]:
        return oracle.tell(self.world, document)

    def problems(self, document: dict) -> list[Problem]:
        """What the document is refused for."""
        with pytest.raises(Refusal) as caught:
            self.compile(document)
        return list(caught.value.problems)


@dataclass(frozen=True)
class Seen:
    """One observe step's results, by name."""

    observed: Observed

    def table(self, metric: str) -> MetricTable:
        (table,) = (table for table in self.observed.tables if table.name == metric)
        return table

    def rows(self, metric: str) -> tuple[TableRow, ...]:
        return self.table(metric).rows

    def values(self, metric: str) -> list[object]:
        return [row.value for row in self.rows(metric)]

    def reasons(self, metric: str) -> list[str | None]:
        return [None if row.reason is None else str(row.reason) for row in self.rows(metric)]

    def positions(self, metric: str) -> list[tuple[int, ...]]:
        return [row.positions for row in self.rows(metric)]

    def tokens(self, metric: str) -> list[tuple[str, ...]]:
        return [row.tokens for row in self.rows(metric)]

    def tensors(self, name: str) -> dict[str, Tensor]:
        (bundle,) = (bundle for bundle in self.observed.bundles if bundle.name == name)
        return bundle.tensors

    def tensor(self, name: str) -> Tensor:
        return self.tensors(name)[name]

    def metadata(self, name: str) -> dict[str, object]:
        """A bundle's metadata, what is JSON in it parsed."""
        (bundle,) = (bundle for bundle in self.observed.bundles if bundle.name == name)
        parsed = ("dims", "example_ids", "missing")
        return {key: json.loads(value) if key in parsed else value for key, value in bundle.metadata.items()}

    def ids(self, model: str) -> list[list[int]]:
        return self.tensor(f"{model}.generated").tolist()


@cache
def _loaded(folder: Path, attention: str) -> Network:
    return load(folder, "fp32", attention, "cpu")


def desk(folder: Path, root: Path = DATASETS) -> Desk:
    """A desk on the CPU in single precision."""
    return Desk(folder, load(folder, "fp32", None, "cpu"), root)


def agree(points: Points, told: Mapping[str, Mapping[tuple[str, ...], oracle.Told]]) -> None:
    """Every point that was run is told, and every value of it is what the row alone gives."""
    assert points
    for label, steps in points.items():
        assert steps.keys() == told[label].keys(), label
        for path, observed in steps.items():
            _agree(f"{label}/{'/'.join(path)}", Seen(observed), told[label][path])


def _agree(where: str, seen: Seen, told: oracle.Told) -> None:
    assert [table.name for table in seen.observed.tables] == list(told.tables), where
    for name, cells in told.tables.items():
        found = [replace(row, value=None) for row in seen.rows(name)]
        table = seen.table(name)
        assert [(row.reason and str(row.reason), row.positions, row.tokens) for row in found] == [
            (cell.reason, cell.positions, cell.tokens) for cell in cells
        ], f"{where} {name}"
        layers = len({cell.layer for cell in cells})
        assert [(row.row, row.layer) for row in found] == [(i // layers, cell.layer) for i, cell in enumerate(cells)]
        assert table.decodes == told.decodes
        assert [row.stopped_at for row in found] == [cell.stopped_at for cell in cells], f"{where} {name}"
        assert [(row.emitted, row.argmax) for row in found] == [(cell.emitted, cell.argmax) for cell in cells]
        # A probability is held to its own size; a logit, a nat or a cosine may be the difference of larger numbers.
        scale = 0.0 if table.unit in ("probability", "list") else 1.0
        for row, cell in zip(seen.rows(name), cells, strict=True):
            assert_close(row.value, cell.value, scale, f"{where} {name} row {row.row}")
    for bundle in seen.observed.bundles:
        for name, tensor in bundle.tensors.items():
            if name in told.generated:
                assert tensor.dtype == torch.int64
                assert tensor.tolist() == told.generated[name], f"{where} {name}"
            elif not name.endswith((".lengths", ".keys")):
                assert tensor.dtype == torch.float32
                wanted = told.outputs[name]
                assert tensor.shape == wanted.shape, f"{where} {name} {tensor.shape} {wanted.shape}"
                largest = max(wanted.nan_to_num().abs().flatten().tolist(), default=0.0)
                torch.testing.assert_close(tensor, wanted, rtol=0, atol=1e-4 * max(largest, 1.0), equal_nan=True)


def assert_close(found: object, wanted: object, scale: float, where: str) -> None:
    """Numbers to 1e-4 of their size (of `scale` where they are a difference of larger ones); ids and texts exactly."""
    if isinstance(wanted, list):
        assert isinstance(found, list)
        assert len(found) == len(wanted), where
        for one, other in zip(found, wanted, strict=True):
            assert_close(one, other, scale, where)
    elif isinstance(wanted, float):
        assert isinstance(found, float), where
        assert abs(found - wanted) <= 1e-4 * max(abs(wanted), scale), f"{where}: {found} is not {wanted}"
    else:
        assert found == wanted, where
