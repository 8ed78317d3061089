"""Attention patterns as values: [n, H, N], a number for each of a row's keys, 0 where the query does not see it.

A call sees them over as many keys as its longest lane has, with −∞ where a query sees none. Knows tensors and nothing
of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from causalab_mini.plan.nodes import Forward, Publish, Read

Change = Callable[[Tensor, Tensor], Tensor]
"""(values [n, w], the values before any write) → new values, of equal shape."""


def over(pattern: Tensor, keys: int) -> Tensor:
    """`pattern` [n, H, N] over so many keys: cut, or 0 at its end."""
    return torch.nn.functional.pad(pattern, (0, keys - pattern.shape[-1]))


def together(found: Sequence[Tensor]) -> list[Tensor]:
    """Patterns over as many keys as any of them has; other values as they are."""
    if not found or found[0].ndim < 3:
        return list(found)
    most = max(pattern.shape[-1] for pattern in found)
    return [over(pattern, most) for pattern in found]


def kept(seen: Tensor, heads: Sequence[int] | None, keys: int) -> Tensor:
    """A lane's own pattern [n, H, keys] of what a call sees [n, H, N], of some heads or all."""
    own = seen[..., :keys] if heads is None else seen[:, list(heads), :keys]
    return own.masked_fill(own.isneginf(), 0)


def changed(seen: Tensor, before: Tensor, change: Change) -> tuple[Tensor, Tensor, Tensor]:
    """What a call goes on with where it saw `seen` [n, H, N], a change of the keys that are seen.

    `before` is what it was before any write. Returns the new pattern, and the entries [n, H·N] before and after.
    """
    hidden = before.isneginf()
    old = seen.masked_fill(hidden, 0).flatten(1)
    new = change(old, before.masked_fill(hidden, 0).flatten(1)).masked_fill(hidden.flatten(1), 0)
    return new.view_as(seen).masked_fill(hidden, -torch.inf), old, new


def keys(
    publish: Publish, read: Read, forward: Forward, windows: Sequence[tuple[int, ...] | None], width: int | None
) -> dict[str, Tensor]:
    """Over how many keys an output's patterns are, 0 where there is none; nothing for other values.

    `windows`: the columns or steps of every row, `width` many where all have as many. [rows], [rows, width], or flat.
    """
    if not read.place.component.pattern:
        return {}
    counts = [
        [0] * (width or 0) if window is None else [len(text.ids) + (at if read.pos.generated else 0) for at in window]
        for window, text in zip(windows, forward.batch.rows, strict=True)
    ]
    if width is None:
        return {f"{publish.name}.keys": torch.tensor([count for row in counts for count in row], dtype=torch.long)}
    return {f"{publish.name}.keys": torch.tensor(counts)[:, 0] if width == 1 else torch.tensor(counts)}
