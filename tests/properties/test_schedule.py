"""Whatever a schedule unites, shares, skips and stacks, generated documents give what their naive schedule gives.

The arithmetic engine computes every cell for itself, so here even the passes that may move a last bit must not.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests import outcome, words
from tests.schedules import sound
from tests.strategies import Case, cases

from causalab_mini.errors import Refusal
from causalab_mini.plan.nodes import Experiment
from causalab_mini.schedule.limits import Limits
from causalab_mini.schedule.optimize import PASSES
from causalab_mini.schedule.prepare import prepare

DEPTH = 3
PRICES = st.sampled_from((1, 6, 1000))
"""Columns a further call costs: at 1, lanes wait behind each other in trees of many rounds."""

TURNABLE = ("drop", "trim", "merge", "unique rows", "share prefix", "skip layers")
"""What may be left out of the fast passes: stacking is what makes calls of the others' rounds."""

each = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
drawn = cases(DEPTH, exact=True)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> words.Bench:
    return words.fake_bench(tmp_path_factory.mktemp("fake") / "folder", DEPTH)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rows")


def accepted(bench: words.Bench, case: Case, root: Path) -> Experiment:
    try:
        return bench.compile(case.document, case.write(root))
    except Refusal:
        assume(False)
        raise


@given(drawn, PRICES)
@each
def test_every_mode_is_naive(bench: words.Bench, root: Path, case: Case, price: int) -> None:
    experiment = accepted(bench, case, root)
    naive = outcome.run(bench, experiment, "naive")
    with outcome.priced(price):
        for mode in ("exact", "fast"):
            outcome.same(outcome.run(bench, experiment, mode), naive)


@given(drawn, PRICES, st.sampled_from([None, 1, 3]))
@each
def test_no_value_is_lost_and_none_fed_twice(
    bench: words.Bench, root: Path, case: Case, price: int, size: int | None
) -> None:
    experiment = accepted(bench, case, root)
    for mode in ("naive", "exact", "fast"):
        with outcome.priced(price):
            prepared = prepare(experiment.points, bench.checkpoint, mode, Limits(size))
        sound(prepared.schedule)
        # What is made to share may wait in a padded call; what is only dropped never costs more.
        assert mode == "fast" or prepared.planned.token_layers <= prepared.naive.token_layers


@given(drawn, st.sets(st.sampled_from(TURNABLE)), PRICES)
@each
def test_any_passes_are_naive(bench: words.Bench, root: Path, case: Case, chosen: set[str], price: int) -> None:
    experiment = accepted(bench, case, root)
    naive = outcome.run(bench, experiment, "naive")
    with outcome.passes({*chosen, "stack points"}), outcome.priced(price):
        outcome.same(outcome.run(bench, experiment, "fast"), naive)


@pytest.mark.parametrize("name", [step.name for step in PASSES if "exact" in step.modes])
@given(drawn)
@settings(each, max_examples=15)
def test_each_exact_pass_alone_is_naive(bench: words.Bench, root: Path, name: str, case: Case) -> None:
    experiment = accepted(bench, case, root)
    naive = outcome.run(bench, experiment, "naive")
    with outcome.passes([name]):
        outcome.same(outcome.run(bench, experiment, "exact", 2), naive)


@given(drawn, st.sampled_from((1, 3)))
@each
def test_batches_of_any_size_are_naive(bench: words.Bench, root: Path, case: Case, size: int) -> None:
    experiment = accepted(bench, case, root)
    naive = outcome.run(bench, experiment, "naive")
    for mode in ("naive", "exact", "fast"):
        outcome.same(outcome.run(bench, experiment, mode, size), naive)


@given(cases(DEPTH, exact=True, points=True), st.data())
@each
def test_a_point_does_not_hang_on_others(bench: words.Bench, root: Path, case: Case, data: st.DataObject) -> None:
    experiment = accepted(bench, case, root)
    labels = [point.label for point in experiment.points]
    assume(len(labels) > 1)
    removed = data.draw(st.sets(st.sampled_from(labels), min_size=1, max_size=len(labels) - 1))
    for mode in ("exact", "fast"):
        whole = outcome.run(bench, experiment, mode)
        rest = outcome.run(bench, experiment, mode, skip=removed)
        outcome.same(rest, {label: whole[label] for label in rest})
