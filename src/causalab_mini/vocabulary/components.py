"""The places of a model a document can name: one row each, the same meaning on every family.

Knows names, widths and forward order. Refuses to know modules: which module of which family holds a value is
`engine.modules`' business.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal

from causalab_mini.vocabulary.node import Registry


class Width(Enum):
    """What the last axis of a component counts.

    H query heads and KV key heads are h wide each; the MLP has I neurons. A pattern has a number for each head and key:
    a row has as many keys as tokens. A recurrent mixer has Hk key heads, K wide, and Hv value heads, U wide, each with
    a state of K × U.
    """

    TOKEN = "token"
    HIDDEN = "d"
    HEADS = "H·h"
    KV_HEADS = "KV·h"
    NEURONS = "I"
    STATE_KEYS = "Hk·K"
    STATE_VALUES = "Hv·U"
    STATE_HEADS = "Hv"
    STATE = "Hv·K·U"
    EXPERTS = "E"
    CHOSEN = "topk"
    PATTERN = "H·keys"
    VOCABULARY = "V"

    @property
    def parts(self) -> Literal["heads", "units"] | None:
        """How a site may name parts of the axis, if it may."""
        if self in _NOUNS:
            return "heads"
        return "units" if self is Width.NEURONS else None

    @property
    def noun(self) -> str:
        """What one part of the axis is called."""
        return _NOUNS.get(self, "unit")

    def layout(self, parts: int | None = None) -> str:
        """The axis, or some `parts` of it, in words: values fit together where these are the same."""
        if parts is None:
            return _LAYOUTS[self]
        of = "the pattern of" if self is Width.PATTERN else "as wide as"
        return f"{of} {parts} {_PARTS.get(self, ('head', 'heads'))[parts != 1]}"


_NOUNS = {
    Width.HEADS: "query head",
    Width.KV_HEADS: "key-value head",
    Width.PATTERN: "query head",
    Width.STATE_KEYS: "key head",
    Width.STATE_VALUES: "value head",
    Width.STATE_HEADS: "value head",
    Width.STATE: "value head",
}

_PARTS = {
    Width.NEURONS: ("unit", "units"),
    Width.STATE_KEYS: ("key head of the recurrent mixer", "key heads of the recurrent mixer"),
    Width.STATE_VALUES: ("value head of the recurrent mixer", "value heads of the recurrent mixer"),
    Width.STATE_HEADS: ("number", "numbers"),
    Width.STATE: ("head's state", "heads' states"),
}
"""What some of an axis is counted in; heads of attention are all as wide."""

_LAYOUTS = {
    Width.TOKEN: "token ids",
    Width.HIDDEN: "as wide as the residual stream",
    Width.HEADS: "as wide as all query heads",
    Width.KV_HEADS: "as wide as all key heads",
    Width.NEURONS: "as wide as the inside of the MLP",
    Width.STATE_KEYS: "as wide as all keys of the recurrent mixer",
    Width.STATE_VALUES: "as wide as all values of the recurrent mixer",
    Width.STATE_HEADS: "one number for each head of the recurrent mixer",
    Width.STATE: "as wide as the recurrent state",
    Width.EXPERTS: "one number for each expert",
    Width.CHOSEN: "one number for each chosen expert",
    Width.PATTERN: "the pattern of all query heads",
    Width.VOCABULARY: "as wide as the vocabulary",
}


class Stage(Enum):
    """Where in the forward a component is: before, inside or after the blocks."""

    BEFORE = 0
    BLOCK = 1
    AFTER = 2


@dataclass(frozen=True)
class Component:
    """A named value of the forward computation.

    `rank` orders components inside their stage (inside one layer for blocks). `value` is the name of the value
    itself where one value has two names. A `residual` value can be projected through the final norm and the head. A
    `state` is what one token hands on to the next: a write to it acts before the next token. `ids` says of what, where
    entries are ids and not amounts. A `distribution` is made of `value` by softmax. A `passing`
    value is what the queries of one forward see of a lasting one.
    """

    name: str
    stage: Stage
    rank: int
    width: Width
    summary: str
    shape: str
    step_shape: str
    writable: bool = True
    residual: bool = False
    value: str = ""
    state: bool = False
    ids: str = ""
    distribution: bool = False
    passing: bool = False

    @property
    def recurrent(self) -> bool:
        """Whether only blocks with a recurrent mixer have it."""
        return self.name.startswith("linear_attention_")

    @property
    def attention(self) -> bool:
        """Whether only blocks with attention have it."""
        return self.name.startswith("attention_")

    @property
    def mlp(self) -> bool:
        """Whether only blocks with an MLP have it."""
        return self.name.startswith("mlp_") or self.name == "block_mid"

    @property
    def per_layer(self) -> bool:
        """Whether a site must say which layers."""
        return self.stage is Stage.BLOCK

    @property
    def pattern(self) -> bool:
        """Whether it is over the keys that a query sees, whose number is the row's."""
        return self.width is Width.PATTERN

    @property
    def lasting(self) -> bool:
        """Whether later tokens look back at the value, so that a write reaches them."""
        return self.name in ("attention_key", "attention_value")

    def seen(self) -> Component:
        """The value as the queries of this forward see it: of a lasting one, after the cache has taken it in."""
        if not self.lasting or self.passing:
            return self
        return replace(self, rank=SEEN[self.name], value=f"{self.name}_seen", passing=True)

    @property
    def identity(self) -> str:
        """The name of the value this component is, shared by its aliases."""
        return self.value or self.name


