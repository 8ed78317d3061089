"""The interval of a mean: known cases, always the same, right as often as it says."""

from __future__ import annotations

import random
import statistics
import subprocess
import sys

import numpy
import pytest

from causalab_mini.results.bootstrap import RESAMPLES, Interval, interval


def test_few_values_and_equal_ones() -> None:
    assert interval([]) is None
    assert interval([0.3]) is None
    assert interval([0.1, 0.1, 0.1]) == Interval(0.1, 0.1)


def test_it_is_what_a_few_lines_of_numpy_say() -> None:
    values = numpy.array([0.5, -1.25, 3.0, 0.125, 7.5, 2.2, -0.7, 1.1, 4.4, -3.3, 0.9])
    picks = numpy.random.Generator(numpy.random.PCG64(0)).integers(0, 11, size=(2000, 11))
    low, high = numpy.quantile(values[picks].mean(axis=1), [0.025, 0.975])
    assert interval(values.tolist()) == Interval(low, high)


def test_two_values_have_three_means() -> None:
    """Means are 0, ½ and 1 with chances ¼, ½, ¼, so that the middle 95 % reaches from end to end."""
    assert interval([0.0, 1.0]) == Interval(0.0, 1.0)


def test_of_many_values_it_is_the_textbooks() -> None:
    """Near mean ± 1.96 sd/√n, within the resamples' own noise."""
    drawn = random.Random(7)
    values = [drawn.gauss(5.0, 2.0) for _ in range(400)]
    found = interval(values)
    assert found is not None
    mean, error = statistics.fmean(values), statistics.stdev(values) / 20
    assert found.low == pytest.approx(mean - 1.96 * error, abs=0.15 * error)
    assert found.high == pytest.approx(mean + 1.96 * error, abs=0.15 * error)


def test_it_covers_the_mean_as_often_as_it_says() -> None:
    drawn = random.Random(11)
    hits = 0
    for _ in range(200):
        found = interval([drawn.random() for _ in range(30)])
        assert found is not None
        hits += found.low <= 0.5 <= found.high
    assert 180 <= hits <= 198


def test_it_is_the_same_in_another_process_and_in_portions() -> None:
    values = [float(n % 7) for n in range(900)]  # More than are drawn at once.
    assert len(values) * RESAMPLES > 2**20
    code = "from causalab_mini.results.bootstrap import interval; print(interval([float(n % 7) for n in range(900)]))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == str(interval(values))
