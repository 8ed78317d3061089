"""The places of a model a document can name: one row each, the same meaning on every family.

Knows names, widths and forward order. Refuses to know modules: which module of which family holds a value is
`engine.modules`' business.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from causalab_mini.vocabulary.node import Registry


class Width(Enum):
    """What the last axis of a component counts."""

    TOKEN = "token"
    HIDDEN = "d"
    VOCABULARY = "V"


class Stage(Enum):
    """Where in the forward a component is: before, inside or after the blocks."""

    BEFORE = 0
    BLOCK = 1
    AFTER = 2


@dataclass(frozen=True)
class Component:
    """A named value of the forward computation.

    `rank` orders components inside their stage (inside one layer for blocks). `value` is the name of the value
    itself where one value has two names. A `residual` value can be projected through the final norm and the head.
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

    @property
    def per_layer(self) -> bool:
        """Whether a site must say which layers."""
        return self.stage is Stage.BLOCK

    @property
    def identity(self) -> str:
        """The name of the value this component is, shared by its aliases."""
        return self.value or self.name


COMPONENTS = Registry(
    "component",
    (
        Component("input_ids", Stage.BEFORE, 0, Width.TOKEN, "the token fed", "b,P", "b,1", writable=False),
        Component("embeddings", Stage.BEFORE, 1, Width.HIDDEN, "the token embedding", "b,P,d", "b,1,d", residual=True),
        Component(
            "block_input",
            Stage.BLOCK,
            0,
            Width.HIDDEN,
            "the residual stream entering a block",
            "b,P,d",
            "b,1,d",
            residual=True,
        ),
        Component(
            "attention_output",
            Stage.BLOCK,
            1,
            Width.HIDDEN,
            "what attention adds to the residual stream",
            "b,P,d",
            "b,1,d",
            residual=True,
        ),
        Component(
            "mlp_output",
            Stage.BLOCK,
            2,
            Width.HIDDEN,
            "what the MLP adds to the residual stream",
            "b,P,d",
            "b,1,d",
            residual=True,
        ),
        Component(
            "block_output",
            Stage.BLOCK,
            3,
            Width.HIDDEN,
            "the residual stream leaving a block",
            "b,P,d",
            "b,1,d",
            residual=True,
        ),
        Component("ln_final", Stage.AFTER, 0, Width.HIDDEN, "the output of the final norm", "b,P,d", "b,1,d"),
        Component(
            "lm_head",
            Stage.AFTER,
            1,
            Width.VOCABULARY,
            "the logits the model returns",
            "b,P,V",
            "b,1,V",
            value="logits",
        ),
        Component("logits", Stage.AFTER, 1, Width.VOCABULARY, "the logits the model returns", "b,P,V", "b,1,V"),
    ),
)


def network_order(component: Component, layer: int | None) -> tuple[int, int, int]:
    """A sort key: the order in which a forward computes `component` (of `layer`, for a block's)."""
    return (component.stage.value, -1 if layer is None else layer, component.rank)
