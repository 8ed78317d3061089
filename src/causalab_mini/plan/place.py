"""Values of the network: where the reads and writes of a plan, and the edits and keeps of a schedule, are."""

from __future__ import annotations

from dataclasses import dataclass, replace

from causalab_mini.vocabulary.components import Component


@dataclass(frozen=True)
class Stack:
    """The layers of a stacked site, in its order; `whole` where it says "all"."""

    layers: tuple[int, ...]
    whole: bool = False

    def spelled(self) -> str:
        """`all`, `0, 2, 5`."""
        return "all" if self.whole else ", ".join(map(str, self.layers))


@dataclass(frozen=True)
class Place:
    """A value of the network: a component, of a layer for a block's, limited to some features if `columns` says so.

    `heads` or `units` are the site's own words for its columns. `value` names the value itself where this checkpoint
    has it under two names and the vocabulary does not say so. A place with a `stack` is as many as the stack has
    layers, and `layer` is the first of them; edits and keeps have none.
    """

    component: Component
    layer: int | None
    columns: tuple[int, ...] | None = None
    heads: tuple[int, ...] | None = None
    units: tuple[int, ...] | None = None
    value: str = ""
    stack: Stack | None = None

    @property
    def identity(self) -> str:
        """The name of the value, shared by all that name it."""
        return self.value or self.component.identity

    @property
    def layers(self) -> tuple[int, ...]:
        """The layers of a stacked place, none of another."""
        return () if self.stack is None else self.stack.layers

    def at(self, layer: int | None) -> Place:
        """The place of one of its layers; itself where it is not stacked."""
        return self if self.stack is None else replace(self, layer=layer, stack=None)

    def seen(self) -> Place:
        """The same value as the queries of a forward see it, which is another only for what a cache takes in."""
        component = self.component.seen()
        return self if component is self.component else replace(self, component=component)

    def each(self) -> tuple[Place, ...]:
        """The places of its layers, one by one; itself alone where it is not stacked."""
        return tuple(map(self.at, self.layers)) or (self,)

    def spelled(self) -> str:
        """`block_output[3]`, `block_output[all]`, `block_output[0, 2]`, `lm_head`."""
        if self.layer is None:
            return self.component.name
        return f"{self.component.name}[{self.layer if self.stack is None else self.stack.spelled()}]"

    def limits(self) -> str:
        """`heads=[0, 2]`, `units=[5]`, or nothing."""
        if self.heads is not None:
            return f"heads={list(self.heads)}"
        return "" if self.units is None else f"units={list(self.units)}"
