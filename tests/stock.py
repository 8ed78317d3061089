"""A second reference for what is inside a block: a stock model, one row, each step recomputed, attention written out.

Imports nothing of the product. Queries, keys, values and head outputs are looked at and changed inside the attention
written here; the rest by hooks on the modules named in `PARTS`. The residual stream in the middle of a block is changed
by what attention adds to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

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
PARTS = {
    "gemma2": {
        **LLAMA,
        "attention_output": ("post_attention_layernorm", "output"),
        "mlp_input_norm": ("pre_feedforward_layernorm", "output"),
        "mlp_output": ("post_feedforward_layernorm", "output"),
    },
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
        self.parts = PARTS.get(families.VARIANTS.get(variant, variant), LLAMA)
        self.parallel = variant == "gpt_neox"
        self.components = [name for name in self.parts if name not in ("block", "attention")] + list(INSIDE)
        self.components += [] if self.parallel else ["block_mid"]
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
                    handle = module.register_forward_pre_hook(lambda _, args: (self.row.act(name, args[0]), *args[1:]))
                else:
                    handle = module.register_forward_hook(lambda _, args, out: self._put(name, out, entered))
                hooks.callback(handle.remove)

            handle = block.register_forward_pre_hook(lambda _, args: entered.append(args[0]))
            hooks.callback(handle.remove)
            for name, place in self.parts.items():
                if isinstance(place, tuple):
                    hook(name, *place)
            return self.model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1]

    def _put(self, name: str, out: Tensor | tuple, entered: list[Tensor]) -> Tensor | tuple:
        value = self.row.act(name, out[0] if isinstance(out, tuple) else out)
        if name == "attention_output" and not self.parallel:
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
            scores = scores if mask is None else scores + mask[0, 0]
            outs.append(scores.softmax(-1) @ value[0, head // group])
        z = torch.stack(outs, dim=1)
        if inside:
            flat = self.row.act("attention_z", z.reshape(1, z.shape[0], -1))
            return flat.reshape(1, *z.shape), None
        return z[None], None

    def _heads(self, name: str, value: Tensor) -> Tensor:
        _, heads, columns, width = value.shape
        flat = self.row.act(name, value.transpose(1, 2).reshape(1, columns, heads * width))
        return flat.reshape(1, columns, heads, width).transpose(1, 2)
