"""A JSON tree with choices in it. Building it twice with the same choices gives the same objects, shared.

Sharing is what makes ten thousand points cheap: whoever checks or prints a part can remember it by identity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from causalab_mini.spec.text import Json

Choice = tuple[int, ...]


@dataclass(frozen=True)
class Pick:
    """A place that takes one of several values; `path` says which choice decides."""

    path: str
    values: Sequence[Json]


@dataclass(frozen=True)
class Template:
    """A tree of which some parts depend on the choice at some axes (`axes`, ascending; empty for a constant)."""

    axes: tuple[int, ...]
    constant: Json = None
    values: Sequence[Json] | None = None
    members: Mapping[str, Template] | None = None
    items: Sequence[Template] | None = None
    built: dict[Choice, Json] = field(default_factory=dict["Choice", "Json"], compare=False, repr=False)

    def build(self, choice: Choice) -> Json:
        """The tree at `choice`, one index per axis of the document."""
        if not self.axes:
            return self.constant
        key = tuple([choice[axis] for axis in self.axes])
        if key not in self.built:
            self.built[key] = self._make(choice)
        return self.built[key]

    def _make(self, choice: Choice) -> Json:
        if self.values is not None:
            return self.values[choice[self.axes[0]]]
        if self.members is not None:
            return {name: member.build(choice) for name, member in self.members.items()}
        return [item.build(choice) for item in self.items or ()]


def template(tree: object, axis_of: Mapping[str, int]) -> Template:
    """Compile a JSON tree that holds `Pick`s; `axis_of` says which axis each path moves with."""
    if isinstance(tree, Pick):
        return Template((axis_of[tree.path],), values=tree.values)
    if isinstance(tree, dict):
        members: dict[str, Template] = {name: template(item, axis_of) for name, item in tree.items()}
        axes = _union(members.values())
        return Template(axes, members=members) if axes else Template((), constant=tree)
    if isinstance(tree, list):
        items = [template(item, axis_of) for item in tree]
        axes = _union(items)
        return Template(axes, items=items) if axes else Template((), constant=tree)
    return Template((), constant=tree)  # type: ignore[arg-type]


def _union(parts: object) -> tuple[int, ...]:
    return tuple(sorted({axis for part in parts for axis in part.axes}))  # type: ignore[attr-defined]
