"""What every job stands on: a document on a checkpoint, its rows as tokens, a model for each program.

Three models are loaded, one for each program, so that what nnsight does to the modules it wraps touches no other.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from nnsight import NNsight
from torch import Tensor, nn

from benchmarks.documents import ROWS, fitted
from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.checkpoint.resolve import resolve
from causalab_mini.engine.contract import Engine
from causalab_mini.engine.hooks import Hooks
from causalab_mini.engine.modules import Network, load
from causalab_mini.engine.traced import Traced
from causalab_mini.plan.compile import compile_experiment
from causalab_mini.plan.nodes import Experiment
from causalab_mini.run.runner import Run
from causalab_mini.schedule.cost import Cost
from causalab_mini.schedule.optimize import Mode
from causalab_mini.spec.load import load as load_document

ENGINES: dict[str, type[Engine]] = {"traced": Traced, "hooks": Hooks}

Outcome = dict[str, Tensor]
"""What a program finds, by `<point>/<metric or bundle>`: floats [rows, …], generated ids int64 [rows, N]."""


@dataclass(frozen=True)
class World:
    """One job's document on one checkpoint."""

    name: str
    weights: Path
    rows: Path = ROWS
    engine: str = "traced"
    mode: Mode = "auto"

    @cached_property
    def checkpoint(self) -> Checkpoint:
        """The model without its weights."""
        return resolve(str(self.weights), weights=self.weights)

    @cached_property
    def document(self) -> dict:
        """The document, for a model of this depth."""
        return fitted(self.name, self.checkpoint.depth)

    @cached_property
    def experiment(self) -> Experiment:
        """Everything the document says, planned."""
        text = json.dumps(self.document).encode()
        return compile_experiment(load_document(text, self.name), self.checkpoint, self.rows)

    @property
    def points(self) -> dict[str, dict]:
        """The values of every point's axes, by its label."""
        return {point.label: dict(point.axes) for point in self.experiment.points}

    @cached_property
    def table(self) -> list[dict]:
        """The rows of the only table."""
        (ref,) = set(self.document["steps"]["measure"]["rows"].values())
        return json.loads((self.rows / f"{ref}.json").read_bytes())

    @cached_property
    def tokens(self) -> dict[str, list[tuple[int, ...]]]:
        """Every role's texts as ids."""
        texts = {"base": [row["input"] for row in self.table]}
        if "counterfactual" in self.document["roles"]:
            texts["counterfactual"] = [row["counterfactual_inputs"][0] for row in self.table]
        return {role: [self.checkpoint.encode(text).ids for text in each] for role, each in texts.items()}

    @cached_property
    def answers(self) -> dict[str, Tensor]:
        """The ids [rows] of both answers, by column."""
        columns = ("base_answer", "cf_answer")
        return {
            column: torch.tensor([self.checkpoint.answer(row[column], "space_prefixed", "") for row in self.table])
            for column in columns
        }

    @cached_property
    def banned(self) -> list[int]:
        """The ids that greedy decoding leaves out."""
        return sorted(self.checkpoint.eos_ids)

    def network(self) -> Network:
        """The model, loaded anew."""
        return load(self.checkpoint.folder, "fp32", "sdpa", "cpu")

    @cached_property
    def product(self) -> Run:
        """The product on a model of its own."""
        network = self.network()
        return Run(self.experiment, self.checkpoint, network, ENGINES[self.engine](network), mode=self.mode)

    @cached_property
    def plain(self) -> nn.Module:
        """The plain loop's model."""
        return self.network().model

    @cached_property
    def unwrapped(self) -> nn.Module:
        """What `traced` wraps."""
        return self.network().model

    @cached_property
    def traced(self) -> NNsight:
        """The nnsight loop's model."""
        return NNsight(self.unwrapped)

    def run(self) -> Outcome:
        """What the product finds."""
        found: Outcome = {}
        self.product.done = Cost()
        for result in self.product.results():
            for observed in result.observed:
                for table in observed.tables:
                    values = [row.value for row in table.rows]
                    found[f"{result.point.label}/{table.name}"] = torch.tensor(values)
                for bundle in observed.bundles:
                    found[f"{result.point.label}/{bundle.name}"] = bundle.tensors[bundle.name]
        return found
