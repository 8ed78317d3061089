"""Featurizers: a known kind with the keys it takes, and one site for each."""

from __future__ import annotations

from collections.abc import Iterator

from causalab_mini.errors import Problem, suggest
from causalab_mini.spec import featurizers
from causalab_mini.spec.check.names import Here
from causalab_mini.spec.document import Document, Featurizer, Site
from causalab_mini.vocabulary.components import COMPONENTS
from causalab_mini.vocabulary.featurizers import FEATURIZERS, IDENTITY, Source

LARGEST_SEED = 2**63


def check(here: Here) -> Iterator[Problem]:
    """Every featurizer by itself, and where each acts."""
    for name, featurizer in here.document.featurizers.items():
        yield from _featurizer(featurizer, f"featurizers.{name}")
    if here.document.featurizers:
        yield from _one_site(here.document)


def _featurizer(featurizer: Featurizer, path: str) -> Iterator[Problem]:
    if featurizer.kind not in FEATURIZERS:
        message = f"there is no featurizer kind '{featurizer.kind}'"
        yield Problem(f"{path}.kind", message, suggest(featurizer.kind, FEATURIZERS.names(), "kinds"))
        return
    node = FEATURIZERS.get(featurizer.kind).node
    takes = {"k": node.sized, "seed": "seed" in node.model_fields}
    takes["file_path"] = node.source is not Source.NOTHING
    takes["parametrization"] = node.source is Source.SEED_OR_FILE
    given = {key for key in takes if key in featurizer.model_fields_set and getattr(featurizer, key) is not None}
    for key in sorted(key for key in given if not takes[key]):
        yield Problem(f"{path}.{key}", f"the featurizer kind '{node.keyword}' has no '{key}'", "leave it out")
    if featurizer.k is not None and featurizer.k < 1:
        yield Problem(f"{path}.k", f"a space has at least 1 dimension, and k is {featurizer.k}", "name at least 1")
    if featurizer.seed is not None and not 0 <= featurizer.seed < LARGEST_SEED:
        yield Problem(f"{path}.seed", f"a seed is 0 to 2⁶³ − 1, and {featurizer.seed} was found", "name another")
    yield from _source(featurizer, node.source, path)


def _source(featurizer: Featurizer, source: Source, path: str) -> Iterator[Problem]:
    kind = featurizer.kind
    if source is Source.FILE and featurizer.file_path is None:
        message = f"the featurizer kind '{kind}' is loaded, and no file is named"
        yield Problem(f"{path}.file_path", message, 'give "file_path": "directory/file.safetensors"')
    if source is not Source.SEED_OR_FILE:
        return
    if featurizer.file_path is None and featurizer.seed is None:
        message = f"a {kind} is drawn with a seed or loaded from a file, and neither is named"
        yield Problem(path, message, 'give "seed": 0, or a "file_path"')
    elif featurizer.file_path is not None and featurizer.seed is not None:
        yield Problem(f"{path}.seed", f"this {kind} is loaded from a file, and has a seed too", "keep one of them")
    if featurizer.file_path is None and featurizer.k is None:
        yield Problem(f"{path}.k", f"how many dimensions the {kind} has is not said", 'give "k": 1')


def _one_site(document: Document) -> Iterator[Problem]:
    first: dict[str, tuple[str, Site]] = {}
    for use in featurizers.uses(document):
        name, site = use.tap.featurizer, document.sites.get(use.tap.site)
        declared = document.featurizers.get(name)
        if site is None or declared is None or declared.kind == IDENTITY:
            continue
        component = COMPONENTS.get(site.component) if site.component in COMPONENTS else None
        if component is not None and component.ids:
            message = f"'{component.name}' holds {component.ids}, which have no features"
            yield Problem(f"{use.path}.featurizer", message, "read 'embeddings' instead")
            continue
        if component is not None and component.distribution:
            message = f"'{component.name}' is a distribution, which has no features"
            yield Problem(f"{use.path}.featurizer", message, "read 'lm_head' instead")
            continue
        if component is not None and component.pattern:
            message = f"'{component.name}' has a number for each key, of which every row has as many as tokens"
            yield Problem(f"{use.path}.featurizer", message, "leave 'featurizer' out")
            continue
        if site.stacked:
            message = f"a featurizer acts at one layer, and the site '{use.tap.site}' is several"
            yield Problem(f"{use.path}.featurizer", message, 'name one layer, or sweep: {"sweep": [0, 1]}')
            continue
        where, known = first.setdefault(name, (use.tap.site, site))
        if known != site:
            message = f"the featurizer '{name}' acts at the site '{where}', and here at '{use.tap.site}'"
            yield Problem(f"{use.path}.featurizer", message, "one featurizer acts at one site: declare another for it")
