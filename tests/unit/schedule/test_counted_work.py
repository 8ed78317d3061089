"""What the jobs of `benchmarks/` cost, counted: token-layers of the plan on a model of 30 layers.

The model has no weights, and a tokenizer under which every row of `datasets/bench` has as many tokens as under that of
the checkpoint the documents name. `LOOP` is what a careful plain loop runs for the same job.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache

import pytest
from tests.words import compiled, facts, write_shape
from tests.worlds import DATASETS, DOCUMENTS

from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.schedule.optimize import Mode
from causalab_mini.schedule.prepare import Prepared, prepare

LAYERS = 30
NAMES = (
    *("Anna", "Ben", "Carl|a", "D|mit|ri", "E|len|a", "Far|id", "G|race", "H|iro", "In|es", "Jon|as", "K|ofi", "L|ena"),
    *("M|ate|o", "N|adia", "O|mar", "P|ri|ya"),
)
"""The only words of several tokens."""

LOOP = {
    "layer_sweep": 194_880,
    "layer_position": 103_530,
    "layer_position_all": 925_680,
    "generate_probe": 12_600,
    "steering_strengths": 50_400,
    "harvest": 223_680,
}
"""Sources once, one forward a point (two answers a row), decodes with a cache, batches of 32 rows."""

BOUND = {
    "layer_sweep": 4_900,
    "layer_position": 7_500,
    "layer_position_all": 50_000,
    "generate_probe": 2_300,
    "steering_strengths": 23_000,
    "harvest": 90_000,
}

Planned = Callable[[str, Mode], Prepared]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    rows = [row for path in sorted((DATASETS / "bench").glob("*.json")) for row in json.loads(path.read_text())]
    texts = [cell for row in rows for cell in (row["input"], *row.get("counterfactual_inputs", ()))]
    names = {name.replace("|", ""): name for name in NAMES}
    words = sorted({names.get(word, word) for text in texts for word in re.findall(r"\w+|[^\w\s]", text)})
    folder = write_shape(
        tmp_path_factory.mktemp("shapes") / "thirty",
        words,
        num_hidden_layers=LAYERS,
        hidden_size=576,
        num_attention_heads=9,
        num_key_value_heads=3,
        vocab_size=49152,
    )
    return facts(folder)


@pytest.fixture(scope="module")
def planned(checkpoint: Checkpoint) -> Planned:
    experiments = {
        name: compiled(json.loads((DOCUMENTS / "bench" / f"{name}.json").read_text()), checkpoint, DATASETS)
        for name in BOUND
    }

    @cache
    def at(name: str, mode: Mode) -> Prepared:
        return prepare(experiments[name].points, checkpoint, mode)

    return at


def test_the_rows_have_their_lengths(checkpoint: Checkpoint) -> None:
    tables = [json.loads((DATASETS / "bench" / f"{name}.json").read_text()) for name in ("calendar", "harvest")]
    calendar, harvest = ([checkpoint.encode(row["input"]).ids for row in table] for table in tables)
    assert [len(ids) for ids in calendar] == [29] * 7
    assert [len({ids[column] for ids in calendar}) for column in (24, 25, 26)] == [1, 7, 1]
    others = [checkpoint.encode(row["counterfactual_inputs"][0]).ids for row in tables[0]]
    assert sorted(others) == sorted(calendar)
    lengths = [len(ids) for ids in harvest]
    assert (len(lengths), sum(lengths), min(lengths), max(lengths)) == (512, 5160, 4, 15)
    batches = [lengths[start : start + 32] for start in range(0, 512, 32)]
    assert LAYERS * sum(len(batch) * max(batch) for batch in batches) == LOOP["harvest"]
    assert min(ids[0] for ids in (*calendar, *harvest)) > checkpoint.pad_id


@pytest.mark.parametrize("name", BOUND)
def test_fast_stays_within_its_bound(name: str, planned: Planned) -> None:
    assert planned(name, "fast").planned.token_layers <= BOUND[name]


@pytest.mark.parametrize("name", BOUND)
def test_exact_runs_no_more_than_naive(name: str, planned: Planned) -> None:
    prepared = planned(name, "exact")
    assert prepared.planned.token_layers <= prepared.naive.token_layers
    assert prepared.planned.calls <= prepared.naive.calls
    assert planned(name, "naive").planned == prepared.naive
    # One forward of the sources is all that a loop saves over the naive schedule.
    assert prepared.planned.token_layers <= LOOP[name] * 1.1


def test_what_is_read_costs_nothing(planned: Planned) -> None:
    # The harvest sweeps the layer it reads, the probe the step: one call each for all points but for their lengths.
    assert planned("harvest", "exact").planned.token_layers * LAYERS == planned("harvest", "exact").naive.token_layers
    assert planned("generate_probe", "exact").planned.calls == 2
