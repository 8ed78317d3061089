"""On real models: exact is naive to the bit, fast within a bound, over generated documents.

Ranks and matches jump at ties and are left to the arithmetic engine; a case whose naive run has a near tie, where two
honest executions may choose otherwise, is left out under fast.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests import families, outcome, words
from tests.strategies import Case, cases

from causalab_mini.errors import Refusal
from causalab_mini.plan.nodes import Experiment

BOUND = 1e-4
"""How far a number may be from the naive run's, in multiples of its size (of 1 where it is smaller)."""

MODELS = [("llama", 16), ("gpt2", 16), ("llama", 64)]
WINDOWED = [("mistral_sliding", 16), ("gemma2", 16)]
"""Attention of some block reaches six columns back, which most of the prompts here outgrow."""

PRICES = st.sampled_from((1, 6, 1000))
"""Columns a further call costs."""

each = settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
Bench = Callable[[str, int], words.Bench]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    @cache
    def at(model: str, width: int) -> words.Bench:
        return words.model_bench(tmp_path_factory.mktemp("models") / f"{model}-{width}", model, width)

    return at


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rows")


drawn = cases(families.DEPTH, exact=False)


def accepted(bench: words.Bench, case: Case, root: Path) -> Experiment:
    try:
        return bench.compile(case.document, case.write(root))
    except Refusal:
        assume(False)
        raise


def near(found: outcome.Outcome) -> bool:
    return any(one.near_ties for observed in found.values() for one in observed)


@pytest.mark.parametrize(("model", "width"), MODELS + WINDOWED)
@given(drawn, st.sampled_from([1, 3, None]))
@each
def test_exact_is_naive_to_the_bit(
    bench: Bench, root: Path, model: str, width: int, case: Case, size: int | None
) -> None:
    at = bench(model, width)
    experiment = accepted(at, case, root)
    naive = outcome.run(at, experiment, "naive", size)
    outcome.same(outcome.run(at, experiment, "exact", size), naive)


@pytest.mark.parametrize(("model", "width"), MODELS)
@given(drawn, st.sampled_from([1, 3, None]), PRICES)
@each
def test_fast_is_naive_within_a_bound(
    bench: Bench, root: Path, model: str, width: int, case: Case, size: int | None, price: int
) -> None:
    at = bench(model, width)
    experiment = accepted(at, case, root)
    naive = outcome.run(at, experiment, "naive")
    assume(not near(naive))
    with outcome.priced(price):
        outcome.close(naive, outcome.run(at, experiment, "fast", size), BOUND)


@pytest.mark.parametrize(("model", "width"), WINDOWED)
@given(drawn, PRICES)
@settings(each, max_examples=20)
def test_a_window_reaches_as_far_in_a_shared_call(
    bench: Bench, root: Path, model: str, width: int, case: Case, price: int
) -> None:
    at = bench(model, width)
    experiment = accepted(at, case, root)
    naive = outcome.run(at, experiment, "naive")
    assume(not near(naive))
    with outcome.priced(price):
        outcome.close(naive, outcome.run(at, experiment, "fast"), BOUND)
