"""What a document declares, and the refusals of names."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from causalab_mini.errors import Problem, suggest
from causalab_mini.spec.document import ORIGINAL, RESERVED, Document, Intervention, Read, Site, Write
from causalab_mini.vocabulary.components import COMPONENTS, Component
from causalab_mini.vocabulary.featurizers import IDENTITY


@dataclass(frozen=True)
class Here:
    """A document, and the paths of the parts that are missing from it because they are not well formed."""

    document: Document
    broken: frozenset[str] = frozenset()

    def covered(self, path: str) -> bool:
        """Whether `path` is at or inside a broken part."""
        return path in self.broken or any(path.startswith((f"{part}.", f"{part}[")) for part in self.broken)

    def undeclared(self, path: str, noun: str, name: str, section: str, known: Collection[str]) -> Iterator[Problem]:
        """The refusal of `name`, used at `path`, if `section` does not declare it."""
        if name in known or section in self.broken or f"{section}.{name}" in self.broken:
            return
        if section == "roles" and not known:
            return  # No roles at all is one problem, told once.
        listed = {*known, *(part.removeprefix(f"{section}.") for part in self.broken if _directly(part, section))}
        yield Problem(path, f"there is no {noun} '{name}'", suggest(name, listed, f"{noun}s"))

    def component(self, site: str) -> Component | None:
        """The component of a site; None where either is not known, which somebody else says."""
        found = self.document.sites.get(site)
        if found is None or found.component not in COMPONENTS:
            return None
        return COMPONENTS.get(found.component)


def _directly(path: str, section: str) -> bool:
    return path.startswith(f"{section}.") and not set(path[len(section) + 1 :]) & set(".[")


@dataclass(frozen=True)
class Scope:
    """One intervention of a document, declared or inline, and where it stands."""

    here: Here
    intervention: Intervention
    path: str

    @property
    def decode(self) -> int | None:
        """How many steps it decodes; None where that is not well formed, or known only with the rows."""
        return None if f"{self.path}.decode" in self.here.broken else self.intervention.decode.steps

    def site(self, path: str, tap: Read | Write) -> Iterator[Problem]:
        """Whether a tap's site is declared."""
        yield from self.here.undeclared(f"{path}.site", "site", tap.site, "sites", self.here.document.sites)

    def featurizer(self, path: str, tap: Read | Write) -> Iterator[Problem]:
        """Whether a tap's featurizer is declared."""
        known = {IDENTITY: None, **self.here.document.featurizers}
        yield from self.here.undeclared(f"{path}.featurizer", "featurizer", tap.featurizer, "featurizers", known)

    def role(self, path: str, role: str) -> Iterator[Problem]:
        """Whether an input's role is declared."""
        yield from self.here.undeclared(f"{path}.input", "role", role, "roles", self.here.document.roles)

    def model(self, path: str, model: str) -> Iterator[Problem]:
        """Whether a read's model is declared, or the original one."""
        if model != ORIGINAL:
            known = {ORIGINAL: None, **self.intervention.models}
            yield from self.here.undeclared(f"{path}.model", "model", model, f"{self.path}.models", known)

    def read(self, path: str, name: str) -> Iterator[Problem]:
        """Whether a read is declared in this intervention."""
        yield from self.here.undeclared(path, "read", name, f"{self.path}.reads", self.intervention.reads)

    def layout(self, tap: Read | Write) -> str | None:
        """How wide the value at a tap's site is, in words; None where the site is not known."""
        site = self.here.document.sites.get(tap.site)
        component = self.here.component(tap.site)
        if site is None or component is None:
            return None
        parts = site.heads if site.heads is not None else site.units
        return component.width.layout(None if parts is None else len(parts))

    def stacked(self, tap: Read | Write) -> bool:
        """Whether a tap's site is known and is several layers."""
        site = self.here.document.sites.get(tap.site)
        return site is not None and site.stacked

    def layers(self, tap: Read | Write) -> Layers:
        """The layers of a tap's site; none where it is not known."""
        site = self.here.document.sites.get(tap.site)
        return frozenset() if site is None else layers(site)

    def place(self, write: Write) -> Place | None:
        """Where a write lands, if that is known."""
        site = self.here.document.sites.get(write.site)
        component = self.here.component(write.site)
        return None if site is None or component is None else place(component, site)

    def space(self, featurizer: str) -> str:
        """The name of a featurizer's space: all identities are one."""
        declared = self.here.document.featurizers.get(featurizer)
        return IDENTITY if declared is not None and declared.kind == IDENTITY else featurizer


Layers = frozenset[int | None] | Literal["all"]
"""The layers of a site: {None} for a value of the whole model, "all" where only a checkpoint says how many."""


def layers(site: Site) -> Layers:
    """The layers of a site."""
    return "all" if site.layers == "all" else frozenset(site.layers or (None,))


def common(one: Layers, other: Layers) -> bool:
    """Whether two sites of one component have a layer in common."""
    return one == "all" or other == "all" or bool(one & other)


@dataclass(frozen=True)
class Place:
    """A value of the network, or one of each of several layers.

    `value` and `layers` name what flows: the residual stream between two blocks is one value, whichever of the two
    names it. `identity` and `spelled` are the site's own words for it. `parts` are the heads or units the site is
    limited to.
    """

    value: str
    layers: Layers
    identity: str
    spelled: str
    parts: frozenset[int] | None = None

    def meets(self, other: Place) -> bool:
        """Whether the two surely have a value in common: how many layers all are, only a checkpoint says."""
        if "all" in (self.layers, other.layers):
            return self.identity == other.identity
        return self.value == other.value and common(self.layers, other.layers)


def place(component: Component, site: Site) -> Place:
    """The place of a site; a block's output is the next block's input."""
    parts = site.heads if site.heads is not None else site.units
    limits = None if parts is None else frozenset(parts)
    named = "all" if site.layers == "all" else ", ".join(map(str, site.layers or ()))
    spelled = f"{component.name}[{named}]" if named else component.name
    found = layers(site)
    if component.name == "block_output" and found != "all":
        above = frozenset(layer if layer is None else layer + 1 for layer in found)
        return Place("block_input", above, component.identity, spelled, limits)
    return Place(component.identity, found, component.identity, spelled, limits)


def reserved(section: str, names: Mapping[str, object]) -> Iterator[Problem]:
    """Names that mean something already."""
    for name in RESERVED:
        if name in names:
            yield Problem(f"{section}.{name}", f"the name '{name}' is taken by the language", "give it another name")


def empty(here: Here, section: str, names: Mapping[str, object]) -> Iterator[Problem]:
    """A section that needs at least one entry."""
    if not names and section not in here.broken and not any(_directly(part, section) for part in here.broken):
        noun = section.rsplit(".", 1)[-1]
        yield Problem(section, f"at least one of the {noun} is needed, and there is none", f"declare it under '{noun}'")
