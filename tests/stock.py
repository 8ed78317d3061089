"""A second reference for what is inside a block: a stock model, one row, each step recomputed, attention written out.

Imports nothing of the product. Queries, keys, values and head outputs are looked at and changed inside the attention
written here; the rest by hooks on the modules named in `PARTS`. The residual stream in the middle of a block is changed
by what attention adds to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

import torch
from tests import families
from torch import Tensor, nn

LAYER = 1
LLAMA = {
    "block": "model.layers.1",
    "attention": "self_attn",
    "attention_input_norm": ("input_layernorm", "output"),
    "attention_output": ("self_attn", "output"),
    "mlp_input_norm": ("post_attention_layernorm", "output"),
    "mlp_input": ("mlp", "input"),
    "mlp_activation": ("mlp.act_fn", "output"),
    "mlp_neuron_output": ("mlp.down_proj", "input"),
    "mlp_output": ("mlp", "output"),
}
GEMMA = {
    **LLAMA,
    "attention_output": ("post_attention_layernorm", "output"),
    "mlp_input_norm": ("pre_feedforward_layernorm", "output"),
    "mlp_output": ("post_feedforward_layernorm", "output"),
}
OPT = {
    "block": "model.decoder.layers.1",
    "attention": "self_attn",
    "attention_input_norm": ("self_attn_layer_norm", "output"),
    "attention_output": ("self_attn", "output"),
    "mlp_input_norm": ("final_layer_norm", "output"),
    "mlp_input": ("fc1", "input"),
    "mlp_activation": ("activation_fn", "output"),
    "mlp_neuron_output": ("fc2", "input"),
    "mlp_output": ("fc2", "output"),
}


def without(parts: dict, *names: str) -> dict:
    return {name: place for name, place in parts.items() if name not in names}


MIXTURE = without(LLAMA, "mlp_activation", "mlp_neuron_output")
PARTS = {
    "gemma2": GEMMA,
    "gemma3_text": GEMMA,
    "olmo2": without(
        {
            **LLAMA,
            "attention_output": ("post_attention_layernorm", "output"),
            "mlp_output": ("post_feedforward_layernorm", "output"),
        },
        "attention_input_norm",
        "mlp_input_norm",
    ),
    "mixtral": MIXTURE,
    "qwen2_moe": MIXTURE,
    "bloom": {
        **LLAMA,
        "block": "transformer.h.1",
        "attention": "self_attention",
        "attention_output": ("self_attention.dense", "output"),
        "mlp_activation": ("mlp.gelu_impl", "output"),
        "mlp_neuron_output": ("mlp.dense_4h_to_h", "input"),
        "mlp_output": ("mlp.dense_4h_to_h", "output"),
    },
    "opt": OPT,
    "opt_post": without(OPT, "attention_input_norm", "attention_output", "mlp_input_norm", "mlp_output"),
    "gpt2": {
        **LLAMA,
        "block": "transformer.h.1",
        "attention": "attn",
        "attention_input_norm": ("ln_1", "output"),
        "attention_output": ("attn", "output"),
        "mlp_input_norm": ("ln_2", "output"),
        "mlp_activation": ("mlp.act", "output"),
        "mlp_neuron_output": ("mlp.c_proj", "input"),
    },
    "gpt_neox": {
        **LLAMA,
        "block": "gpt_neox.layers.1",
        "attention": "attention",
        "attention_output": ("attention", "output"),
        "mlp_activation": ("mlp.act", "output"),
        "mlp_neuron_output": ("mlp.dense_4h_to_h", "input"),
    },
}
ROUTING = ("router_logits", "expert_weights", "expert_indices")
INSIDE = ("attention_query", "attention_key", "attention_value", "attention_z")
NAME = "written_out"


@dataclass
class Row:
    """One forward's row: `change` acts on the value of `component` [w] at `token`; `seen` [T, w] by component."""

    component: str = ""
    token: int = -1
    change: Callable[[Tensor], Tensor] = lambda value: value
    seen: dict[str, Tensor] = field(default_factory=dict)

    def act(self, component: str, value: Tensor) -> Tensor:
        """`value` [1, T, w] of the component, changed, and noted."""
        if component == self.component and self.token < value.shape[1]:
            value = value.clone()
            value[0, self.token] = self.change(value[0, self.token])
        self.seen[component] = value[0].clone()
        return value


