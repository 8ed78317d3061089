"""How large a call may be, and what one costs beside the columns it runs."""

from __future__ import annotations

from dataclasses import dataclass

CALL_COLUMNS = 32
"""Columns that take about as long as one more call: a call reads all weights however few columns it has."""


@dataclass(frozen=True)
class Limits:
    """Bounds on one call.

    `lanes`: `--batch-size`. `columns`: prompt columns of all lanes together. `cells`: numbers that are alive at
    once, per call: the head's logits and, for lanes that decode, the cache.
    """

    lanes: int | None = None
    columns: int = 4096
    cells: int = 12_000_000


@dataclass(frozen=True)
class Shape:
    """What of a model decides how much a call holds: vocabulary, and cache entries a token leaves in all layers."""

    depth: int
    vocab: int
    cache: int
