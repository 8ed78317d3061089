"""Read and replace cells of a tensor [L, T, w]: a *cell* is one lane at one column, a vector [w].

Knows shapes only. Writes out of place: what a model handed over is never changed under its hands.
"""

from __future__ import annotations

import torch
from torch import Tensor


def gather(t: Tensor, lanes: Tensor, columns: Tensor, features: Tensor | None = None) -> Tensor:
    """The cells (lanes[i], columns[i]) of `t` [L, T, w], as [n, w]; with `features` [f], only those entries, [n, f].

    `lanes` and `columns` are [n] int64, on the CPU or where `t` is. The result is memory of its own.
    """
    _check(t, lanes, columns, features)
    if features is None:
        return t[lanes, columns]
    return t[lanes[:, None], columns[:, None], features[None, :]]


def scatter(t: Tensor, lanes: Tensor, columns: Tensor, values: Tensor, features: Tensor | None = None) -> Tensor:
    """A new tensor: `t` [L, T, w] with `values` [n, w] in the cells (lanes[i], columns[i]).

    With `features` [f], `values` is [n, f] and the other entries of the cells stay. A cell, and a feature, is named at
    most once: of two values for one place neither is the right one.
    """
    _check(t, lanes, columns, features)
    width = t.shape[2] if features is None else features.shape[0]
    if values.shape != (lanes.shape[0], width):
        raise ValueError(f"{tuple(values.shape)} values for {lanes.shape[0]} cells of width {width}")
    if values.dtype != t.dtype or values.device != t.device:
        raise ValueError(f"{values.dtype} values on {values.device} for a tensor of {t.dtype} on {t.device}")
    if features is None:
        return t.index_put((lanes, columns), values)
    return t.index_put((lanes[:, None], columns[:, None], features[None, :]), values)


def _check(t: Tensor, lanes: Tensor, columns: Tensor, features: Tensor | None) -> None:
    if t.ndim != 3:
        raise ValueError(f"cells are of a tensor [L, T, w], not {tuple(t.shape)}")
    if lanes.ndim != 1 or lanes.shape != columns.shape:
        raise ValueError(f"lanes {tuple(lanes.shape)} and columns {tuple(columns.shape)} are not [n] both")
    if features is not None and features.ndim != 1:
        raise ValueError(f"features are [f], not {tuple(features.shape)}")
    for name, index in (("lanes", lanes), ("columns", columns), ("features", features)):
        if index is not None and index.dtype != torch.int64:
            raise ValueError(f"{name} are int64, not {index.dtype}")
