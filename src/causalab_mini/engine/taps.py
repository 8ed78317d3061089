"""Values inside a block that no module holds: each passes through an identity module, a *tap*, while it is looked at.

A tap is there from loading on, and closed: the model computes as if it were not. A call opens the taps that its visits
stop at. What is seen there is [L, T, w], heads side by side; of a pattern [L, T, H, N]. Queries and patterns are taken
by an attention implementation that hands them on to the model's own; keys and values on their way into the cache, so
that a written token keeps them, and once more on their way out of it, where what is written is forgotten; the residual
stream after attention in front of the norm that feeds the MLP.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import cast

import torch
from torch import Tensor, nn
from transformers.cache_utils import Cache, DynamicLayer
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, eager_mask, sdpa_mask
from transformers.modeling_utils import AttentionInterface, PreTrainedModel

from causalab_mini.engine.contract import Inputs, Visit
from causalab_mini.engine.families import Family, tap_name
from causalab_mini.engine.patterns import Keys, Softmax
from causalab_mini.errors import EngineFailure

QUERY, KEY, VALUE, MID = "query", "key", "value", "mid"
KEY_SEEN, VALUE_SEEN = "key_seen", "value_seen"
PATTERNS = SCORES, PROBS = "scores", "probs"
CACHED = (KEY, VALUE, KEY_SEEN, VALUE_SEEN)
IMPLEMENTATIONS = {"eager": "causalab_mini_eager", "sdpa": "causalab_mini_sdpa"}

Attention = Callable[..., tuple[Tensor, Tensor | None]]
Split = Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]


class Tap(nn.Module):
    """An identity. `part` says what passes through it; of queries, `split` is the attention's method that hands them
    out where no interface is given them, and `held` what it handed out last.
    """

    def __init__(self, part: str, layer: int, split: str = "") -> None:
        super().__init__()
        self.part = part
        self.split = split
        self.layer = layer
        self.open = False
        self.held: Tensor | None = None
        self.keys: Keys | None = None

    def forward(self, value: Tensor) -> Tensor:
        """`value` [L, T, w] as it is."""
        return value

    def side_by_side(self, value: Tensor) -> Tensor:
        """`value` [L, T, H, …] after what is done at the tap, where it is [L, T, w]."""
        if not self.open:
            return value
        flat = value.flatten(2) if value.ndim > 3 else value
        seen = cast(Tensor, self(flat))
        return value if seen is flat else seen.reshape(value.shape)

    def heads(self, value: Tensor) -> Tensor:
        """`value` [L, H, T, h] after what is done at the tap, where it is [L, T, H·h]."""
        if not self.open:
            return value
        lanes, heads, columns, width = value.shape
        flat = value.transpose(1, 2).reshape(lanes, columns, heads * width)
        seen = cast(Tensor, self(flat))
        # What was only read goes on as it came, memory layout included: kernels differ by layout in the last bit.
        return (
            value
            if seen is flat
            else torch.empty_like(value).copy_(seen.view(lanes, columns, heads, width).transpose(1, 2))
        )

    def in_place(self) -> None:
        """Change what is held into what it is after the tap, and let go of it."""
        held, self.held = self.held, None
        if held is not None:
            seen = self.heads(held)
            if seen is not held:
                held.copy_(seen)


def attach(model: PreTrainedModel, family: Family) -> None:
    """Give every block its taps, and transformers the attention implementations that lead through them."""
    for layer, block in enumerate(cast(nn.ModuleList, model.get_submodule(family.blocks))):
        if attention := getattr(block, family.attention or "-", None):
            for part in (*CACHED, QUERY, *PATTERNS):
                split = family.split if part == QUERY else ""
                attention.add_module(tap_name(part), Tap(part, layer, split).eval())
        if family.middle:
            block.get_submodule(family.middle).add_module(tap_name(MID), Tap(MID, layer).eval())
    AttentionInterface.register(IMPLEMENTATIONS["sdpa"], _tapped_sdpa)
    AttentionMaskInterface.register(IMPLEMENTATIONS["sdpa"], sdpa_mask)
    AttentionInterface.register(IMPLEMENTATIONS["eager"], _tapped_eager)
    AttentionMaskInterface.register(IMPLEMENTATIONS["eager"], eager_mask)


@contextmanager
def opened(model: nn.Module, inputs: Inputs, visits: Sequence[Visit]) -> Generator[None]:
    """For as long as the block lasts, the taps that `visits` stop at are open."""
    modules = [model.get_submodule(visit.module) for visit in visits if visit.module]
    taps = [module for module in modules if isinstance(module, Tap)]
    if not taps:
        yield
        return
    with ExitStack() as open_ones:
        for visit, tap in ((visit, model.get_submodule(visit.module)) for visit in visits if visit.module):
            if not isinstance(tap, Tap):
                continue
            open_ones.callback(setattr, tap, "open", False)
            tap.open = True
            owner = model.get_submodule(visit.module.rpartition(".")[0])
            if tap.part == MID:
                # Before what looks at the module's own input, which comes after.
                open_ones.callback(owner.register_forward_pre_hook(_middle(tap), prepend=True).remove)
            elif tap.split:
                vars(owner)[tap.split] = _splitting(getattr(owner, tap.split), tap, wait=inputs.cache is not None)
                open_ones.callback(vars(owner).pop, tap.split)
        for tap in (tap for tap in taps if tap.part in PATTERNS):
            open_ones.callback(setattr, tap, "keys", None)
            tap.keys = Keys.of(inputs.mask)
        if any(tap.part in (QUERY, *PATTERNS) and not tap.split for tap in taps):
            open_ones.enter_context(_implementation(model, patterns=any(tap.part in PATTERNS for tap in taps)))
        if inputs.cache is not None or any(tap.part in CACHED for tap in taps):
            if inputs.cache is None:
                raise EngineFailure("keys and values are seen on their way into a cache, and this call has none")
            open_ones.enter_context(_cached(inputs.cache, taps))
        yield


@contextmanager
def _implementation(model: nn.Module, *, patterns: bool) -> Generator[None]:
    """The model's attention goes through the query's taps, and those of `patterns` where these are looked at."""
    config = cast(PreTrainedModel, model).config
    own = config._attn_implementation  # pyright: ignore[reportPrivateUsage]
    if patterns and own != "eager":
        raise EngineFailure(f"attention patterns are there under eager attention, and this model computes under {own}")
    try:
        config._attn_implementation = IMPLEMENTATIONS[cast(str, own)]  # pyright: ignore[reportPrivateUsage]
        yield
    finally:
        config._attn_implementation = own  # pyright: ignore[reportPrivateUsage]


@contextmanager
def _cached(cache: Cache, taps: Sequence[Tap]) -> Generator[None]:
    """The cache's layers let new keys and values through their taps, before they take them in and after."""
    layers = sorted({tap.layer for tap in taps if tap.part in CACHED or tap.split})
    try:
        for number in layers:
            layer = cast(DynamicLayer, cache.layers[number])
            found = {tap.part: tap for tap in taps if tap.layer == number}
            vars(layer)["update"] = _through(layer.update, found)
        yield
    finally:
        for number in layers:
            vars(cache.layers[number]).pop("update", None)


