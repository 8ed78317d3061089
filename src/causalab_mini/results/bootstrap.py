"""How sure a mean is: the 95 % interval of a bootstrap over rows, the same for the same numbers every time.

Rows are drawn with replacement, as many as there are; the interval holds the middle 95 % of the means so found (Efron
and Tibshirani 1993, ch. 13). It speaks of other rows like these, and of few rows it says little.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy

    Picks = numpy.ndarray[tuple[int, int], numpy.dtype[numpy.int64]]

SEED = 0
RESAMPLES = 2000
TAIL = 0.025
AT_ONCE = 2**20
"""Numbers that are drawn at once."""


@dataclass(frozen=True)
class Interval:
    """The 95 % interval of a mean."""

    low: float
    high: float


def interval(values: Sequence[float]) -> Interval | None:
    """The interval of the mean of `values`, which are finite; None for fewer than two."""
    import numpy

    if len(values) < 2:
        return None
    least, most = float(min(values)), float(max(values))
    if least == most:
        return Interval(least, most)
    numbers = numpy.asarray(values, dtype=numpy.float64)
    means = numpy.concatenate([numbers[picks].mean(axis=1) for picks in _picks(len(values))])
    low, high = (float(numpy.quantile(means, tail)) for tail in (TAIL, 1 - TAIL))
    return Interval(max(low, least), min(high, most))


def _picks(count: int) -> Iterator[Picks]:
    """Which of `count` rows every resample has, some resamples at a time."""
    if count * RESAMPLES <= AT_ONCE:
        yield _few(count)
        return
    import numpy

    drawn = numpy.random.Generator(numpy.random.PCG64(SEED))
    portion = max(1, AT_ONCE // count)
    for start in range(0, RESAMPLES, portion):
        yield drawn.integers(0, count, size=(min(portion, RESAMPLES - start), count))


@lru_cache(maxsize=16)
def _few(count: int) -> Picks:
    import numpy

    return numpy.random.Generator(numpy.random.PCG64(SEED)).integers(0, count, size=(RESAMPLES, count))