SEEN = {"attention_key": 36, "attention_value": 38}
"""The ranks of what is seen of keys and values, once both have gone into the cache."""


def _block(
    rank: int, name: str, width: Width, summary: str, *, inner: str = "", residual: bool = False, value: str = ""
) -> Component:
    """A component of a block. `inner`: its axes after the tokens, where the last one is not all there is."""
    heads, entries = {
        Width.HEADS: ("H,", "h"),
        Width.KV_HEADS: ("KV,", "h"),
        Width.NEURONS: ("", "I"),
    }.get(width, ("", "d"))
    shapes = (f"b,P,{inner}", f"b,1,{inner}") if inner else (f"b,{heads}P,{entries}", f"b,{heads}1,{entries}")
    return Component(name, Stage.BLOCK, rank, width, summary, *shapes, residual=residual, value=value)


def _recurrent(rank: int, name: str, width: Width, summary: str, *, residual: bool = False) -> Component:
    """A value of a recurrent mixer, tokens on its second axis."""
    inner = {Width.STATE_KEYS: "Hk,K", Width.STATE_VALUES: "Hv,U", Width.STATE_HEADS: "Hv"}.get(width, "d")
    return Component(name, Stage.BLOCK, rank, width, summary, f"b,P,{inner}", f"b,1,{inner}", residual=residual)


def _state(rank: int, name: str, summary: str, *, writable: bool = True) -> Component:
    """A recurrent state, which has no axis of tokens; what it is at the prefill is that after one of its tokens."""
    prefill = "b,Hv,K,U" if writable else "none"
    return Component(name, Stage.BLOCK, rank, Width.STATE, summary, prefill, "b,Hv,K,U", writable=writable, state=True)


def _router(rank: int, name: str, width: Width, summary: str, *, ids: str = "") -> Component:
    """A value of the router of a mixture of experts, which can be read and not written."""
    shapes = (f"b,P,{width.value}", f"b,1,{width.value}")
    return Component(name, Stage.BLOCK, rank, width, summary, *shapes, writable=False, ids=ids)


def _pattern(rank: int, name: str, summary: str) -> Component:
    """A value over the keys that a query sees. It needs eager attention."""
    return Component(name, Stage.BLOCK, rank, Width.PATTERN, summary, "b,H,P,P", "b,H,1,P+k")


def _after(rank: int, name: str, width: Width, summary: str, value: str = "") -> Component:
    return Component(name, Stage.AFTER, rank, width, summary, f"b,P,{width.value}", f"b,1,{width.value}", value=value)


