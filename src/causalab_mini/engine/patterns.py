"""Attention patterns: what softmax is given of every key, and what it makes of that.

A family's own attention computes; on its way to and from softmax a pattern passes through the block's taps. It is seen
there as [L, T, H, N]: for each lane the keys of its own tokens from the first on, padding left out, N as many as the
lane with most has. Where a query sees no key, since it is a later token's, out of the window or past the lane's end,
there is −∞, and what is written there is passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode


@dataclass(frozen=True)
class Keys:
    """Where each lane's keys are: `order` [L, N] columns of the call, `real` [L, N] whether the lane has so many."""

    order: Tensor
    real: Tensor

    @classmethod
    def of(cls, mask: Tensor) -> Keys:
        """From a call's mask [L, P+T]: 1 where a column is the lane's own."""
        counts = mask.sum(-1)
        most = int(counts.max())
        # Columns of padding fill up what is no key, so that no column comes twice.
        order = torch.argsort(1 - mask, dim=-1, stable=True)[:, :most]
        return cls(order, torch.arange(most, device=mask.device) < counts[:, None])


class PatternTap(Protocol):
    """A tap as far as patterns are concerned; its lanes' keys are known while it is open."""

    open: bool
    keys: Keys | None

    def __call__(self, value: Tensor) -> Tensor:
        """The value after what is done at the tap."""
        ...


class Softmax(TorchFunctionMode):
    """For as long as it lasts, what goes into softmax [L, H, T, K] and what comes out pass through taps.

    `mask` is the model's own, [L, 1, T, K] and the lowest number where a query sees no key; `dtype` what the model
    computes in, in which patterns are seen.
    """

    def __init__(self, scores: PatternTap, probs: PatternTap, mask: Tensor | None, dtype: torch.dtype) -> None:
        super().__init__()
        self._scores = scores
        self._probs = probs
        self._mask = mask
        self._dtype = dtype

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Do as `func` does; around softmax, more."""
        if func is not torch.nn.functional.softmax:
            return func(*args, **(kwargs or {}))
        scores, *rest = args
        found = func(_through(self._scores, scores, self._mask), *rest, **(kwargs or {}))
        narrow = found.to(self._dtype)
        seen = _through(self._probs, narrow, self._mask)
        return found if seen is narrow else seen.to(found.dtype)


def _through(tap: PatternTap, value: Tensor, mask: Tensor | None) -> Tensor:
    """A pattern [L, H, T, K] after what is done at its tap."""
    if not tap.open or tap.keys is None:
        return value
    lanes = value.shape[0]
    order = tap.keys.order[:lanes, None, None, :].to(value.device)
    seen = tap.keys.real[:lanes, None, None, :].to(value.device)
    if mask is not None:
        unmasked = mask > torch.finfo(mask.dtype).min / 2
        seen = seen & unmasked.expand(lanes, -1, -1, -1).gather(-1, order.expand(-1, mask.shape[1], mask.shape[2], -1))
    order = order.expand(-1, value.shape[1], value.shape[2], -1)
    before = value.gather(-1, order)
    shown = before.masked_fill(~seen, -torch.inf).transpose(1, 2)
    after = tap(shown)
    return value if after is shown else value.scatter(-1, order, torch.where(seen, after.transpose(1, 2), before))
