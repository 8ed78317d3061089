"""Featurizers written out: what a value's features are, and what features stand for.

Tensors come from the file with safetensors, a seeded subspace from the formula with its d×d inverse, all in double
precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

FOLDER = Path(__file__).parents[2] / "documents" / "v2"
"""What the files of documents are relative to."""

Change = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Space:
    """One featurizer; `encode` maps [w] to [k], `decode` back."""

    encode: Callable[[Tensor], Tensor]
    decode: Callable[[Tensor], Tensor]

    def within(self, change: Change) -> Change:
        """A change of features as a change of values: what the features do not express is added back."""

        def outer(x: Tensor, before: Tensor) -> Tensor:
            value = x.double()
            f = self.encode(value)
            error = value - self.decode(f)
            new = change(f.float(), self.encode(before.double()).float()).double()
            return (self.decode(new) + error).to(x.dtype)

        return outer


def space(spec: dict | None, d: int) -> Space | None:
    """The space of a declared featurizer at a value `d` wide; None for the value itself."""
    if spec is None or spec["kind"] == "identity":
        return None
    tensors = {}
    if "file_path" in spec:
        loaded = load_file(FOLDER / spec["file_path"])
        tensors = {name.rsplit(".", 1)[-1]: tensor.double() for name, tensor in loaded.items()}
    if spec["kind"] == "gate":
        (theta,) = tensors.values()
        mask = (theta > 0).double()
        return Space(lambda x: x * mask, lambda f: f * mask)
    zero = torch.zeros((), dtype=torch.float64)
    if spec["kind"] in ("subspace", "pca"):
        basis = (
            cayley(d, spec["k"], spec["seed"]) if not tensors else tensors.get("basis", next(iter(tensors.values())))
        )
        mean = tensors.get("mean", zero)
        return Space(lambda x: (x - mean) @ basis, lambda f: basis @ f + mean)
    b_enc, b_dec = tensors.get("b_enc", zero), tensors.get("b_dec", zero)
    rectified = torch.relu if spec["kind"] == "sae" else lambda f: f
    return Space(lambda x: rectified((x - b_dec) @ tensors["W_enc"] + b_enc), lambda f: f @ tensors["W_dec"] + b_dec)


def cayley(d: int, k: int, seed: int) -> Tensor:
    """(I − A)⁻¹(I + A)E, with A = WEᵀ − EWᵀ."""
    w = torch.randn((d, k), generator=torch.Generator().manual_seed(seed)).div(d**0.5).double()
    e = torch.eye(d, dtype=torch.float64)[:, :k]
    a = w @ e.T - e @ w.T
    one = torch.eye(d, dtype=torch.float64)
    return torch.linalg.inv(one - a) @ (one + a) @ e


def principal(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k directions [d, k] of largest variance of x [n, d], largest entries positive, and the mean [d]."""
    mean = x.double().mean(0)
    centred = x.double() - mean
    _, vectors = torch.linalg.eigh(centred.T @ centred)
    basis = vectors.flip(1)[:, :k]
    signs = torch.stack([column[column.abs().argmax()].sign() for column in basis.T])
    return (basis * signs).float(), mean.float()
