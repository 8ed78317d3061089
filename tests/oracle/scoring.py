"""The arithmetic of mechanisms and metrics, written out on single vectors. Metrics are in double precision."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Change = Callable[[Tensor, Tensor], Tensor]
"""(value, the value before any write) → new value; all [w]."""


def mechanism(write: dict, operand: Tensor | float | None, at: tuple[str, int, int, int]) -> Change:
    """What a write does to one vector; `at` is (example id, step, which of the positions, of how many)."""
    params, kind = write.get("params", {}), write["mechanism"]
    low, high = params.get("lo", float("-inf")), params.get("hi", float("inf"))

    def change(f: Tensor, before: Tensor) -> Tensor:
        among = write.get("features") or list(range(len(f)))
        whole = operand if isinstance(operand, Tensor) else torch.full_like(f, operand or 0.0)
        x, o, was = f[among], whole[among], before[among]
        if kind == "swap":
            x = o
        elif kind == "add_scaled":
            x = x + params.get("scale", 1) * o
        elif kind == "lerp":
            x = (1 - params["t"]) * x + params["t"] * o
        elif kind == "clamp":
            x = torch.tensor([min(max(entry, low), high) for entry in x.tolist()])
        elif kind == "gaussian":
            x = x + params.get("scale", 1) * noise(params["seed"], *at, len(f))[among]
        elif kind == "renormalize" and x.any():
            x = x * (was.pow(2).sum().sqrt() / x.pow(2).sum().sqrt())
        new = f.clone()
        new[among] = x
        return new

    return change


def patterned(write: dict, operand: Tensor | float | None, at: tuple[str, int, int, int], keys: int) -> Change:
    """The same of a pattern [H, T], of which `keys` were there when the token was computed."""

    def change(f: Tensor, before: Tensor) -> Tensor:
        now, new, whole = f[:, :keys], f.clone(), operand
        if isinstance(operand, Tensor):
            whole = torch.zeros_like(now)
            whole[:, : operand.shape[-1]] = operand[:, :keys]
            whole = whole.flatten()
        new[:, :keys] = mechanism(write, whole, at)(now.flatten(), before[:, :keys].flatten()).view_as(now)
        return new

    return change


def among(entries: list[int], change: Change) -> Change:
    """A change of some entries of a value, the others left."""

    def limited(f: Tensor, before: Tensor) -> Tensor:
        new = f.clone()
        new[entries] = change(f[entries], before[entries])
        return new

    return limited


def chain(changes: Sequence[Change]) -> Callable[[Tensor], Tensor]:
    """Several writes at one place, in order."""

    def change(f: Tensor) -> Tensor:
        before = f
        for one in changes:
            f = one(f, before)
        return f

    return change


def noise(seed: int, example_id: str, step: int, place: int, places: int, width: int) -> Tensor:
    """ε [width] of one of the places a write has in a row at a step."""
    start = int(hashlib.sha256(f"{seed}:{example_id}:{step}".encode()).hexdigest()[:16], 16) % 2**63
    return torch.randn((places, width), generator=torch.Generator().manual_seed(start))[place]


def metric(
    spec: dict, x: Tensor, y: Tensor | None, token: dict[str, int], text: Callable[[int], str]
) -> float | list[list[int | str | float]]:
    """One row's value: `x` (and `y`) [V] logits or log-probabilities, or [w] vectors; answer ids by field."""
    p = x.exp() / x.exp().sum() if x.max() < 700 else x.softmax(-1)
    q = None if y is None else y.softmax(-1)
    kind = spec["kind"]
    if kind == "top_k":
        best = sorted(range(len(p)), key=lambda i: -p[i].item())[: spec.get("k", 5)]
        return [[i, text(i), p[i].item()] for i in best]
    if kind == "match":
        return float(p.argmax() == token["expected"])
    if kind == "logit_diff":
        return (x[token["a"]] - x[token["b"]]).item()
    if kind == "cross_entropy":
        return -p[token["target"]].log().item()
    if kind == "token_logit":
        return x[token["token"]].item()
    if kind == "token_prob":
        return p[token["token"]].item()
    if kind == "token_logprob":
        return p[token["token"]].log().item()
    if kind == "token_rank":
        return float(sum(value > x[token["token"]] for value in x))
    if kind == "entropy":
        return -divergence(p, torch.ones_like(p))
    if kind == "kl":
        return divergence(p, q)
    if kind == "js":
        middle = (p + q) / 2
        return (divergence(p, middle) + divergence(q, middle)) / 2
    assert kind == "cosine"
    return (x.dot(y) / (x.dot(x).sqrt() * y.dot(y).sqrt())).item()


def divergence(p: Tensor, q: Tensor) -> float:
    """Σ p log(p/q) over the tokens with p > 0."""
    there = p > 0
    return (p[there] * (p[there] / q[there]).log()).sum().item()
