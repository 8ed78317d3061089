"""Whether the names and numbers of a document fit each other, without rows and without a checkpoint.

One module for each noun, each a generator of problems. `broken` are paths of parts that are there but not well
formed: their names count as declared, and nothing is said about what they hold.
"""

from __future__ import annotations

from collections.abc import Iterator

from causalab_mini.errors import Problem
from causalab_mini.spec.check import decode, featurizers, metrics, models, reads, sites, steps, writes
from causalab_mini.spec.check.names import Here, Scope, empty, reserved
from causalab_mini.spec.document import Document, Intervention


def check(document: Document, broken: frozenset[str] = frozenset()) -> Iterator[Problem]:
    """Everything that is wrong with a well-shaped document."""
    here = Here(document, broken)
    for problem in _all(here):
        if not broken or not here.covered(problem.path):
            yield problem


def _all(here: Here) -> Iterator[Problem]:
    document = here.document
    for section in ("roles", "sites", "featurizers", "interventions", "steps"):
        yield from reserved(section, getattr(document, section))
    for section in ("roles", "steps"):
        yield from empty(here, section, getattr(document, section))
    yield from sites.check(document)
    yield from featurizers.check(here)
    for name, intervention in document.interventions.items():
        yield from _intervention(Scope(here, intervention, f"interventions.{name}"))
    for found in steps.inline(document):
        yield from _intervention(Scope(here, found.intervention, found.path))
    yield from steps.check(here)


def _intervention(scope: Scope) -> Iterator[Problem]:
    intervention: Intervention = scope.intervention
    for section in ("reads", "writes", "models", "metrics"):
        yield from reserved(f"{scope.path}.{section}", getattr(intervention, section))
    yield from empty(scope.here, f"{scope.path}.reads", intervention.reads)
    yield from decode.check(scope)
    yield from reads.check(scope)
    yield from writes.check(scope)
    yield from models.check(scope)
    yield from metrics.check(scope)
