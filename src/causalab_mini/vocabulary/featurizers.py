"""The spaces a value can be read and written in. The node that holds a kind's fields is the class that computes it.

A featurizer maps values x [n, d] to features f [n, k] and features back to a reconstruction x̂ [n, d]; the part of x
that the features do not express, x − x̂, is left as it was. `slots` are the tensors a kind is loaded from. Knows
tensors only as something with arithmetic, fp32; refuses to know files and sites.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Literal

from causalab_mini.vocabulary.node import Kind, Node, Registry

if TYPE_CHECKING:
    from torch import Tensor

IDENTITY = "identity"

Maps = Mapping[str, "Tensor"]
"""A featurizer's tensors, fp32, by the names of its slots."""


@dataclass(frozen=True)
class Slot:
    """A tensor of a featurizer's file: its name, what its axes count (`d` or `k`), and whether it may be missing."""

    name: str
    axes: tuple[Literal["d", "k"], ...]
    optional: bool = False


class Source(Enum):
    """Where a kind's tensors come from."""

    NOTHING = "nothing"
    FILE = "a file"
    SEED_OR_FILE = "a seed, or a file"


class Featurizer(Node):
    """A space; its fields are those of the document that decide what is computed.

    `orthonormal`: features are coordinates along orthonormal directions, so writes to different ones do not meet.
    `sized`: k is not always d.
    """

    keyword: ClassVar[str]
    formula: ClassVar[str]
    source: ClassVar[Source] = Source.FILE
    slots: ClassVar[tuple[Slot, ...]] = ()
    orthonormal: ClassVar[bool] = False
    sized: ClassVar[bool] = True
    k: int | None = None

    def maps(self, d: int, tensors: Maps) -> Maps:
        """What `encode` and `decode` take, from the tensors of the file (none where there is no file)."""
        return tensors

    def encode(self, x: Tensor, maps: Maps) -> Tensor:
        """The features [n, k] of x [n, d]."""
        raise NotImplementedError

    def decode(self, f: Tensor, maps: Maps) -> Tensor:
        """The reconstruction [n, d] from f [n, k]."""
        raise NotImplementedError


class Identity(Featurizer):
    """The value itself."""

    keyword = IDENTITY
    formula = "f = x"
    source = Source.NOTHING
    orthonormal = True
    sized = False

    def encode(self, x: Tensor, maps: Maps) -> Tensor:
        """x."""
        return x

    def decode(self, f: Tensor, maps: Maps) -> Tensor:
        """f."""
        return f


class Subspace(Featurizer):
    """Coordinates along k orthonormal directions: drawn with a seed, or loaded."""

    keyword = "subspace"
    formula = "f = xQ, x̂ = fQᵀ"
    source = Source.SEED_OR_FILE
    slots = (Slot("basis", ("d", "k")),)
    orthonormal = True
    seed: int | None = None

    def maps(self, d: int, tensors: Maps) -> Maps:
        """The loaded basis, or the one the seed draws."""
        if tensors:
            return tensors
        if self.k is None or self.seed is None:
            raise ValueError("a subspace without a file has a k and a seed")
        return {"basis": cayley(d, self.k, self.seed)}

    def encode(self, x: Tensor, maps: Maps) -> Tensor:
        """xQ, [n, k]."""
        return x @ maps["basis"]

    def decode(self, f: Tensor, maps: Maps) -> Tensor:
        """fQᵀ, [n, d]."""
        return f @ maps["basis"].T


class Pca(Featurizer):
    """Coordinates along loaded principal directions, from the mean when the file has one."""

    keyword = "pca"
    formula = "f = (x − mean)Q, x̂ = fQᵀ + mean"
    slots = (Slot("basis", ("d", "k")), Slot("mean", ("d",), optional=True))
    orthonormal = True

    def encode(self, x: Tensor, maps: Maps) -> Tensor:
        """(x − mean)Q, [n, k]."""
        return (x - maps["mean"] if "mean" in maps else x) @ maps["basis"]

    def decode(self, f: Tensor, maps: Maps) -> Tensor:
        """fQᵀ + mean, [n, d]."""
        x = f @ maps["basis"].T
        return x + maps["mean"] if "mean" in maps else x


class Gate(Featurizer):
    """The coordinates whose θ is positive; the others read as 0 and are left alone."""

    keyword = "gate"
    formula = "f = x·m, x̂ = f·m, m = [θ > 0]"
    slots = (Slot("theta", ("d",)),)
    orthonormal = True
    sized = False

    def maps(self, d: int, tensors: Maps) -> Maps:
        """The mask m [d], 0 or 1."""
        return {"mask": (tensors["theta"] > 0).float()}

    def encode(self, x: Tensor, maps: Maps) -> Tensor:
        """x·m, [n, d]."""
        return x * maps["mask"]

    def decode(self, f: Tensor, maps: Maps) -> Tensor:
        """f·m, [n, d]."""
        return f * maps["mask"]


_DICTIONARY = (
    Slot("W_enc", ("d", "k")),
    Slot("W_dec", ("k", "d")),
    Slot("b_enc", ("k",), optional=True),
    Slot("b_dec", ("d",), optional=True),
)


class Linear(Featurizer):
    """Features of a loaded linear encoder and decoder."""

    keyword = "linear"
    formula = "f = (x − b_dec)W_enc + b_enc, x̂ = fW_dec + b_dec"
    slots = _DICTIONARY

    def encode(self, x: Tensor, maps: Maps) -> Tensor:
        """(x − b_dec)W_enc + b_enc, [n, k]."""
        f = (x - maps["b_dec"] if "b_dec" in maps else x) @ maps["W_enc"]
        return f + maps["b_enc"] if "b_enc" in maps else f

    def decode(self, f: Tensor, maps: Maps) -> Tensor:
        """fW_dec + b_dec, [n, d]."""
        x = f @ maps["W_dec"]
        return x + maps["b_dec"] if "b_dec" in maps else x


class Sae(Linear):
    """Features of a loaded sparse autoencoder."""

    keyword = "sae"
    formula = "f = ReLU((x − b_dec)W_enc + b_enc), x̂ = fW_dec + b_dec"

    def encode(self, x: Tensor, maps: Maps) -> Tensor:
        """ReLU((x − b_dec)W_enc + b_enc), [n, k]."""
        return super().encode(x, maps).relu()


FEATURIZERS: Registry[Kind[Featurizer]] = Registry(
    "featurizer",
    tuple(Kind(node.keyword, node) for node in (Identity, Subspace, Pca, Sae, Linear, Gate)),
)


def cayley(d: int, k: int, seed: int) -> Tensor:
    """The seeded orthonormal basis [d, k], fp32.

    W [d, k] ~ N(0, 1)/√d from a CPU generator, E the first k columns of I, A = WEᵀ − EWᵀ, and the basis is
    (I − A)⁻¹(I + A)E. A = UVᵀ has rank 2k, with U = [W, E] and V = [E, −W], so by Woodbury the basis is
    E + 2U(I − VᵀU)⁻¹VᵀE: a solve of 2k×2k.
    """
    import torch

    generator = torch.Generator(device="cpu").manual_seed(seed)
    w = (torch.randn(d, k, generator=generator, dtype=torch.float32) / d**0.5).double()
    e = torch.eye(d, k, dtype=torch.float64)
    u, v = torch.cat((w, e), dim=1), torch.cat((e, -w), dim=1)
    inner = torch.eye(2 * k, dtype=torch.float64) - v.T @ u
    return (e + 2 * u @ torch.linalg.solve(inner, v.T @ e)).float()