class Stock:
    """The model of `families.build`, its attention written out."""

    def __init__(self, variant: str, width: int) -> None:
        from transformers.masking_utils import AttentionMaskInterface, eager_mask
        from transformers.modeling_utils import AttentionInterface

        AttentionInterface.register(NAME, self._attention)
        AttentionMaskInterface.register(NAME, eager_mask)
        self.model = families.build(variant, width)
        self.model.config._attn_implementation = NAME
        self.parts = PARTS.get(variant, PARTS.get(families.VARIANTS.get(variant, variant), LLAMA))
        self.middle = variant not in ("gpt_neox", "opt_post")
        self.mixture = variant in ("mixtral", "qwen2_moe")
        if variant == "bloom":
            for block in self.model.transformer.h:
                block.self_attention.forward = partial(self._biased, block.self_attention)
        self.components = [name for name in self.parts if name not in ("block", "attention")] + list(INSIDE)
        self.components += ["block_mid"] if self.middle else []
        self.components += ROUTING if self.mixture else []
        self.row = Row()
        AttentionInterface.register(NAME, self._attention)

    def decode(self, row: Sequence[int], steps: int, held: Sequence[int], changed: Row) -> list[tuple[Tensor, Row]]:
        """Per step the last position's logits [V], and what was seen."""
        from transformers.modeling_utils import AttentionInterface

        AttentionInterface.register(NAME, self._attention)
        ids, found = list(row), []
        for _ in range(steps):
            self.row = Row(changed.component, changed.token, changed.change)
            logits = self._forward(ids)
            found.append((logits, self.row))
            choice = logits.clone()
            choice[list(held)] = -torch.inf
            ids.append(int(choice.argmax()))
        return found

    def _forward(self, ids: list[int]) -> Tensor:
        block = self.model.get_submodule(str(self.parts["block"]))
        entered: list[Tensor] = []
        with torch.no_grad(), ExitStack() as hooks:

            def hook(name: str, path: str, side: str) -> None:
                module = block.get_submodule(path)
                if side == "input":
                    handle = module.register_forward_pre_hook(lambda _, args: (self._act(name, args[0]), *args[1:]))
                else:
                    handle = module.register_forward_hook(lambda _, args, out: self._put(name, out, entered))
                hooks.callback(handle.remove)

            handle = block.register_forward_pre_hook(lambda _, args: entered.append(args[0]))
            hooks.callback(handle.remove)
            for name, place in self.parts.items():
                if isinstance(place, tuple):
                    hook(name, *place)
            if self.mixture:
                hooks.callback(block.mlp.register_forward_pre_hook(lambda mlp, args: self._route(mlp, args[0])).remove)
            return self.model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1]

    def _act(self, name: str, value: Tensor) -> Tensor:
        """`value` [1, T, w], or [T, w] where a block works on it so, changed and noted."""
        return self.row.act(name, value[None])[0] if value.ndim == 2 else self.row.act(name, value)

    def _route(self, mlp: nn.Module, entering: Tensor) -> None:
        """What a router makes of `entering` [1, T, d]: the two likeliest experts and their weights."""
        logits = entering @ mlp.gate.weight.T
        weights, indices = logits.softmax(-1).sort(descending=True)
        weights, indices = weights[..., :2], indices[..., :2]
        if getattr(mlp.gate, "norm_topk_prob", True):
            weights = weights / weights.sum(-1, keepdim=True)
        for name, value in zip(ROUTING, (logits, weights, indices), strict=True):
            self.row.act(name, value)

    def _put(self, name: str, out: Tensor | tuple, entered: list[Tensor]) -> Tensor | tuple:
        value = self._act(name, out[0] if isinstance(out, tuple) else out)
        if name == "attention_output" and self.middle:
            middle = entered[0] + value
            value = value + (self.row.act("block_mid", middle) - middle)
        return (value, *out[1:]) if isinstance(out, tuple) else value

    def _attention(
        self,
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        scaling: float,
        softcap: float | None = None,
        **_: object,
    ) -> tuple[Tensor, None]:
        """softmax(q·k) v, head by head. [1, H, T, h] → [1, T, H, h]"""
        inside = module.layer_idx == LAYER
        if inside:
            query, key, value = (self._heads(name, t) for name, t in zip(INSIDE, (query, key, value), strict=False))
        group = query.shape[1] // key.shape[1]
        outs = []
        for head in range(query.shape[1]):
            scores = query[0, head] @ key[0, head // group].T * scaling
            scores = scores if softcap is None else softcap * torch.tanh(scores / softcap)
            scores = scores if mask is None else scores + mask[0, head % mask.shape[1]]
            outs.append(scores.softmax(-1) @ value[0, head // group])
        z = torch.stack(outs, dim=1)
        if inside:
            flat = self.row.act("attention_z", z.reshape(1, z.shape[0], -1))
            return flat.reshape(1, *z.shape), None
        return z[None], None

    def _biased(
        self, module: nn.Module, entering: Tensor, residual: Tensor, attention_mask: Tensor | None = None, **_: object
    ) -> tuple[Tensor, None]:
        """BLOOM's attention: a head's scores grow with the key's position, by its slope of 2^(-8 (head + 1) / H)."""
        columns, count = entering.shape[1], module.num_heads
        fused = module.query_key_value(entering).view(1, columns, count, 3, module.head_dim)
        query, key, value = (fused[:, :, :, part].transpose(1, 2) for part in range(3))
        slopes = torch.tensor([2 ** (-8 * (head + 1) / count) for head in range(count)])
        bias = slopes[:, None, None] * torch.arange(columns)
        ahead = torch.ones(columns, columns).tril() == 0
        bias = bias.expand(count, columns, columns).masked_fill(ahead, -torch.inf)
        z, _ = self._attention(module, query, key, value, bias[None], module.head_dim**-0.5)
        return module.dense(z.reshape(1, columns, -1)) + residual, None

    def _heads(self, name: str, value: Tensor) -> Tensor:
        _, heads, columns, width = value.shape
        flat = self.row.act(name, value.transpose(1, 2).reshape(1, columns, heads * width))
        return flat.reshape(1, columns, heads, width).transpose(1, 2)
