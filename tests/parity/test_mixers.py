"""What a recurrent mixer is given and gives, at the prefill and at later steps, against its weights applied by hand."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from tests.desk import Desk
from tests.parity.test_recurrent import LAYER, MODES, at, document, rows, unequal
from torch import Tensor, nn
from torch.nn.functional import conv1d, pad, silu, softplus

__all__ = ["unequal"]

PARTS = ("key", "value", "decay", "beta", "query", "z", "output")
FAMILIES = ("qwen3_5_text", "qwen3_next", "bamba", "mamba2")
STEPS = 4


def mixer_of(model: Any, layer: int = LAYER) -> nn.Module:
    body = model.backbone if hasattr(model, "backbone") else model.model
    block = body.layers[layer]
    return next(getattr(block, name) for name in ("linear_attn", "mamba", "mixer") if hasattr(block, name))


def whole(model: Any, ids: list[int]) -> tuple[Tensor, Tensor, Tensor]:
    """One pass over a text: what enters the mixer, what leaves it, and the logits, each [T, …]."""
    mixer, seen = mixer_of(model), {}
    handle = mixer.register_forward_hook(
        lambda _, args, kwargs, out: seen.update(x=args[0] if args else kwargs["hidden_states"], y=out),
        with_kwargs=True,
    )
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]
    handle.remove()
    return seen["x"][0], seen["y"][0], logits


def convolved(mixer: Any, x: Tensor) -> Tensor:
    """The mixer's causal convolution and its activation over [T, c]."""
    width = mixer.conv_kernel_size
    out = conv1d(pad(x.T[None], (width - 1, 0)), mixer.conv1d.weight, mixer.conv1d.bias, groups=x.shape[1])
    return silu(out)[0].T


