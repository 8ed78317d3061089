"""From a site to a place of the network, as far as a checkpoint's sizes tell; what it has not is refused."""

from __future__ import annotations

from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.checkpoint.naming import shown
from causalab_mini.plan.place import Place, Stack
from causalab_mini.plan.problems import Problems
from causalab_mini.spec.document import Site
from causalab_mini.vocabulary.components import COMPONENTS, Component


def place(name: str, site: Site, checkpoint: Checkpoint, problems: Problems) -> Place:
    """The place of the site `name`; problems are told at its path."""
    component = COMPONENTS.get(site.component)
    layers = _all(component, checkpoint) if site.layers == "all" else site.layers or ()
    columns = None
    with problems.under("sites", name):
        missing = checkpoint.lacks(component)
        if missing is not None:
            problems.add(
                f"{shown(checkpoint)} has no {component.name}: {missing}", "name another component", at="component"
            )
        for layer in (layer for layer in layers if missing is None and layer < checkpoint.depth):
            there = checkpoint.lacks(component, layer)
            if there is not None:
                problems.add(f"{shown(checkpoint)} has no {component.name}[{layer}]: {there}", at="layers")
        for layer in (layer for layer in layers if layer >= checkpoint.depth):
            problems.add(
                f"layer {layer} is past the depth of {shown(checkpoint)}, which has {checkpoint.depth} layers",
                f"layers are 0 to {checkpoint.depth - 1}",
                at="layers",
            )
        if missing is None:
            columns = _columns(component, site, checkpoint, problems)
    value = checkpoint.value_of(component)
    own = "" if value == component.identity else value
    stack = Stack(layers, site.layers == "all") if site.stacked else None
    return Place(component, layers[0] if layers else None, columns, site.heads, site.units, own, stack)


def _all(component: Component, checkpoint: Checkpoint) -> tuple[int, ...]:
    """The layers that have a component; every one where none has."""
    every = tuple(range(checkpoint.depth))
    return tuple(layer for layer in every if checkpoint.lacks(component, layer) is None) or every


def _columns(component: Component, site: Site, checkpoint: Checkpoint, problems: Problems) -> tuple[int, ...] | None:
    """The columns of the last axis that a site's heads or units are, or None for all of them."""
    if site.heads is not None:
        key, chosen, count = "heads", site.heads, checkpoint.heads_of(component)
        width = checkpoint.width(component) // count
    elif site.units is not None:
        key, chosen, count, width = "units", site.units, checkpoint.width(component), 1
    else:
        return None
    past = [number for number in chosen if number >= count]
    if past:
        noun = component.width.noun
        problems.add(
            f"{noun} {past[0]} is past the last of {component.name}: {shown(checkpoint)} has {count} {noun}s",
            f"{key} are 0 to {count - 1}",
            at=key,
        )
        return None
    return tuple(column for number in chosen for column in range(number * width, (number + 1) * width))
