"""Principal directions of a set of vectors."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Directions:
    """The k directions of largest variance: basis [d, k] with orthonormal columns, mean [d]; fp32.

    Where the vectors have fewer directions than that, the columns left over are NaN.
    """

    basis: Tensor
    mean: Tensor


def directions(x: Tensor, k: int) -> Directions:
    """Of x [n, d], centred, in double precision. The largest entry of every direction is positive."""
    n, d = x.shape
    basis = torch.full((d, k), torch.nan)
    if n == 0:
        return Directions(basis, torch.full((d,), torch.nan))
    mean = x.double().mean(0)
    centred = x.double() - mean
    _, sizes, rows = torch.linalg.svd(centred, full_matrices=False)
    found = min(k, len(sizes), n - 1)
    columns = rows[:found].T
    largest = columns.abs().argmax(0, keepdim=True)
    basis[:, :found] = (columns * columns.gather(0, largest).sign()).float()
    return Directions(basis, mean.float())