def by_hand(model: Any, x: Tensor) -> dict[str, Tensor]:
    """The parts of the mixer for what enters it [T, d]: each [T, heads · width]."""
    mixer = mixer_of(model)
    kind = model.config.model_type
    with torch.no_grad():
        if kind in ("mamba2", "bamba"):
            return _scanned(mixer, x)
        keys, values = mixer.num_k_heads, mixer.num_v_heads
        if kind == "qwen3_next":
            each = values // keys
            q, k, v, _ = (
                mixer.in_proj_qkvz(x)
                .view(len(x), keys, -1)
                .split([mixer.head_k_dim, mixer.head_k_dim, each * mixer.head_v_dim, each * mixer.head_v_dim], -1)
            )
            b, a = mixer.in_proj_ba(x).view(len(x), keys, -1).split([each, each], -1)
            mixed = torch.cat([part.reshape(len(x), -1) for part in (q, k, v)], -1)
            b, a = b.reshape(len(x), -1), a.reshape(len(x), -1)
        else:
            mixed, b, a = mixer.in_proj_qkv(x), mixer.in_proj_b(x), mixer.in_proj_a(x)
        q, k, v = convolved(mixer, mixed).split([mixer.key_dim, mixer.key_dim, mixer.value_dim], -1)
        beta, decay = torch.sigmoid(b), -torch.exp(mixer.A_log) * softplus(a + mixer.dt_bias)
        state = torch.zeros(values, mixer.head_k_dim, mixer.head_v_dim)
        z = []
        for t in range(len(x)):
            unit = [p[t].view(keys, -1).repeat_interleave(values // keys, 0) for p in (q, k)]
            query, key = (p / (p.pow(2).sum(-1, keepdim=True) + 1e-6).sqrt() for p in unit)
            state = state * decay[t].exp()[:, None, None]
            wrong = v[t].view(values, -1) - torch.einsum("hk,hkv->hv", key, state)
            state = state + torch.einsum("hk,hv->hkv", key, wrong * beta[t][:, None])
            z.append(torch.einsum("hk,hkv->hv", query, state).flatten() / mixer.head_k_dim**0.5)
        return {"query": q, "key": k, "value": v, "beta": beta, "decay": decay, "z": torch.stack(z)}


def _scanned(mixer: Any, x: Tensor) -> dict[str, Tensor]:
    _, mixed, dt = mixer.in_proj(x).split([mixer.intermediate_size, mixer.conv_dim, mixer.num_heads], -1)
    size = mixer.n_groups * mixer.ssm_state_size
    value, key, query = convolved(mixer, mixed).split([mixer.intermediate_size, size, size], -1)
    beta = softplus(dt + mixer.dt_bias)
    decay = -torch.exp(mixer.A_log) * beta
    heads, each = mixer.num_heads, mixer.num_heads // mixer.n_groups
    state, z = torch.zeros(heads, mixer.ssm_state_size, mixer.head_dim), []
    for t in range(len(x)):
        k, q = (part[t].view(mixer.n_groups, -1).repeat_interleave(each, 0) for part in (key, query))
        v = value[t].view(heads, -1)
        state = state * decay[t].exp()[:, None, None] + torch.einsum("hn,hp->hnp", k, v * beta[t][:, None])
        z.append((torch.einsum("hn,hnp->hp", q, state) + mixer.D[:, None] * v).flatten())
    return {"query": query, "key": key, "value": value, "beta": beta, "decay": decay, "z": torch.stack(z)}


@pytest.mark.parametrize("width", [16, 64, 512])
@pytest.mark.parametrize("family", FAMILIES)
def test_parts_are_the_weights_applied_by_hand(unequal: Callable[[str, int], Desk], family: str, width: int) -> None:
    desk = unequal(family, width)
    sites = {part: {"component": f"linear_attention_{part}", "layers": LAYER} for part in PARTS}
    reads = {
        f"{part}_{name}": at(part, pos)
        for part in PARTS
        for name, pos in (("prompt", {"last": 3}), ("steps", {"frame": "generated", "all": True}))
    }
    made = document(reads, {}, STEPS, {}, {name: {"read": name} for name in reads}, "linear_attention_state")
    made["sites"].update(sites)
    modes = MODES if width == 64 else ("fast",)
    for engine, batch, mode in [("hooks", None, mode) for mode in modes] + [("traced", 3, "fast")]:
        seen = desk.one(made, engine, batch, mode)
        for row, ids in enumerate(rows(desk)):
            text = [*ids, *seen.ids("m")[row][:-1]]
            x, y, _ = whole(desk.network.model, text)
            for part, wanted in {**by_hand(desk.network.model, x), "output": y}.items():
                end = len(ids) - 1
                found = seen.tensor(f"{part}_prompt")[row], seen.tensor(f"{part}_steps")[row]
                torch.testing.assert_close(found[0], wanted[end - 2 : end + 1], atol=2e-5, rtol=1e-4)
                torch.testing.assert_close(found[1], wanted[end : end + STEPS], atol=2e-5, rtol=1e-4)


@contextmanager
def added(model: Any, part: str, columns: dict[int, int]) -> Iterator[None]:
    """In a pass over a whole text, to the part of the first mixer at some columns, what it is at others."""
    mixer = mixer_of(model, 0)
    names = vars(sys.modules[type(mixer).__module__])
    delta = "torch_chunk_gated_delta_rule" in names
    name = "torch_chunk_gated_delta_rule" if delta else "mamba2_chunk_scan"
    slot = {"query": 0, "key": 1, "value": 2} if delta else {"value": 0, "key": 3, "query": 4}
    word = {"decay": "g", "beta": "beta"}
    kernel, running = names[name], []

    def more(t: Tensor) -> Tensor:
        return torch.stack([t[:, c] + (t[:, columns[c]] if c in columns else 0) for c in range(t.shape[1])], 1)

    def run(*args: Any, **kwargs: Any) -> Any:
        if not running:
            return kernel(*args, **kwargs)
        args, kwargs = list(args), dict(kwargs)
        if part in slot:
            args[slot[part]] = more(args[slot[part]])
        elif part in word:
            kwargs[word[part]] = more(kwargs[word[part]])
        out = kernel(*args, **kwargs)
        if part != "z":
            return out
        return (more(out[0]), *out[1:]) if isinstance(out, tuple) else more(out)

    handles = (
        mixer.register_forward_pre_hook(lambda *_: running.append(1)),
        mixer.register_forward_hook(lambda *_: (running.clear(), None)[1]),
    )
    names[name] = run
    try:
        yield
    finally:
        names[name] = kernel
        for handle in handles:
            handle.remove()


@pytest.mark.parametrize("part", PARTS[:-1])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_written_part_does_what_the_same_edit_does_in_the_kernel(
    unequal: Callable[[str, int], Desk], family: str, part: str
) -> None:
    desk = unequal(family, 64)
    step = {"frame": "generated", "index": 2}
    reads = {
        "head": at("head", {"frame": "generated", "all": True}),
        "before": at("part", -4, model="original"),
        "then": at("part", {"frame": "generated", "index": 1}, model="half"),
    }
    writes = {
        "prompt": {"site": "part", "pos": -3, "mechanism": "add_scaled", "operand": "before"},
        "later": {"site": "part", "pos": step, "mechanism": "add_scaled", "operand": "then"},
    }
    made = document(reads, writes, STEPS, {}, {"head": {"read": "head"}}, "linear_attention_state")
    made["sites"]["part"] = {"component": f"linear_attention_{part}", "layers": 0}
    made["interventions"]["one"]["models"]["half"] = {"input": "base", "writes": ["prompt"]}
    if part in ("decay", "beta") and family in ("mamba2", "bamba"):
        (first, *_) = desk.problems(made)
        assert "can only be read here" in first.message
        return
    for engine, batch, mode in [("hooks", None, mode) for mode in MODES] + [("traced", 3, "fast")]:
        seen = desk.one(made, engine, batch, mode)
        for row, ids in enumerate(rows(desk)):
            text, end = [*ids, *seen.ids("m")[row][:-1]], len(ids) - 1
            with added(desk.network.model, part, {end - 2: end - 3, end + 2: end + 1}):
                logits = whole(desk.network.model, text)[2]
            torch.testing.assert_close(seen.tensor("head")[row], logits[end:], atol=2e-4, rtol=1e-4)
            plain = whole(desk.network.model, text)[2]
            assert (logits[end + 2 :] - plain[end + 2 :]).abs().amax() > 1e-3
