"""What a step must give, as the reference says it."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor


@dataclass(frozen=True)
class Cell:
    """A row under a metric: its value or the reason there is none, where it was read, what stands there; a layer.

    `emitted` and `argmax` are what it said and what was likeliest, where these may differ.
    """

    value: object
    reason: str | None
    positions: tuple[int, ...]
    tokens: tuple[str, ...]
    stopped_at: int | None
    layer: int | None = None
    emitted: tuple[int, ...] | None = None
    argmax: tuple[int, ...] | None = None


@dataclass
class Told:
    """What an observe step must give: cells by metric, ids [N] per row by continuation, outputs by tensor name."""

    decodes: bool
    tables: dict[str, list[Cell]] = field(default_factory=dict)
    generated: dict[str, list[list[int]]] = field(default_factory=dict)
    outputs: dict[str, Tensor] = field(default_factory=dict)
