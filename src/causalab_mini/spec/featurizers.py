"""A featurizer's kind as the node that computes it, and the reads and writes that use it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from causalab_mini.spec.document import Document, Featurizer, Intervention, Read, Site, Write
from causalab_mini.vocabulary import featurizers as kinds
from causalab_mini.vocabulary.featurizers import FEATURIZERS


def of(featurizer: Featurizer) -> kinds.Featurizer:
    """The node of a featurizer that passed `spec.check`."""
    node = FEATURIZERS.get(featurizer.kind).node
    given = {key: getattr(featurizer, key) for key in ("k", "seed") if key in node.model_fields}
    return node.model_validate(given)


@dataclass(frozen=True)
class Use:
    """A read or write through a featurizer, and its path in the document."""

    path: str
    tap: Read | Write


def uses(document: Document) -> Iterator[Use]:
    """Every read and write, of declared and of inline interventions."""
    for name, intervention in document.interventions.items():
        yield from _taps(intervention, f"interventions.{name}")
    for name, step in document.steps.items():
        used = step.interventions
        for i, one in enumerate(used if isinstance(used, tuple) else (used,)):
            if isinstance(one, Intervention):
                yield from _taps(one, f"steps.{name}.interventions" + (f"[{i}]" if isinstance(used, tuple) else ""))


def _taps(intervention: Intervention, path: str) -> Iterator[Use]:
    for name, read in intervention.reads.items():
        yield Use(f"{path}.reads.{name}", read)
    for name, write in intervention.writes.items():
        yield Use(f"{path}.writes.{name}", write)


def site(document: Document, name: str) -> Site | None:
    """The site that a featurizer acts at, where it is used at a declared one."""
    for use in uses(document):
        if use.tap.featurizer == name and use.tap.site in document.sites:
            return document.sites[use.tap.site]
    return None
