"""Sites: known words, layers where they belong, well-formed heads and units."""

from __future__ import annotations

from collections.abc import Iterator

from causalab_mini.errors import Problem, suggest
from causalab_mini.spec.document import Document, Site
from causalab_mini.vocabulary.components import COMPONENTS, Component


def check(document: Document) -> Iterator[Problem]:
    """Every site by itself."""
    for name, site in document.sites.items():
        yield from _site(site, f"sites.{name}")


def _site(site: Site, path: str) -> Iterator[Problem]:
    yield from counted(site.heads, "head", f"{path}.heads")
    yield from counted(site.units, "unit", f"{path}.units")
    if site.heads is not None and site.units is not None:
        yield Problem(path, "'heads' and 'units' both limit the site", "keep one of them")
    if site.component not in COMPONENTS:
        message = f"there is no component '{site.component}'"
        yield Problem(f"{path}.component", message, suggest(site.component, COMPONENTS.names(), "components"))
        return
    component = COMPONENTS.get(site.component)
    yield from _layers(site, component, f"{path}.layers")
    for key, given in (("heads", site.heads), ("units", site.units)):
        if given is not None and key != component.width.parts:
            yield Problem(f"{path}.{key}", f"the component '{component.name}' has no {key}", f"leave '{key}' out")


def _layers(site: Site, component: Component, path: str) -> Iterator[Problem]:
    if not component.per_layer:
        if site.layers is not None:
            yield Problem(
                path, f"'{component.name}' belongs to the whole model and has no layers", "leave 'layers' out"
            )
        return
    if site.layers is None:
        yield Problem(path, f"'{component.name}' is there once per layer, and no layer is named", 'give "layers": 0')
    elif isinstance(site.layers, tuple):
        if not site.layers:
            yield Problem(path, "the list of layers is empty", 'give "layers": 0')
        for layer in sorted({layer for layer in site.layers if layer < 0}):
            yield Problem(path, f"layers count from 0, and {layer} was found", "count from the first layer")
        for layer in sorted({layer for layer in site.layers if site.layers.count(layer) > 1}):
            yield Problem(path, f"the layer {layer} stands there twice", "keep one")


def counted(numbers: tuple[int, ...] | None, noun: str, path: str) -> Iterator[Problem]:
    """Indices along an axis: some, none twice, none negative."""
    if numbers is None:
        return
    if not numbers:
        yield Problem(path, f"the list of {noun}s is empty", "leave it out to mean all of them")
    for number in sorted({number for number in numbers if number < 0}):
        yield Problem(path, f"{noun}s count from 0, and {number} was found", f"count from the first {noun}")
    for number in sorted({number for number in numbers if numbers.count(number) > 1}):
        yield Problem(path, f"the {noun} {number} stands there twice", "keep one")
