"""Attention written out, so that its patterns can be looked at and changed: for `tests.plain`, of one row.

Imports nothing of the product. A pattern at a token is [H, T]: a number for each head and token of the text, 0 where
the query does not see the key. What a change makes of those stays 0.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from tests.plain import Edit, Look

NAME = "written_out_with_patterns"
SIDES = ("scores", "probs")

Items = Sequence["Edit | Look"]


@contextmanager
def written_out(model: nn.Module, items: Items, values: dict[str, Tensor]) -> Generator[None]:
    """For as long as the block lasts, `model` attends as it is written here; edits act, looks go into `values`."""
    from transformers.masking_utils import AttentionMaskInterface, eager_mask
    from transformers.modeling_utils import AttentionInterface

    at: dict[tuple[nn.Module, str], list[Edit | Look]] = {}
    for item in items:
        at.setdefault((model.get_submodule(item.module), item.side), []).append(item)

    def attend(
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor,
        scaling: float,
        softcap: float | None = None,
        **_: object,
    ) -> tuple[Tensor, None]:
        """[1, H, T, h] → [1, T, H, h], head by head."""
        group, seen = query.shape[1] // key.shape[1], mask[0, 0] == 0
        scores = torch.stack([q @ key[0, head // group].T * scaling for head, q in enumerate(query[0])])
        scores = scores if softcap is None else softcap * torch.tanh(scores / softcap)
        scores = _act(scores, seen, at.get((module, "scores"), ()), values)
        probs = scores.masked_fill(~seen, -torch.inf).softmax(-1)
        probs = _act(probs, seen, at.get((module, "probs"), ()), values)
        out = torch.stack([p @ value[0, head // group] for head, p in enumerate(probs)])
        return out.transpose(0, 1)[None], None

    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, eager_mask)
    own, model.config._attn_implementation = model.config._attn_implementation, NAME
    try:
        yield
    finally:
        model.config._attn_implementation = own


def _act(pattern: Tensor, seen: Tensor, items: Items, values: dict[str, Tensor]) -> Tensor:
    """Edits in their order, then looks, on [H, T, T]."""
    pattern = pattern.masked_fill(~seen, 0)
    for item in items:
        row = pattern[:, item.token].clone()
        change: Callable[[Tensor], Tensor] | None = getattr(item, "change", None)
        if change is None:
            values[item.name] = row
        else:
            pattern[:, item.token] = change(row).masked_fill(~seen[item.token], 0)
    return pattern