def _through(
    update: Callable[..., tuple[Tensor, Tensor]], taps: Mapping[str, Tap]
) -> Callable[..., tuple[Tensor, Tensor]]:
    def through(part: str, value: Tensor) -> Tensor:
        return taps[part].heads(value) if part in taps else value

    def newest(part: str, value: Tensor, columns: int) -> Tensor:
        before, new = value[:, :, :-columns], value[:, :, -columns:]
        seen = through(part, new)
        # What the cache holds is the cache's.
        return value if seen is new else torch.cat((before, seen), dim=2)

    def run(key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object) -> tuple[Tensor, Tensor]:
        columns = key_states.shape[2]
        keys, values = update(through(KEY, key_states), through(VALUE, value_states), *args, **kwargs)
        keys, values = newest(KEY_SEEN, keys, columns), newest(VALUE_SEEN, values, columns)
        if QUERY in taps and taps[QUERY].split:
            taps[QUERY].in_place()
        return keys, values

    return run


def _splitting(split: Split, tap: Tap, *, wait: bool) -> Split:
    """The attention's method that hands out queries, keys and values, the queries by way of their tap.

    `wait`: until keys and values have been in the cache, which is the order of other families.
    """

    def run(fused: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = split(fused)
        tap.held = query
        if not wait:
            tap.in_place()
        return query, key, value

    return run


def _middle(tap: Tap) -> Callable[[nn.Module, tuple[Tensor, ...]], None]:
    """A hook in front of a norm: what it is given is what the residual stream goes on with, and is changed in place."""

    def before(_: nn.Module, args: tuple[Tensor, ...]) -> None:
        seen = cast(Tensor, tap(args[0]))
        if seen is not args[0]:
            args[0].copy_(seen)

    return before


def _tapped_sdpa(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **kwargs: object
) -> tuple[Tensor, Tensor | None]:
    """Attention by the stock kernel, of the query as its tap hands it on."""
    query = cast(Tap, module.get_submodule(tap_name(QUERY))).heads(query)
    return cast(Attention, sdpa_attention_forward)(module, query, key, value, mask, **kwargs)


def _tapped_eager(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **kwargs: object
) -> tuple[Tensor, Tensor | None]:
    """Attention by the family's own arithmetic, of the query and by the pattern that the taps hand on."""
    asking, scores, probs = (cast(Tap, module.get_submodule(tap_name(part))) for part in (QUERY, SCORES, PROBS))
    query = asking.heads(query)
    eager = cast(Attention, sys.modules[type(module).__module__].eager_attention_forward)
    with Softmax(scores, probs, mask, query.dtype) if scores.open or probs.open else nullcontext():
        return eager(module, query, key, value, mask, **kwargs)
