"""The arguments of calls as the loops make them, and the token that comes next."""

from __future__ import annotations

import torch
from torch import Tensor


def padded(rows: list[tuple[int, ...]]) -> dict[str, Tensor]:
    """Rows of ids as the arguments of a call: padded on the left, mask and positions with them."""
    width = max(map(len, rows))
    ids = torch.tensor([(0,) * (width - len(row)) + row for row in rows])
    mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
    return {"input_ids": ids, "attention_mask": mask, "position_ids": (mask.cumsum(-1) - 1).clamp(min=0)}


def following(ids: Tensor, mask: Tensor) -> dict[str, Tensor]:
    """The arguments of a call on the next token of every row, `ids` [rows, 1], under the grown `mask`."""
    return {"input_ids": ids, "attention_mask": mask, "position_ids": mask.sum(-1, keepdim=True) - 1}


def greedy(logits: Tensor, banned: list[int]) -> Tensor:
    """The likeliest token [rows, 1] of `logits` [rows, V] that is not banned."""
    allowed = logits.clone()
    allowed[:, banned] = -torch.inf
    return allowed.argmax(-1, keepdim=True)