COMPONENTS = Registry(
    "component",
    (
        Component(
            "input_ids",
            Stage.BEFORE,
            0,
            Width.TOKEN,
            "the token fed",
            "b,P",
            "b,1",
            writable=False,
            ids="token ids",
        ),
        Component("embeddings", Stage.BEFORE, 1, Width.HIDDEN, "the token embedding", "b,P,d", "b,1,d", residual=True),
        _block(0, "block_input", Width.HIDDEN, "the residual stream entering a block", residual=True),
        _block(10, "attention_input_norm", Width.HIDDEN, "what enters attention, after the norm before it"),
        _block(
            20, "attention_key", Width.KV_HEADS, "a token's keys, after rotary; a write lasts for all later queries"
        ),
        _block(30, "attention_value", Width.KV_HEADS, "a token's values; a write lasts for all later queries"),
        _block(40, "attention_query", Width.HEADS, "a token's queries, after rotary"),
        _pattern(44, "attention_scores", "a query's score of each key: scaled, capped where the family caps"),
        _pattern(46, "attention_probs", "how a query weighs the values: the softmax of its scores"),
        _block(50, "attention_z", Width.HEADS, "each head's output, before the output projection", inner="H,h"),
        _block(
            50,
            "attention_premix",
            Width.HEADS,
            "what enters the output projection: the heads side by side",
            inner="H·h",
            value="attention_z",
        ),
        _state(
            12, "linear_attention_state_in", "the state a step begins with: that of the step before", writable=False
        ),
        _recurrent(20, "linear_attention_key", Width.STATE_KEYS, "a token's keys, as the recurrence is given them"),
        _recurrent(
            30, "linear_attention_value", Width.STATE_VALUES, "a token's values, as the recurrence is given them"
        ),
        _recurrent(34, "linear_attention_decay", Width.STATE_HEADS, "the log of what the state is multiplied by"),
        _recurrent(36, "linear_attention_beta", Width.STATE_HEADS, "how far a token writes into the state"),
        _recurrent(
            40, "linear_attention_query", Width.STATE_KEYS, "a token's queries, as the recurrence is given them"
        ),
        _recurrent(50, "linear_attention_z", Width.STATE_VALUES, "what each head reads from its state"),
        _state(52, "linear_attention_state", "the state after a token; a write acts from the next token on"),
        _recurrent(
            60, "linear_attention_output", Width.HIDDEN, "what the mixer adds to the residual stream", residual=True
        ),
        _block(60, "attention_output", Width.HIDDEN, "what attention adds to the residual stream", residual=True),
        _block(
            70, "block_mid", Width.HIDDEN, "the residual stream after attention, in sequential blocks", residual=True
        ),
        _block(80, "mlp_input_norm", Width.HIDDEN, "the output of the norm that feeds the MLP", value="mlp_input"),
        _block(80, "mlp_input", Width.HIDDEN, "what enters the MLP"),
        _router(84, "router_logits", Width.EXPERTS, "the router's logit of every expert, in mixtures of experts"),
        _router(84, "expert_weights", Width.CHOSEN, "what the outputs of the chosen experts are multiplied by"),
        _router(84, "expert_indices", Width.CHOSEN, "the chosen experts, largest weight first", ids="expert ids"),
        _block(90, "mlp_activation", Width.NEURONS, "the activation function's output"),
        _block(100, "mlp_neuron_output", Width.NEURONS, "what enters the MLP's last projection, gate included"),
        _block(110, "mlp_output", Width.HIDDEN, "what the MLP adds to the residual stream", residual=True),
        _block(120, "block_output", Width.HIDDEN, "the residual stream leaving a block", residual=True),
        Component("ln_final", Stage.AFTER, 0, Width.HIDDEN, "the output of the final norm", "b,P,d", "b,1,d"),
        _after(1, "lm_head", Width.VOCABULARY, "the logits the model returns", value="logits"),
        _after(1, "logits", Width.VOCABULARY, "the logits the model returns"),
        Component(
            "next_token_probs",
            Stage.AFTER,
            1,
            Width.VOCABULARY,
            "the probability of every token to come next: softmax at the last position",
            "b,V",
            "b,V",
            writable=False,
            value="logits",
            distribution=True,
        ),
    ),
)


def network_order(component: Component, layer: int | None) -> tuple[int, int, int]:
    """A sort key: the order in which a forward computes `component` (of `layer`, for a block's)."""
    return (component.stage.value, -1 if layer is None else layer, component.rank)
